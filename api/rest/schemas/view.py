"""View schemas: query, sinks, plan, progress, rows, batches."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from api.native.fields import moment_ms, optional_ms
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import Mapped, MappedConfig, MappedDefinition, MappedDefinitionConfig
from api.rest.schema_base import Config, ListPage, Moment, Seconds, Time, in_seconds
from api.rest.view_fields import (
    DeclaredColumns,
    EventTimeColumn,
    Joined,
    OnBad,
    Positions,
    RowDifferenceOut,
    ViewColumnOut,
    Watermark,
    differences_out,
    joined_out,
    relations_by_kind,
    shards_out,
    time_out,
)
from storage.domain import limits
from storage.domain.streams.start_at import StartAt
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import (
    RevisionReport,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.sources import SourceMode
from storage.domain.views.state import ViewState, state_of
from storage.domain.views.view import (
    BadPolicy,
    LatePolicy,
    View,
    ViewInput,
    ViewQuery,
    ViewSpec,
    ViewTable,
)
from storage.views.engine import ViewStatus

Sql = Annotated[
    str,
    Field(
        description="A SELECT of Spark SQL over the names in `from`, with columns, filters, joins, `group by`, `window` or `session_window`, and aggregates."
    ),
]
RowsMax = Annotated[
    int, Field(description="A view with more rows stops, and keeps the rows that it has.")
]
KeepSeconds = Annotated[
    Seconds | None,
    Field(
        description="Rows whose window ended this long before the watermark are deleted. Null: never."
    ),
]
HistorySeconds = Annotated[
    Seconds,
    Field(
        description="Earlier versions of the rows can be read for so long, with `at` or `at_batch`. 0: not at all."
    ),
]
KeepFormerSeconds = Annotated[
    Seconds,
    Field(
        description="A revision that was replaced is kept up to date this long, so that `POST …/rollbacks` returns to it at once. It costs what the "
        "present one does. At most 30 days."
    ),
]
Late = Annotated[
    LatePolicy,
    Field(
        strict=False,
        description="Records whose windows have all ended before the watermark: `count` them in their rows, or `drop` them.",
    ),
]
Tracking = Annotated[
    SourceMode,
    Field(
        strict=False,
        description="`range`: each row stores the first and the last offset, and the number, of the records of each shard that "
        "contributed to it, and they can be listed. `none`: it does not.",
    ),
]
Failure = Annotated[str, Field(description="Why the last batch failed; empty if it did not.")]
Tables = Annotated[
    dict[str, dict[str, int]],
    Field(
        description="Positions of the tables that the last batch was joined with, by name: of a stream by shard; of a view, its batch by the "
        "number of its revision."
    ),
]
KeyNames = Annotated[
    list[str],
    Field(
        description="Columns that identify a row, in the order in which a read of rows takes their values; an empty name is an "
        "expression that no column shows."
    ),
]


class ViewInputConfig(Mapped, Config):
    """Relation of a query: a stream that it follows, a table or a view. One is given."""

    stream: str | None = None
    table: Annotated[
        str | None,
        Field(
            description="Stream that is read as a table, for joins: the newest record of each key, with `key`, `value` and the `columns`. A "
            "record with empty or null data deletes its key."
        ),
    ] = None
    view: Annotated[
        str | None,
        Field(
            description="Another view, whose rows are read as a table, for joins, with the columns that they have when this view is put."
        ),
    ] = None
    columns: DeclaredColumns = ""
    event_time: EventTimeColumn = ""
    watermark_seconds: Annotated[
        Seconds,
        Field(description="Distance of the watermark behind the newest event time of a shard."),
    ] = in_seconds(limits.VIEW_WATERMARK_MS_DEFAULT)
    idle_seconds: Annotated[
        Seconds,
        Field(
            description="A shard without records for this long does not hold the watermark back."
        ),
    ] = in_seconds(limits.VIEW_IDLE_MS_DEFAULT)
    start: Annotated[
        StartAt,
        Field(
            strict=False,
            description="First record of the rows. `latest`: the first one after the view was created.",
        ),
    ] = StartAt.EARLIEST
    start_time: Annotated[
        Moment | None,
        Field(description="With `time`: start with the first record that arrived then or later."),
    ] = None
    on_bad: OnBad = BadPolicy.NULL


SinkEmit = Annotated[
    Emit,
    Field(
        strict=False,
        description="`changes`: each change of a row. `final`: each row of a window once, when the watermark has passed its end, and later "
        "corrections.",
    ),
]
SinkWhen = Annotated[
    str,
    Field(
        description="A SQL condition on the columns of the rows, as `where` of a match: the sink gets the rows for which it holds. Empty: all."
    ),
]
OncePerKey = Annotated[
    bool,
    Field(description="A row is sent only when it appears among those for which `when` holds."),
]


class ViewSinkConfig(MappedConfig):
    """A stream or a queue that gets the changes of a view's rows: exactly one of the two."""

    domain = ViewSink

    stream: str | None = None
    queue: str | None = None
    emit: SinkEmit = Emit.CHANGES
    when: SinkWhen = ""
    once_per_key: OncePerKey = False


