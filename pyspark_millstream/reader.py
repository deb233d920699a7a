"""Readers: a stream's records as a batch, or micro-batch by micro-batch."""

import logging
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

from pyspark_millstream.arrow_batches import as_records
from pyspark_millstream.client import Client
from pyspark_millstream.errors import DataLost, OptionError
from pyspark_millstream.filters import OffsetAt, narrowed
from pyspark_millstream.options import Options
from pyspark_millstream.ranges import (
    Extents,
    Positions,
    ShardExtent,
    Span,
    adrift,
    between,
    beyond_end,
    earliest,
    latest,
    next_positions,
    since,
    split,
)

log = logging.getLogger("millstream")

CheckpointOffset = dict[str, Any]
_STREAM = "stream"


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
        yield from as_records(partition.span.shard, Client(options).read(partition.span))


class BatchReader(DataSourceReader):
    """Reader of the records between two positions, as of the query's start."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        client = Client(self._options)
        extents = client.extents()
        _check_offsets(extents, self._options)
        spans = [self._span(client, extents.stream_id, extent) for extent in extents.shards]
        narrowed_spans = [self._selected(client, span) for span in spans]
        parts = split(
            [span for span in narrowed_spans if span], self._options.records_per_partition
        )
        return [SpanPartition(span) for span in parts]

    def _span(self, client: Client, stream_id: str, extent: ShardExtent) -> Span:
        offset_at = partial(client.offset_at, stream_id, extent.shard)
        return Span(
            extent.shard, self._first(offset_at, extent), self._end(offset_at, extent), stream_id
        )

    def _first(self, offset_at: OffsetAt, extent: ShardExtent) -> int:
        options, starting = self._options, self._options.starting_offsets
        if options.starting_time_ms is not None:
            return offset_at(options.starting_time_ms)
        if isinstance(starting, dict):
            return starting.get(extent.shard, extent.start)
        return extent.next if starting == "latest" else extent.start

    def _end(self, offset_at: OffsetAt, extent: ShardExtent) -> int:
        options, ending = self._options, self._options.ending_offsets
        if options.ending_time_ms is not None:
            return offset_at(options.ending_time_ms)
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
        offset_at = partial(client.offset_at, span.stream_id, span.shard)
        return narrowed(span, self._filters, offset_at)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of micro-batches.

    Its offsets are the stream's id and the next offset of each shard.
    """

    def __init__(self, options: Options) -> None:
        if isinstance(options.ending_offsets, dict) or options.ending_time_ms is not None:
            raise OptionError("a streaming query cannot set an end")
        self._options = options
        self._ceiling: Extents | None = None

    def initialOffset(self) -> CheckpointOffset:
        client, options = Client(self._options), self._options
        extents = client.extents()
        _check_offsets(extents, options)
        return encode_offset(extents.stream_id, self._initial_positions(client, extents))

    def _initial_positions(self, client: Client, extents: Extents) -> Positions:
        options, starting = self._options, self._options.starting_offsets
        if options.starting_time_ms is not None:
            offset_at = partial(client.offset_at, extents.stream_id)
            moment = options.starting_time_ms
            offsets = {one.shard: offset_at(one.shard, moment) for one in extents.shards}
            return since(extents.shards, offsets)
        if isinstance(starting, dict):
            return earliest(extents.shards) | starting
        return earliest(extents.shards) if starting == "earliest" else latest(extents.shards)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.records_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: CheckpointOffset, limit: ReadLimit) -> CheckpointOffset:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        extents = Client(self._options).extents()
        positions = self._followed(extents, *decode_offset(start))
        ceiling = self._ceiling
        if ceiling is not None and ceiling.stream_id != extents.stream_id:
            ceiling = self._ceiling = extents
        ends = None if ceiling is None else latest(ceiling.shards)
        return encode_offset(
            extents.stream_id, next_positions(extents.shards, positions, ends, most)
        )

    def _followed(self, extents: Extents, stream_id: str, positions: Positions) -> Positions:
        """Return where to read on: at `positions`, unless records were lost.

        A checkpoint of an earlier version has no stream id, and is taken as one of the present stream. Raises DataLost
        unless failOnDataLoss is off.
        """
        name = self._options.stream
        if stream_id not in ("", extents.stream_id):
            self._lost(f"stream {name!r} was deleted, and another stream has its name")
            return earliest(extents.shards)
        for extent in beyond_end(extents.shards, positions):
            self._lost(
                f"shard {extent.shard} of stream {name!r} ends at offset {extent.next}, before "
                f"offset {positions[extent.shard]} of the checkpoint"
            )
            positions = positions | {extent.shard: extent.next}
        if self._options.fail_on_data_loss:
            _check_followed(extents.shards, positions, self._options)
        return positions

    def _lost(self, detail: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLost(detail)
        log.warning("%s; the query continues without the lost records", detail)

    def reportLatestOffset(self) -> CheckpointOffset:
        extents = Client(self._options).extents()
        return encode_offset(extents.stream_id, latest(extents.shards))

    def prepareForTriggerAvailableNow(self) -> None:
        self._ceiling = Client(self._options).extents()

    def partitions(
        self, start: CheckpointOffset, end: CheckpointOffset
    ) -> Sequence[InputPartition]:
        (start_id, positions), (stream_id, ends) = decode_offset(start), decode_offset(end)
        if start_id not in ("", stream_id):  # the whole of another stream, as failOnDataLoss allows
            positions = {}
        spans = between(positions, ends, stream_id)
        return [SpanPartition(span) for span in split(spans, self._options.records_per_partition)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)


def _check_offsets(extents: Extents, options: Options) -> None:
    """Raise OptionError for shards that do not exist, and for offsets beyond their ends."""
    if extents.missing:
        raise OptionError(f"'shards': shard {min(extents.missing)} does not exist")
    ends = latest(extents.shards)
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


def encode_offset(stream_id: str, positions: Positions) -> CheckpointOffset:
    """Return the form of a position in the checkpoint: the stream's id, and offsets by shard."""
    offsets = {str(shard): offset for shard, offset in sorted(positions.items())}
    return {_STREAM: stream_id, **offsets}


def decode_offset(offset: CheckpointOffset) -> tuple[str, Positions]:
    """Return the stream's id, which earlier checkpoints lack, and the offsets by shard."""
    positions = {int(shard): int(at) for shard, at in offset.items() if shard != _STREAM}
    return str(offset.get(_STREAM, "")), positions
