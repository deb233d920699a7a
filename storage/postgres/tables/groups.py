"""Tables of consumer groups: members, shards and bookmarks."""

from sqlalchemy import BigInteger, Index, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId
from storage.postgres.tables.columns import NAME, DefinitionColumns


class GroupColumns(SQLModel):
    """Columns of the rows that a group has in other tables."""

    group_id: str = Field(
        primary_key=True, foreign_key="groups.group_id", ondelete="CASCADE", sa_type=NAME
    )


class GroupRow(DefinitionColumns, table=True):
    """A consumer group; `spec` is a `GroupSpec`. It is deleted with its stream.

    The stream's name may be taken again before that. `lineage_mark` identifies the shards that the assignment knows: see
    the query `beat_members`.
    """

    __tablename__ = "groups"
    __table_args__ = (
        Index("groups_name", "namespace", "name", unique=True),
        Index("groups_of_a_stream", "stream_id"),
    )

    group_id: str = Field(primary_key=True, sa_type=NAME)
    stream_id: LogId = Field(foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME)
    kind: str = Field(sa_type=Text)
    generation: int = Field(sa_type=BigInteger)
    lineage_mark: int = Field(sa_type=BigInteger)
    session_ms: int = Field(sa_type=BigInteger)
    static_ms: int = Field(sa_type=BigInteger)


class GroupMemberRow(GroupColumns, table=True):
    """A `storage.domain.groups.assignment.Member`."""

    __tablename__ = "group_members"

    member_id: str = Field(primary_key=True, sa_type=NAME)
    static: bool
    away: bool
    joined_generation: int = Field(sa_type=BigInteger)
    joined_at_ms: int = Field(sa_type=BigInteger)
    heartbeat_ms: int = Field(sa_type=BigInteger)


class GroupShardRow(GroupColumns, table=True):
    """A shard of a group: its lease, and a copy of the next offset to read.

    The hot store has the offset, which counts if it was committed under this lease. `committed` is null until
    the first commit; `start`, until the shard is first read.
    """

    __tablename__ = "group_shards"

    shard: int = Field(primary_key=True, sa_type=Integer)
    owner: str | None = Field(default=None, sa_type=NAME)
    generation: int = Field(sa_type=BigInteger)
    revoke_by_ms: int | None = Field(default=None, sa_type=BigInteger)
    committed: int | None = Field(default=None, sa_type=BigInteger)
    committed_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    finished: bool
    start: int | None = Field(default=None, sa_type=BigInteger)


class GroupBookmarkRow(GroupColumns, table=True):
    """A `storage.domain.groups.group.Bookmark`; the shards in `positions` are strings in JSON."""

    __tablename__ = "group_bookmarks"

    name: str = Field(primary_key=True, sa_type=NAME)
    positions: dict[str, int] = Field(sa_type=JSONB)
    created_at_ms: int = Field(sa_type=BigInteger)
