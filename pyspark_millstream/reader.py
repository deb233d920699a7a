"""Readers: a stream's records as a batch, or micro-batch by micro-batch."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_millstream.client import Client
from pyspark_millstream.errors import DataLost, OptionError
from pyspark_millstream.filters import narrowed
from pyspark_millstream.options import Options
from pyspark_millstream.ranges import (
    Positions,
    ShardExtent,
    Span,
    adrift,
    between,
    earliest,
    latest,
    next_positions,
    since,
    split,
)
from pyspark_millstream.schema import as_records


class SpanPartition(InputPartition):
    """The span that one task reads."""

    def __init__(self, span: Span) -> None:
        super().__init__((span.shard, span.first, span.end))
        self.span = span


def read_partition(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task's span.

    Where there is nothing to read, Spark creates a partition itself, which is ignored.
    """
    if isinstance(partition, SpanPartition):
        with Client(options) as client:
            yield from as_records(partition.span.shard, client.read(partition.span))


class BatchReader(DataSourceReader):
    """Reader of the records between two positions, as of the query's start."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        with Client(self._options) as client:
            extents = client.extents()
            _check_offsets(extents, self._options)
            spans = [
                Span(extent.shard, self._first(client, extent), self._end(client, extent))
                for extent in extents
            ]
            narrowed_spans = [self._selected(client, span) for span in spans]
        parts = split(
            [span for span in narrowed_spans if span], self._options.records_per_partition
        )
        return [SpanPartition(span) for span in parts]

    def _first(self, client: Client, extent: ShardExtent) -> int:
        options, starting = self._options, self._options.starting_offsets
        if options.starting_time_ms is not None:
            return client.offset_at(extent.shard, options.starting_time_ms)
        if isinstance(starting, dict):
            return starting.get(extent.shard, extent.start)
        return extent.next if starting == "latest" else extent.start

    def _end(self, client: Client, extent: ShardExtent) -> int:
        options, ending = self._options, self._options.ending_offsets
        if options.ending_time_ms is not None:
            return client.offset_at(extent.shard, options.ending_time_ms)
        if isinstance(ending, dict):
            return ending.get(extent.shard, extent.next)
        return extent.start if ending == "earliest" else extent.next

    def _selected(self, client: Client, span: Span) -> Span | None:
        return span if span.first < span.end else None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)


class FilteringReader(BatchReader):
    """Reader that skips shards, offsets and times that the query filters out."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._filters: list[Filter] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep the filters, and return all of them so that Spark still checks them.

        The part of a shard that they select here is one contiguous range.
        """
        self._filters = filters
        return filters

    def _selected(self, client: Client, span: Span) -> Span | None:
        return narrowed(span, self._filters, partial(client.offset_at, span.shard))


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of micro-batches; its offsets are the next offset of each shard, by number."""

    def __init__(self, options: Options) -> None:
        if isinstance(options.ending_offsets, dict) or options.ending_time_ms is not None:
            raise OptionError("a streaming query cannot set an end")
        self._options = options
        self._ceiling: Positions | None = None

    def initialOffset(self) -> dict[str, int]:
        options, starting = self._options, self._options.starting_offsets
        with Client(options) as client:
            extents = client.extents()
            _check_offsets(extents, options)
            if options.starting_time_ms is not None:
                moment = options.starting_time_ms
                offsets = {one.shard: client.offset_at(one.shard, moment) for one in extents}
                return _encode_positions(since(extents, offsets))
        if isinstance(starting, dict):
            return _encode_positions(earliest(extents) | starting)
        return _encode_positions(earliest(extents) if starting == "earliest" else latest(extents))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.records_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with Client(self._options) as client:
            extents = client.extents()
        positions = _decode_positions(start)
        if self._options.fail_on_data_loss:
            _check_followed(extents, positions, self._options)
        return _encode_positions(next_positions(extents, positions, self._ceiling, most))

    def reportLatestOffset(self) -> dict[str, int]:
        with Client(self._options) as client:
            return _encode_positions({extent.shard: extent.next for extent in client.extents()})

    def prepareForTriggerAvailableNow(self) -> None:
        with Client(self._options) as client:
            self._ceiling = {extent.shard: extent.next for extent in client.extents()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        spans = split(
            between(_decode_positions(start), _decode_positions(end)),
            self._options.records_per_partition,
        )
        return [SpanPartition(span) for span in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)


def _check_offsets(extents: Sequence[ShardExtent], options: Options) -> None:
    """Raise OptionError for offsets of shards that do not exist, or beyond their ends."""
    ends = {extent.shard: extent.next for extent in extents}
    for name, given in (
        ("startingOffsets", options.starting_offsets),
        ("endingOffsets", options.ending_offsets),
    ):
        for shard, offset in given.items() if isinstance(given, dict) else ():
            if shard not in ends:
                raise OptionError(f"{name!r}: shard {shard} does not exist")
            if offset > ends[shard]:
                raise OptionError(f"{name!r}: shard {shard} ends at offset {ends[shard]}")


def _check_followed(extents: Sequence[ShardExtent], positions: Positions, options: Options) -> None:
    """Raise DataLost when shards expired before they were read to the end."""
    for extent in adrift(extents, positions):
        raise DataLost(
            f"the parents of shard {extent.shard} of stream {options.stream!r} expired before they were fully read"
        )


def _encode_positions(positions: Positions) -> dict[str, int]:
    return {str(shard): offset for shard, offset in sorted(positions.items())}


def _decode_positions(offsets: dict[str, Any]) -> Positions:
    return {int(shard): int(offset) for shard, offset in offsets.items()}
