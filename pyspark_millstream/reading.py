"""Reading: a stream's records as a batch, or micro-batch by micro-batch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_millstream.client import Client
from pyspark_millstream.errors import OptionError
from pyspark_millstream.options import Options
from pyspark_millstream.ranges import (
    Positions,
    ShardExtent,
    Span,
    between,
    earliest,
    latest,
    next_positions,
    split,
)
from pyspark_millstream.schema import as_records

Bound = EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual | In
"""A filter that can say which offsets or shards to read."""


class SpanPartition(InputPartition):
    """What one task reads."""

    def __init__(self, span: Span) -> None:
        super().__init__((span.shard, span.first, span.end))
        self.span = span


def read_span(options: Options, span: Span) -> Iterator[pa.RecordBatch]:
    """In a task: the records of a span."""
    with Client(options) as client:
        yield from as_records(span.shard, client.read(span))


class BatchReader(DataSourceReader):
    """Reads what lies between two points when the query starts."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._bounds: list[Bound] = []

    def partitions(self) -> Sequence[InputPartition]:
        with Client(self._options) as client:
            spans = [
                Span(extent.shard, self._first(client, extent), self._end(client, extent))
                for extent in client.extents()
            ]
        kept = [_within(span, self._bounds) for span in spans]
        parts = split([span for span in kept if span], self._options.records_per_partition)
        return [SpanPartition(span) for span in parts]

    def _first(self, client: Client, extent: ShardExtent) -> int:
        options, told = self._options, self._options.starting_offsets
        if options.starting_time_ms is not None:
            return client.offset_at(extent.shard, options.starting_time_ms)
        if isinstance(told, dict):
            return told.get(extent.shard, extent.start)
        return extent.next if told == "latest" else extent.start

    def _end(self, client: Client, extent: ShardExtent) -> int:
        options, told = self._options, self._options.ending_offsets
        if options.ending_time_ms is not None:
            return client.offset_at(extent.shard, options.ending_time_ms)
        if isinstance(told, dict):
            return min(extent.next, told.get(extent.shard, extent.next))
        return extent.start if told == "earliest" else extent.next

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpanPartition)
        return read_span(self._options, partition.span)


class FilteringReader(BatchReader):
    """Leaves out shards and offsets that the query does not want. Spark checks the rest itself."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for one in filters:
            if isinstance(one, Bound) and one.attribute in (("shard",), ("offset",)):
                self._bounds.append(one)
            else:
                yield one


def _within(span: Span, bounds: Iterable[Bound]) -> Span | None:
    """The part of a span that the filters leave, as one stretch; None when nothing is left."""
    first, end = span.first, span.end
    for bound in bounds:
        if bound.attribute == ("shard",):
            if not _holds(bound, span.shard):
                return None
            continue
        match bound:
            case EqualTo(value=offset):
                first, end = max(first, offset), min(end, offset + 1)
            case In(value=offsets):
                first, end = max(first, min(offsets)), min(end, max(offsets) + 1)
            case GreaterThan(value=offset):
                first = max(first, offset + 1)
            case GreaterThanOrEqual(value=offset):
                first = max(first, offset)
            case LessThan(value=offset):
                end = min(end, offset)
            case LessThanOrEqual(value=offset):
                end = min(end, offset + 1)
    return Span(span.shard, first, end) if first < end else None


def _holds(bound: Bound, shard: int) -> bool:
    match bound:
        case EqualTo(value=value):
            return bool(shard == value)
        case In(value=values):
            return shard in values
        case GreaterThan(value=value):
            return bool(shard > value)
        case GreaterThanOrEqual(value=value):
            return bool(shard >= value)
        case LessThan(value=value):
            return bool(shard < value)
        case LessThanOrEqual(value=value):
            return bool(shard <= value)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream micro-batch by micro-batch; its offsets are the next one of each shard, by number."""

    def __init__(self, options: Options) -> None:
        if isinstance(options.ending_offsets, dict) or options.ending_time_ms is not None:
            raise OptionError("a stream query has no end")
        self._options = options
        self._ceiling: Positions | None = None

    def initialOffset(self) -> dict[str, int]:
        options, told = self._options, self._options.starting_offsets
        with Client(options) as client:
            extents = client.extents()
            if options.starting_time_ms is not None:
                moment = options.starting_time_ms
                return _told({one.shard: client.offset_at(one.shard, moment) for one in extents})
        if isinstance(told, dict):
            return _told(told)
        return _told(earliest(extents) if told == "earliest" else latest(extents))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.records_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with Client(self._options) as client:
            extents = client.extents()
        return _told(next_positions(extents, _read(start), self._ceiling, most))

    def reportLatestOffset(self) -> dict[str, int]:
        with Client(self._options) as client:
            return _told({extent.shard: extent.next for extent in client.extents()})

    def prepareForTriggerAvailableNow(self) -> None:
        with Client(self._options) as client:
            self._ceiling = {extent.shard: extent.next for extent in client.extents()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        spans = split(between(_read(start), _read(end)), self._options.records_per_partition)
        return [SpanPartition(span) for span in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpanPartition)
        return read_span(self._options, partition.span)


def _told(positions: Positions) -> dict[str, int]:
    return {str(shard): offset for shard, offset in sorted(positions.items())}


def _read(told: dict[str, Any]) -> Positions:
    return {int(shard): int(offset) for shard, offset in told.items()}