class ViewSinkOut(Mapped):
    """A stream or a queue that gets the changes of a view's rows."""

    stream: str | None
    queue: str | None
    emit: Emit
    when: str
    once_per_key: bool


class ViewConfig(MappedDefinitionConfig):
    """The complete configuration of a view."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    sql: Sql
    inputs: Annotated[
        dict[str, ViewInputConfig],
        Field(
            alias="from",
            description="The stream or the two that are joined, tables, and views, under their names in the query.",
        ),
    ]
    late: Late = LatePolicy.COUNT
    sources: Tracking = SourceMode.NONE
    into: Annotated[
        list[ViewSinkConfig],
        Field(description="Streams and queues that get the changes of the rows."),
    ] = Field(default_factory=list)
    keep_seconds: KeepSeconds = None
    rows_max: RowsMax = limits.VIEW_ROWS_MAX_DEFAULT
    keep_former_seconds: KeepFormerSeconds = 0
    history_seconds: HistorySeconds = 0

    @classmethod
    def from_domain(cls, value: ViewSpec, **others: Any) -> Self:
        """Return the configuration of a specification."""
        query = value.query
        inputs = {
            **{
                name: ViewInputConfig.mapped(one, table=None, view=None)
                for name, one in query.inputs.items()
            },
            **{
                name: ViewInputConfig(view=one.view)
                if one.view
                else ViewInputConfig(table=one.stream, columns=one.columns)
                for name, one in query.tables.items()
            },
        }
        return cls.mapped(query, value, inputs=inputs, **others)

    def to_domain(self) -> ViewSpec:
        """Return the specification, which the engine validates. Raises ValidationFailed."""
        kinds = relations_by_kind(self.inputs)
        return ViewSpec(
            query=ViewQuery(
                sql=self.sql,
                inputs={name: _input_of(one) for name, one in kinds["stream"].items()},
                tables={
                    name: ViewTable(
                        stream=one.table or "", view=one.view or "", columns=one.columns
                    )
                    for name, one in (kinds["table"] | kinds["view"]).items()
                },
                late=self.late,
                sources=self.sources,
            ),
            into=tuple(sink.to_domain() for sink in self.into),
            keep_ms=optional_ms(self.keep_seconds),
            rows_max=self.rows_max,
            keep_former_ms=optional_ms(self.keep_former_seconds) or 0,
            history_ms=optional_ms(self.history_seconds) or 0,
        )


def _input_of(config: ViewInputConfig) -> ViewInput:
    """Return the stream of a query."""
    start_time = config.start_time
    return ViewInput(
        stream=config.stream or "",
        columns=config.columns,
        event_time=config.event_time,
        watermark_ms=optional_ms(config.watermark_seconds) or 0,
        idle_ms=optional_ms(config.idle_seconds) or 0,
        start=config.start,
        start_time_ms=None if start_time is None else moment_ms(start_time),
        on_bad=config.on_bad,
    )


class ViewTableOut(BaseModel):
    """A stream that a query reads as a table under a name."""

    table: str
    columns: str


class ViewAsTableOut(BaseModel):
    """A view whose rows a query reads as a table under a name."""

    view: str


class ViewInputOut(Mapped):
    """The stream that a query reads under a name."""

    stream: str
    columns: str
    event_time: str
    watermark_seconds: Seconds
    idle_seconds: Seconds
    start: StartAt
    start_time: Time | None
    on_bad: BadPolicy


class ViewOut(MappedDefinition):
    """A view: its configuration and its version, which is the ETag."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    sql: str
    inputs: Annotated[dict[str, ViewInputOut | ViewTableOut | ViewAsTableOut], Field(alias="from")]
    late: LatePolicy
    sources: SourceMode
    into: list[ViewSinkOut]
    keep_seconds: Seconds | None
    rows_max: int
    keep_former_seconds: Seconds
    history_seconds: Seconds
    paused: bool
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: View, **others: Any) -> Self:
        query = value.spec.query
        inputs = {
            **{name: ViewInputOut.from_domain(one) for name, one in query.inputs.items()},
            **{
                name: ViewAsTableOut(view=one.view)
                if one.view
                else ViewTableOut(table=one.stream, columns=one.columns)
                for name, one in query.tables.items()
            },
        }
        return cls.mapped(query, value.spec, value, inputs=inputs, **others)


