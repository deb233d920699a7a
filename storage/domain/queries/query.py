"""Query: Spark SQL that runs once, over streams, tables and the rows of views.

streams ──▶ ranges, fixed when it is submitted ──┐
tables ───▶ newest record of each key in these ──┼──▶ Spark ──▶ rows, and the positions that they include
views ────▶ rows of one batch, when it runs ─────┘
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.definitions import check_range, check_seconds
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import LogId
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.start_at import StartAt, start_faults
from storage.domain.views.view import BadPolicy, ViewTable, name_faults, sql_faults, stream_faults

REFUSED_AT = "refused_at"
"""Member of the progress of a job whose query is refused: a JSON pointer into the query."""


class QueryStream(msgspec.Struct, frozen=True, kw_only=True):
    """Stream that a query reads under a name: its records that arrived before `end_time_ms`.

    `columns`, `event_time` and `on_bad` are those of a view's stream. Without an end it is read up to the last record that there is
    at submission.
    """

    stream: str
    columns: str = ""
    event_time: str = ""
    start: StartAt = StartAt.EARLIEST
    start_time_ms: int | None = None
    end_time_ms: int | None = None
    on_bad: BadPolicy = BadPolicy.NULL

    def faults(self, pointer: str) -> list[FieldFault]:
        """Return the faults of the stream at `pointer`."""
        faults = stream_faults(pointer, "stream", self.stream, self.columns)
        of_start = start_faults(self.start, self.start_time_ms)
        if self.start is StartAt.LATEST:
            of_start = [FieldFault("/start", "A query reads the records that there are")]
        return [*faults, *(replace(fault, pointer=pointer + fault.pointer) for fault in of_start)]


class SqlQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Query as requested. `views`: names of views, by the names that the query has for them."""

    sql: str
    streams: Mapping[str, QueryStream] = {}
    tables: Mapping[str, ViewTable] = {}
    views: Mapping[str, str] = {}
    rows_max: int = limits.QUERY_ROWS_DEFAULT
    time_limit_ms: int = limits.QUERY_MS_DEFAULT

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations."""
        return (*self.streams, *self.tables, *self.views)

    def sources(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name of each relation that reads a stream, the field, and the stream."""
        yield from ((name, "stream", one.stream) for name, one in self.streams.items())
        yield from ((name, "table", one.stream) for name, one in self.tables.items())

    def check(self) -> None:
        """Raise ValidationFailed with every fault that can be seen without Spark."""
        faults = [
            *sql_faults(self.sql, self.relations),
            *check_range("/rows_max", self.rows_max, 1, limits.QUERY_ROWS_MAX),
            *check_seconds(
                "/seconds_max", self.time_limit_ms, limits.SECOND_MS, limits.QUERY_MS_MAX
            ),
        ]
        if not 1 <= len(self.relations) <= limits.QUERY_RELATIONS_MAX:
            detail = f"Name 1 to {limits.QUERY_RELATIONS_MAX} relations"
            faults.append(FieldFault("/from", detail, "out_of_range"))
        for name, stream in self.streams.items():
            faults += stream.faults(f"/from/{name}")
        for name, table in self.tables.items():
            faults += table.faults(f"/from/{name}")
        for name, view in self.views.items():
            faults += name_faults(f"/from/{name}/view", view)
        if faults:
            raise ValidationFailed(None, *faults)


class StreamRanges(msgspec.Struct, frozen=True):
    """Offsets of a stream that a query reads, by shard; those of a shard may be none."""

    stream_id: LogId
    ranges: tuple[OffsetRange, ...]

    @property
    def records(self) -> int:
        """Number of offsets."""
        return sum(within.end - within.first for within in self.ranges)

    @property
    def positions(self) -> dict[int, int]:
        """Next offset of each shard."""
        return {within.shard: within.end for within in self.ranges}

    def pieces(self) -> list[OffsetRange]:
        """Return the ranges, cut into pieces that are read separately."""
        step = max(limits.QUERY_PIECE_RECORDS, self.records // limits.QUERY_PIECES_MAX)
        return [
            OffsetRange(within.shard, first, min(first + step, within.end))
            for within in self.ranges
            for first in range(within.first, within.end, step)
        ]


class QuerySpec(msgspec.Struct, frozen=True, kw_only=True):
    """Query whose records are fixed: specification of its job."""

    query: SqlQuery
    reads: Mapping[str, StreamRanges] = {}
