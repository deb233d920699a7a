"""Tables of the routes of topics, and the positions of their router."""

from typing import Any

from sqlalchemy import BigInteger, Index, Integer, Text, false, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId
from storage.postgres.tables.columns import NAME

CURRENT_ROUTE = text("until_offsets IS NULL")


class RouteRow(SQLModel, table=True):
    """A `storage.domain.topics.route.Route`: one revision.

    `table_version`: the topic's `routes_version` at its last change. Routers add to `delivered`, `dropped`, `dead_lettered` and
    `shadowed`, and note the last `failure` and the end of the `history`.
    """

    __tablename__ = "routes"
    __table_args__ = (
        Index(
            "routes_current_name",
            "stream_id",
            "name",
            unique=True,
            postgresql_where=CURRENT_ROUTE,
        ),
        Index("routes_by_version", "stream_id", "table_version"),
    )

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    number: int = Field(primary_key=True, sa_type=BigInteger)
    name: str = Field(sa_type=NAME)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    table_version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
    until_offsets: list[list[int]] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    removed: bool = False
    delivered: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    dropped: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    dead_lettered: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )
    shadowed: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    failure: str = Field(default="", sa_type=Text, sa_column_kwargs={"server_default": ""})
    history: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    history_done: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class TopicShardRow(SQLModel, table=True):
    """Position of the router in a shard of a topic.

    Everything before it was copied to each route without a `RouteLagRow`.

    `fence`: fencing number of the router's lease. `report`: identity of the transaction that stored it.
    """

    __tablename__ = "topic_shards"

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    shard: int = Field(primary_key=True, sa_type=Integer)
    position: int = Field(sa_type=BigInteger)
    fence: int = Field(sa_type=BigInteger)
    report: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")}
    )


class RouteLagRow(SQLModel, table=True):
    """Position of a buffer that is behind the router, in a shard of its topic."""

    __tablename__ = "route_lags"

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    buffer: str = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    position: int = Field(sa_type=BigInteger)