class ViewStored(PutOutcome, ViewOut):
    """A view after a PUT, what the PUT changed, and the columns of its rows."""

    output: list[ViewColumnOut]
    key: KeyNames


class ViewPage(ListPage[ViewOut]):
    """Views by name."""


def planned(plan: ViewPlan) -> dict[str, Any]:
    """Return the fields of a plan in the answer to a PUT."""
    return {
        "output": [ViewColumnOut.from_domain(column) for column in plan.columns],
        "key": [column.name for column in plan.key],
    }


class ViewProgressOut(BaseModel):
    """Progress of a revision: the records that its rows include.

    `batch` counts batches. `gaps` are records that retention had deleted before they were read.
    """

    positions: Positions
    joined: Joined
    tables: Tables
    watermark: Watermark
    batch: int
    rows: int
    records: int
    late: int
    bad: int
    gaps: int
    changed_at: Annotated[Time | None, Field(description="Time of the last batch.")]

    @classmethod
    def of(cls, progress: ViewProgress) -> Self:
        """Return the progress on the wire."""
        counts = progress.counts
        return cls(
            positions=shards_out(progress.positions),
            joined=joined_out(progress),
            tables={name: shards_out(at) for name, at in progress.tables.items()},
            watermark=time_out(progress.watermark_ms),
            batch=progress.batch,
            rows=progress.rows,
            records=counts.records,
            late=counts.late,
            bad=counts.bad,
            gaps=counts.gaps,
            changed_at=time_out(progress.changed_at_ms or None),
        )


class ViewReportOut(BaseModel):
    """Comparison of a rebuilt revision with the one that it replaced.

    `exact`: both had read the stream up to the same offsets. Fewer `records` than `former_records`: retention has deleted the others.
    `samples` are the first rows that differ, at most 20 and 64 KiB.
    """

    former: Annotated[int, Field(description="Number of the revision that it replaced.")]
    exact: bool
    records: int
    former_records: int
    added: int
    removed: int
    changed: int
    samples: list[RowDifferenceOut]

    @classmethod
    def of(cls, report: RevisionReport) -> Self:
        """Return the report on the wire."""
        return cls(
            former=report.former,
            exact=report.is_exact,
            records=report.records,
            former_records=report.former_records,
            added=report.added,
            removed=report.removed,
            changed=report.changed,
            samples=differences_out(report),
        )


