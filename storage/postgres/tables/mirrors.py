"""Tables of mirrors, and of how far they have copied."""

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME, DefinitionColumns


class MirrorRow(DefinitionColumns, table=True):
    """A `storage.domain.mirrors.mirror.Mirror`; its key is in `sealed`, encrypted.

    `failure`: why its puller could not list the streams of the origin. `listed_at_ms`: when it last could.
    """

    __tablename__ = "mirrors"
    __table_args__ = (Index("mirrors_name", "namespace", "name", unique=True),)

    mirror_id: str = Field(primary_key=True, sa_type=NAME)
    sealed: bytes
    promoted_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    failure: str = Field(default="", sa_type=Text, sa_column_kwargs={"server_default": ""})
    listed_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class MirrorShardRow(SQLModel, table=True):
    """A `storage.domain.mirrors.progress.ShardProgress`."""

    __tablename__ = "mirror_shards"

    mirror_id: str = Field(
        primary_key=True, foreign_key="mirrors.mirror_id", ondelete="CASCADE", sa_type=NAME
    )
    stream: str = Field(primary_key=True, sa_type=NAME)
    origin_id: str = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    target_id: str = Field(sa_type=NAME)
    next_offset: int = Field(sa_type=BigInteger)
    tip: int = Field(sa_type=BigInteger)
    behind_ms: int = Field(sa_type=BigInteger)
    checked_at_ms: int = Field(sa_type=BigInteger)
    copied: int = Field(sa_type=BigInteger)
    skipped: int = Field(sa_type=BigInteger)
    ended: bool
    failure: str = Field(sa_type=Text)


class MirrorOffsetRow(SQLModel, table=True):
    """A `storage.domain.mirrors.offsets.OffsetBound` of a shard of the origin."""

    __tablename__ = "mirror_offsets"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mirror_id", "stream", "origin_id", "shard"],
            [
                "mirror_shards.mirror_id",
                "mirror_shards.stream",
                "mirror_shards.origin_id",
                "mirror_shards.shard",
            ],
            ondelete="CASCADE",
            name="mirror_offsets_of_a_shard",
        ),
    )

    mirror_id: str = Field(primary_key=True, sa_type=NAME)
    stream: str = Field(primary_key=True, sa_type=NAME)
    origin_id: str = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    target_shard: int = Field(primary_key=True, sa_type=Integer)
    origin_offset: int = Field(primary_key=True, sa_type=BigInteger)
    target_offset: int = Field(sa_type=BigInteger)


class MirrorGroupRow(SQLModel, table=True):
    """A `storage.domain.mirrors.groups.MirroredGroup`.

    `positions` are by shard, null until it was moved.
    """

    __tablename__ = "mirror_groups"

    mirror_id: str = Field(
        primary_key=True, foreign_key="mirrors.mirror_id", ondelete="CASCADE", sa_type=NAME
    )
    group_name: str = Field(primary_key=True, sa_type=NAME)
    stream: str = Field(sa_type=NAME)
    origin_created_at: str = Field(sa_type=Text)
    group_id: str | None = Field(default=None, sa_type=NAME)
    state: str = Field(sa_type=Text)
    positions: dict[str, int] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    noted_at_ms: int = Field(sa_type=BigInteger)
    moved_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    failure: str = Field(sa_type=Text)


class MirrorQueueRow(SQLModel, table=True):
    """A `storage.domain.mirrors.progress.QueueProgress`."""

    __tablename__ = "mirror_queues"

    mirror_id: str = Field(
        primary_key=True, foreign_key="mirrors.mirror_id", ondelete="CASCADE", sa_type=NAME
    )
    queue: str = Field(primary_key=True, sa_type=NAME)
    paused: bool
    next_offset: int = Field(sa_type=BigInteger)
    tip: int = Field(sa_type=BigInteger)
    behind_ms: int = Field(sa_type=BigInteger)
    checked_at_ms: int = Field(sa_type=BigInteger)
    copied: int = Field(sa_type=BigInteger)
    failure: str = Field(sa_type=Text)
