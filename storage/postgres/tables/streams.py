"""Tables of streams, their shards, registered consumers and staged batches."""

from sqlalchemy import BigInteger, Index, Integer, Numeric, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId
from storage.postgres.tables.columns import LIVE, NAME, DefinitionColumns

HASH_KEY = Numeric(39, 0)
"""A whole number below 2^128."""


class StreamRow(DefinitionColumns, table=True):
    """A stream's definition; `spec` is a `StreamSpec`.

    `shards_target` is set while a reshard is to reach that number of open shards. Of a topic, `routes_version` rises with each change
    of its routes, and `expired_unrouted` counts messages that retention removed before a router had read them.
    """

    __tablename__ = "streams"
    __table_args__ = (
        Index("streams_live_name", "namespace", "name", unique=True, postgresql_where=LIVE),
    )

    stream_id: LogId = Field(primary_key=True, sa_type=NAME)
    deleted_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    shards_target: int | None = Field(default=None, sa_type=Integer)
    routes_version: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )
    expired_unrouted: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )


class ShardRow(SQLModel, table=True):
    """One shard of a stream: its log, and its range of hash keys, both ends inclusive.

    `parents` are the indexes of the shards it was split or merged from; while one of them is not closed,
    the shard is being opened. An expired one keeps its row until its log is swept from the hot store.
    """

    __tablename__ = "shards"

    stream_id: LogId = Field(primary_key=True, foreign_key="streams.stream_id", sa_type=NAME)
    index: int = Field(primary_key=True, sa_type=Integer)
    log_id: LogId = Field(unique=True, sa_type=NAME)
    first_hash_key: int = Field(sa_type=HASH_KEY)
    last_hash_key: int = Field(sa_type=HASH_KEY)
    opened_at_ms: int = Field(sa_type=BigInteger)
    closed_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    expired_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    parents: list[int] = Field(default_factory=list, sa_type=ARRAY(Integer))


class RegisteredConsumerRow(SQLModel, table=True):
    """A `storage.domain.streams.consumers.RegisteredConsumer`."""

    __tablename__ = "registered_consumers"

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    name: str = Field(primary_key=True, sa_type=NAME)
    registered_at_ms: int = Field(sa_type=BigInteger)
    tags: dict[str, str] = Field(sa_type=JSONB)
    policy: str | None = Field(default=None, sa_type=Text)


class WriteRow(SQLModel, table=True):
    """A `storage.postgres.repositories.staged_writes.Write`."""

    __tablename__ = "writes"
    __table_args__ = (
        Index("writes_open", "stream_id", postgresql_where=text("not done")),
        Index("writes_decided", "decided_at_ms"),
    )

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    writer_id: str = Field(primary_key=True, sa_type=NAME)
    batch_id: int = Field(primary_key=True, sa_type=BigInteger)
    staged: list[str] = Field(sa_type=ARRAY(Text))
    parts: int = Field(sa_type=Integer)
    records: int = Field(sa_type=BigInteger)
    done: bool
    decided_at_ms: int = Field(sa_type=BigInteger)
