"""Query schemas: SQL, relations, rows, and what they include."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from api.native.fields import moment_ms, optional_ms
from api.rest.field_map import Mapped
from api.rest.schema_base import Config, Moment, Seconds, Time, in_seconds
from api.rest.view_fields import (
    DeclaredColumns,
    EventTimeColumn,
    OnBad,
    ViewColumnOut,
    relations_by_kind,
    shards_out,
)
from storage.domain import limits
from storage.domain.jobs import JobState, RequestedState, WaitReason
from storage.domain.queries.query import QueryStream, SqlQuery
from storage.domain.queries.result import RelationRead
from storage.domain.streams.start_at import StartAt
from storage.domain.views.view import BadPolicy, ViewTable
from storage.queries.engine import Query


class QueryRelationConfig(Config):
    """Relation of a query: a stream, a table or a view. Exactly one of the three is given."""

    stream: Annotated[
        str | None, Field(description="Stream whose records are read, also those of the archive.")
    ] = None
    table: Annotated[
        str | None,
        Field(
            description="Stream that is read as a table: the newest record of each key, with `key`, `value` and the `columns`. A record with "
            "empty or null data deletes its key."
        ),
    ] = None
    view: Annotated[str | None, Field(description="View whose rows are read.")] = None
    columns: DeclaredColumns = ""
    event_time: EventTimeColumn = ""
    start: Annotated[
        StartAt, Field(strict=False, description="First record: `earliest`, or `time`.")
    ] = StartAt.EARLIEST
    start_time: Annotated[
        Moment | None,
        Field(description="With `time`: the first record that arrived then or later."),
    ] = None
    end_time: Annotated[
        Moment | None,
        Field(description="Only records that arrived before; null: all that there are now."),
    ] = None
    on_bad: OnBad = BadPolicy.NULL

    def to_stream(self) -> QueryStream:
        """Return it as a stream."""
        return QueryStream(
            stream=self.stream or "",
            columns=self.columns,
            event_time=self.event_time,
            start=self.start,
            start_time_ms=None if self.start_time is None else moment_ms(self.start_time),
            end_time_ms=None if self.end_time is None else moment_ms(self.end_time),
            on_bad=self.on_bad,
        )


class QueryConfig(Config):
    """A query, which is run once."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    sql: Annotated[
        str,
        Field(
            description="A SELECT of Spark SQL over the names in `from`: joins, `group by`, window functions, `order by`, `limit`."
        ),
    ]
    relations: Annotated[
        dict[str, QueryRelationConfig],
        Field(
            alias="from", description="Streams, tables and views, under their names in the query."
        ),
    ]
    rows_max: Annotated[
        int, Field(description="Rows to return at most. If there are more, `truncated` is true.")
    ] = limits.QUERY_ROWS_DEFAULT
    seconds_max: Annotated[
        Seconds, Field(description="Time after which the query is ended without rows.")
    ] = in_seconds(limits.QUERY_MS_DEFAULT)

    def to_domain(self) -> SqlQuery:
        """Return the query, which the engine validates. Raises ValidationFailed."""
        kinds = relations_by_kind(self.relations)
        return SqlQuery(
            sql=self.sql,
            streams={name: one.to_stream() for name, one in kinds["stream"].items()},
            tables={
                name: ViewTable(stream=one.table or "", columns=one.columns)
                for name, one in kinds["table"].items()
            },
            views={name: one.view or "" for name, one in kinds["view"].items()},
            rows_max=self.rows_max,
            time_limit_ms=optional_ms(self.seconds_max) or 0,
        )


class QueryAsOf(BaseModel):
    """Records of a relation that the rows of a query include."""

    positions: Annotated[
        dict[str, int],
        Field(description="Next offset by shard: all before it are included, from the start on."),
    ]
    revision: Annotated[int | None, Field(description="Revision of a view; null for a stream.")]
    batch: Annotated[int | None, Field(description="Batch of a view; null for a stream.")]

    @classmethod
    def of(cls, read: RelationRead) -> Self:
        """Return what was read of a relation."""
        return cls(positions=shards_out(read.positions), revision=read.revision, batch=read.batch)


class QueryOut(Mapped):
    """A query and its state, without its rows."""

    renamed = {"id": "job_id"}

    id: Annotated[str, Field(description="Id by which it is read and cancelled.")]
    state: JobState
    requested_state: Annotated[RequestedState, Field(description="Pending action.")]
    waiting_for: Annotated[
        WaitReason | None, Field(description="Why it makes no progress; null if it does.")
    ]
    failure: Annotated[str, Field(description="Why it failed; empty if it did not.")]
    created_at: Time
    started_at: Time | None
    ended_at: Time | None

    @classmethod
    def of(cls, query: Query) -> Self:
        """Return a query with its state."""
        return cls.from_domain(query.job, waiting_for=query.waiting_for)


class QueryResultOut(QueryOut):
    """A query with its rows, once it is done."""

    columns: Annotated[
        list[ViewColumnOut], Field(description="Columns of the rows, in the order of the query.")
    ]
    rows: Annotated[
        list[dict[str, Any]],
        Field(description="Each is an object with the columns. Empty until the query is done."),
    ]
    truncated: Annotated[bool, Field(description="The query has more rows than are returned.")]
    as_of: Annotated[
        dict[str, QueryAsOf], Field(description="Records that the rows include, by relation.")
    ]
    records: Annotated[
        dict[str, int],
        Field(description="Records, or rows of a view, that were read, by relation."),
    ]
    seconds: Annotated[Seconds | None, Field(description="Duration of the last attempt.")]

    @classmethod
    def of(cls, query: Query) -> Self:
        """Return a query with its result, without its rows."""
        return cls.from_domain(
            query.job, waiting_for=query.waiting_for, rows=[], **_result_fields(query)
        )


def _result_fields(query: Query) -> Mapping[str, Any]:
    result = query.result
    if result is None:
        return {"columns": [], "truncated": False, "as_of": {}, "records": {}, "seconds": None}
    return {
        "columns": [ViewColumnOut.from_domain(column) for column in result.columns],
        "truncated": result.truncated,
        "as_of": {name: QueryAsOf.of(read) for name, read in result.read.items()},
        "records": {name: read.records for name, read in result.read.items()},
        "seconds": in_seconds(result.milliseconds),
    }