class ViewRevisionOut(BaseModel):
    """A revision of a view: its query at one time, with the plan and the progress of its rows."""

    revision: Annotated[int, Field(description="Number of the revision.")]
    output: list[ViewColumnOut]
    key: KeyNames
    window_seconds: Annotated[
        Seconds | None, Field(description="Length of the windows; null without windows.")
    ]
    step_seconds: Annotated[
        Seconds | None,
        Field(description="Time between the starts of windows; null without windows."),
    ]
    session_gap_seconds: Annotated[
        Seconds | None,
        Field(
            description="Time without records after which a session ends; null without sessions."
        ),
    ]
    join_seconds: Annotated[
        dict[str, Seconds],
        Field(
            description="For how long in event time a record of each stream waits for those that match it; empty without a join."
        ),
    ]
    aggregates: Annotated[
        list[str], Field(description="Aggregates, and the partial aggregates that rows store.")
    ]
    stopped: Annotated[
        bool, Field(description="No batch follows until the view is put, or paused and resumed.")
    ]
    failure: Failure
    progress: ViewProgressOut
    report: Annotated[
        ViewReportOut | None,
        Field(description="Comparison with the rows that it replaced, if it is a rebuild."),
    ]

    @classmethod
    def of(cls, revision: ViewRevision) -> Self:
        """Return the revision on the wire."""
        return cls(**revision_fields(revision))


class ViewFormerOut(ViewRevisionOut):
    """The revision that the present one has replaced, which is kept up to date for a while."""

    sql: str
    until: Annotated[Time | None, Field(description="Time at which it is deleted.")]

    @classmethod
    def of(cls, revision: ViewRevision) -> Self:
        """Return the revision on the wire."""
        return cls(
            **revision_fields(revision),
            sql=revision.query.sql,
            until=time_out(revision.former_until_ms),
        )


def revision_fields(revision: ViewRevision) -> dict[str, Any]:
    """Return the fields of a revision on the wire."""
    plan = revision.plan
    length_ms, step_ms = plan.window_ms or (None, None)
    gap_ms = plan.session_gap_ms
    return {
        "revision": revision.number,
        **planned(plan),
        "window_seconds": None if length_ms is None else in_seconds(length_ms),
        "step_seconds": None if step_ms is None else in_seconds(step_ms),
        "session_gap_seconds": None if gap_ms is None else in_seconds(gap_ms),
        "join_seconds": {name: in_seconds(ms) for name, ms in plan.join_waits_ms.items()},
        "aggregates": list(plan.aggregates),
        "stopped": revision.is_stopped,
        "failure": revision.failure,
        "progress": ViewProgressOut.of(revision.progress),
        "report": None if revision.report is None else ViewReportOut.of(revision.report),
    }


class ViewSinkState(Mapped):
    """Messages of a sink: those that wait, and those that it got."""

    sink: Annotated[str, Field(description="Kind and name, such as `queue:alerts`.")]
    pending: int
    sent: int
    failure: Annotated[
        str, Field(description="Why the last call to the sink failed; empty if it did not.")
    ]


class ViewDetail(ViewOut, ViewRevisionOut):
    """A view with the revision that answers reads, and the one that replaces it."""

    state: Annotated[
        ViewState,
        Field(
            description="`running`; `building`: another revision is being built; `paused`; `stopped`: batches fail, `failure` says why."
        ),
    ]
    building: Annotated[
        ViewRevisionOut | None,
        Field(description="Revision that replaces the present one when it has caught up."),
    ]
    former: Annotated[
        ViewFormerOut | None,
        Field(
            description="Revision that the present one has replaced, to which a rollback returns."
        ),
    ]
    sinks: Annotated[list[ViewSinkState], Field(description="State of each of `into`.")]

    @classmethod
    def of_status(cls, status: ViewStatus) -> Self:
        """Return a view with its revisions."""
        view, active, building = status.view, status.active, status.building
        return cls.from_domain(
            view,
            **revision_fields(active),
            state=state_of(view, active, building),
            building=None if building is None else ViewRevisionOut.of(building),
            former=None if status.former is None else ViewFormerOut.of(status.former),
            sinks=[ViewSinkState.from_domain(sink) for sink in status.sinks],
        )
