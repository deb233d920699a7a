"""Tables of archived shards and their files."""

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, Integer, Text, text
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId
from storage.postgres.tables.columns import NAME

IN_USE = text("superseded_at_ms IS NULL")


class ArchiveShardRow(SQLModel, table=True):
    """Archive progress of a shard: a `storage.domain.archive.ArchiveState` without totals.

    `namespace` and `log_id` outlive the stream's own rows.
    """

    __tablename__ = "archive_shards"

    stream_id: LogId = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    log_id: LogId = Field(unique=True, sa_type=NAME)
    start: int = Field(sa_type=BigInteger)
    archived: int = Field(sa_type=BigInteger)
    archived_at_ms: int = Field(sa_type=BigInteger)


class ArchiveFileRow(SQLModel, table=True):
    """A `storage.domain.archive.ArchivedFile`.

    A replaced one is kept for readers that planned with it. Of the files in use no two begin or end at one offset, and none
    overlaps another, because `archived` moves by compare-and-set.
    """

    __tablename__ = "archive_files"
    __table_args__ = (
        ForeignKeyConstraint(
            ["stream_id", "shard"],
            ["archive_shards.stream_id", "archive_shards.shard"],
            ondelete="CASCADE",
            name="archive_files_of_a_shard",
        ),
        CheckConstraint("first_offset < next_offset", name="archive_files_hold_something"),
        Index(
            "archive_files_first",
            "stream_id",
            "shard",
            "first_offset",
            unique=True,
            postgresql_where=IN_USE,
        ),
        Index(
            "archive_files_next",
            "stream_id",
            "shard",
            "next_offset",
            unique=True,
            postgresql_where=IN_USE,
        ),
        Index("archive_files_arrival", "stream_id", "shard", "last_arrival_ms"),
        Index("archive_files_path", "path", unique=True),
    )

    file_id: str = Field(primary_key=True, sa_type=NAME)
    stream_id: LogId = Field(sa_type=NAME)
    shard: int = Field(sa_type=Integer)
    first_offset: int = Field(sa_type=BigInteger)
    next_offset: int = Field(sa_type=BigInteger)
    records: int = Field(sa_type=BigInteger)
    log_bytes: int = Field(sa_type=BigInteger)
    file_bytes: int = Field(sa_type=BigInteger)
    first_arrival_ms: int = Field(sa_type=BigInteger)
    last_arrival_ms: int = Field(sa_type=BigInteger)
    path: str = Field(sa_type=Text)
    digest: bytes
    created_at_ms: int = Field(sa_type=BigInteger)
    superseded_at_ms: int | None = Field(default=None, sa_type=BigInteger)
