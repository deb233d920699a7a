"""Tables of queues, their partitions, and moves of messages."""

from typing import Any

from sqlalchemy import BigInteger, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId
from storage.postgres.tables.columns import LIVE, NAME, DefinitionColumns

OPEN_MOVE = text("state IN ('running', 'cancelling')")


class QueueRow(DefinitionColumns, table=True):
    """A queue's definition; `spec` is a `QueueSpec`.

    `partition_sets`: null while the number of partitions was never changed, else [generation, count, since when in ms] of each.
    """

    __tablename__ = "queues"
    __table_args__ = (
        Index("queues_live_name", "namespace", "name", unique=True, postgresql_where=LIVE),
    )

    log_id: LogId = Field(primary_key=True, sa_type=NAME)
    deleted_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    partition_sets: list[list[int]] | None = Field(default=None, sa_type=JSONB(none_as_null=True))


class QueuePartitionRow(SQLModel, table=True):
    """A partition of a queue beyond the first, whose log the queue's own row has."""

    __tablename__ = "queue_partitions"

    queue_id: LogId = Field(primary_key=True, foreign_key="queues.log_id", sa_type=NAME)
    number: int = Field(primary_key=True, sa_type=Integer)
    log_id: LogId = Field(unique=True, sa_type=NAME)
    opened_at_ms: int = Field(sa_type=BigInteger)


class MoveRow(SQLModel, table=True):
    """A `storage.domain.queues.moves.Move`, with names instead of log ids.

    A queue that is re-created by that name is still the one meant.
    """

    __tablename__ = "moves"
    __table_args__ = (
        Index("moves_of_a_queue", "namespace", "source", "started_at_ms"),
        Index("moves_open", "namespace", "source", unique=True, postgresql_where=OPEN_MOVE),
    )

    move_id: str = Field(primary_key=True, sa_type=Text)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    source: str = Field(sa_type=NAME)
    destination: str | None = Field(default=None, sa_type=NAME)
    per_second: int = Field(sa_type=Integer)
    state: str = Field(sa_type=Text)
    moved: int = Field(sa_type=BigInteger)
    to_move: int = Field(sa_type=BigInteger)
    failure: str = Field(sa_type=Text)
    started_at_ms: int = Field(sa_type=BigInteger)
    which_dead: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    looked_at: int = Field(sa_type=BigInteger)
