"""View: a SQL query over a stream or a join of two, whose rows are kept up to date.

    records ──▶ batch ──▶ partial aggregates ──▶ merged with the rows of their keys ──▶ one transaction:
                                                                       rows, positions, watermark, counts

A revision is the query at one time: its rows, and the positions that they include. A change of the query starts a new one beside
the present one, which answers until the new one has caught up.

    building ──▶ active ──▶ former, with `keep_former_ms` ──▶ deleted after that time, or for the next former one
        ▲                     │
        └───── rollback ──────┘
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.definitions import check_range, check_seconds
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import ViewName, check_name
from storage.domain.streams.start_at import StartAt, start_faults
from storage.domain.views.sink import ViewSink, sink_faults
from storage.domain.views.sources import SourceMode

RELATION = re.compile(r"[a-z_][a-z0-9_]{0,63}", re.ASCII)


class LatePolicy(StrEnum):
    """Treatment of late records: those whose windows have all ended before the watermark.

    count: they change their rows as others do. drop: they change nothing. Both are counted.
    """

    COUNT = "count"
    DROP = "drop"


class BadPolicy(StrEnum):
    """Treatment of records whose data is not JSON of the declared columns.

    null: the columns that cannot be read are null. skip: the record is left out. Both are counted.
    """

    NULL = "null"
    SKIP = "skip"


class ViewInput(msgspec.Struct, frozen=True, kw_only=True):
    """Stream that a query reads under a name.

    `columns` are those of the JSON data, as Spark DDL, beside the columns of every record. `event_time` is the one of them that
    has the event time; empty: the record's own, or its arrival. `watermark_ms`: by how much the
    watermark is behind the newest event time of a shard. `idle_ms`: a shard without records for so long does not hold it back.
    """

    stream: str
    columns: str = ""
    event_time: str = ""
    watermark_ms: int = limits.VIEW_WATERMARK_MS_DEFAULT
    idle_ms: int = limits.VIEW_IDLE_MS_DEFAULT
    start: StartAt = StartAt.EARLIEST
    start_time_ms: int | None = None
    on_bad: BadPolicy = BadPolicy.NULL

    def faults(self, pointer: str) -> list[FieldFault]:
        """Return the faults of the input at `pointer`."""
        faults = [
            *check_seconds(
                f"{pointer}/watermark_seconds", self.watermark_ms, 0, limits.VIEW_TIME_MS_MAX
            ),
            *check_seconds(
                f"{pointer}/idle_seconds", self.idle_ms, limits.SECOND_MS, limits.VIEW_TIME_MS_MAX
            ),
        ]
        faults += stream_faults(pointer, "stream", self.stream, self.columns)
        of_start = start_faults(self.start, self.start_time_ms)
        return [*faults, *(replace(fault, pointer=pointer + fault.pointer) for fault in of_start)]


class ViewTable(msgspec.Struct, frozen=True, kw_only=True):
    """Table of a query, under a name: of a stream, or the rows of another view.

    Of a stream it has the newest record of each key. `columns` are those of the JSON data, as Spark DDL, beside `key` and `value`. A record
    with empty or null data deletes its key; one without a key is ignored. Of a view, `columns` are those that its rows had when the query
    was put.
    """

    stream: str = ""
    view: str = ""
    columns: str = ""

    def faults(self, pointer: str) -> list[FieldFault]:
        """Return the faults of the table at `pointer`."""
        if self.view:
            return name_faults(f"{pointer}/view", self.view)
        return stream_faults(pointer, "table", self.stream, self.columns)


def stream_faults(pointer: str, field: str, stream: str, columns: str) -> list[FieldFault]:
    """Return the faults of a relation's stream, which is in a field, and of its columns."""
    faults = name_faults(f"{pointer}/{field}", stream)
    if len(columns) > limits.VIEW_COLUMNS_CHARACTERS_MAX:
        most = limits.VIEW_COLUMNS_CHARACTERS_MAX
        faults.append(FieldFault(f"{pointer}/columns", f"At most {most} characters"))
    return faults


def name_faults(pointer: str, name: str) -> list[FieldFault]:
    """Return the faults of a name at `pointer`."""
    try:
        check_name(name)
    except ValidationFailed as error:
        return [FieldFault(pointer, error.detail)]
    return []


def sql_faults(sql: str, relations: Iterable[str]) -> list[FieldFault]:
    """Return the faults of a query's text and of the names of its relations."""
    faults = []
    if not sql.strip():
        faults.append(FieldFault("/sql", "Must not be empty"))
    if len(sql) > limits.SQL_CHARACTERS_MAX:
        faults.append(FieldFault("/sql", f"At most {limits.SQL_CHARACTERS_MAX} characters"))
    if not all(map(RELATION.fullmatch, relations)):
        detail = "A relation's name has a-z, 0-9 and underscore, at most 64 characters"
        faults.append(FieldFault("/from", detail))
    return faults


class ViewQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Query of a view: what decides its rows. A change of it is another revision.

    `inputs`: one stream, or the two that it joins, by their names in the query.
    """

    sql: str
    inputs: Mapping[str, ViewInput]
    tables: Mapping[str, ViewTable] = {}
    late: LatePolicy = LatePolicy.COUNT
    sources: SourceMode = SourceMode.NONE

    @property
    def relation(self) -> str:
        """Name of the first stream, whose scan computes the view: in the order of names."""
        return min(self.inputs)

    @property
    def input(self) -> ViewInput:
        """The first stream."""
        return self.inputs[self.relation]

    @property
    def joined(self) -> Mapping[str, ViewInput]:
        """The stream that the first one is joined with, by its name; empty without a join."""
        return {name: one for name, one in self.inputs.items() if name != self.relation}

    @property
    def is_join(self) -> bool:
        """Return whether it joins two streams."""
        return len(self.inputs) > 1

    @property
    def streams(self) -> list[str]:
        """The streams that it reads, also as tables."""
        of_inputs = [one.stream for one in self.inputs.values()]
        return [*of_inputs, *(table.stream for table in self.tables.values() if table.stream)]

    @property
    def views(self) -> list[str]:
        """The views whose rows it reads as tables."""
        return [table.view for table in self.tables.values() if table.view]

    def faults(self) -> list[FieldFault]:
        """Return the faults of the query, without those that only Spark sees."""
        faults = sql_faults(self.sql, (*self.inputs, *self.tables))
        if not 1 <= len(self.inputs) <= limits.VIEW_STREAMS_MAX:
            detail = f"Name one stream, or {limits.VIEW_STREAMS_MAX} that are joined"
            faults.append(FieldFault("/from", detail))
        if self.is_join and self.sources is not SourceMode.NONE:
            detail = "The sources of a row are not tracked in a join of streams"
            faults.append(FieldFault("/sources", detail, "conflict"))
        if self.is_join and self.late is LatePolicy.DROP:
            detail = "Late records of a join of streams are counted, and cannot be dropped"
            faults.append(FieldFault("/late", detail, "conflict"))
        if len(self.tables) > limits.VIEW_TABLES_MAX:
            detail = f"At most {limits.VIEW_TABLES_MAX} tables"
            faults.append(FieldFault("/from", detail, "out_of_range"))
        for relation, input_ in self.inputs.items():
            faults += input_.faults(f"/from/{relation}")
        for relation, table in self.tables.items():
            faults += table.faults(f"/from/{relation}")
        return faults


class ViewSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a view as requested by its owner.

    `into`: streams and queues that get the changes of the rows. `keep_ms`: windows that ended so long before the watermark are deleted;
    None keeps them. A view with more than `rows_max` rows stops. `keep_former_ms`: a revision that was replaced is kept up to date for so
    long, to return to it. `history_ms`: earlier versions of rows can be read for so long.
    """

    query: ViewQuery
    into: tuple[ViewSink, ...] = ()
    keep_ms: int | None = None
    rows_max: int = limits.VIEW_ROWS_MAX_DEFAULT
    keep_former_ms: int = 0
    history_ms: int = 0
    paused: bool = False

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *self.query.faults(),
            *check_range("/rows_max", self.rows_max, 1, limits.VIEW_ROWS_MAX_MAX),
            *check_seconds(
                "/keep_former_seconds", self.keep_former_ms, 0, limits.VIEW_FORMER_MS_MAX
            ),
            *check_seconds("/history_seconds", self.history_ms, 0, limits.VIEW_HISTORY_MS_MAX),
        ]
        read = {one.stream for one in self.query.inputs.values()}
        faults += sink_faults(self.into, read, "/into")
        if self.keep_ms is not None:
            faults += check_seconds(
                "/keep_seconds", self.keep_ms, limits.SECOND_MS, limits.VIEW_TIME_MS_MAX
            )
        if faults:
            raise ValidationFailed(None, *faults)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A view of a namespace. `view_id` is unique for all time."""

    view_id: str
    name: ViewName
    spec: ViewSpec
    version: int
    created_at_ms: int
    changed_at_ms: int
