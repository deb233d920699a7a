"""Seek by time: offsets and positions of the first record since a given time."""

import asyncio

from storage.catalog.catalog import Catalog
from storage.domain.names import LogId, StreamName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.lineage import FULLY_READ, read_frontier
from storage.domain.streams.stream import ReadFrom, ShardRead, ShardState, Stream
from storage.streams.read import RecordReader


async def offset_since(
    reader: RecordReader, name: StreamName, shard: int, time_ms: int, stream_id: LogId | None = None
) -> int:
    """Return the offset of a shard's first record that arrived at `time_ms` or later.

    Without such a record, the next offset to be written. Raises ShardNotFound, StreamRecreated.
    """
    read = await _first_since(reader, name, shard, time_ms, stream_id)
    return read.records[0].offset if read.records else read.next_offset


async def ranges_between(
    reader: RecordReader, stream: Stream, start_ms: int | None, end_ms: int | None
) -> list[OffsetRange]:
    """Return the offsets of the records that arrived in [start_ms, end_ms), by shard.

    Empty ranges are left out. None: from the oldest record, up to the last one that there is now. Raises ShardNotFound, StreamRecreated.
    """
    ranges = await ranges_of_shards(reader, stream, start_ms, end_ms)
    return [within for within in ranges if within.first < within.end]


async def ranges_of_shards(
    reader: RecordReader, stream: Stream, start_ms: int | None, end_ms: int | None
) -> list[OffsetRange]:
    """Return the ranges of all shards as `ranges_between` does; a range may be empty."""
    states = await reader.shards(stream.name, stream.stream_id)
    return await asyncio.gather(
        *(_range_of(reader, stream, state, start_ms, end_ms) for state in states)
    )


async def _range_of(
    reader: RecordReader,
    stream: Stream,
    state: ShardState,
    start_ms: int | None,
    end_ms: int | None,
) -> OffsetRange:
    shard, first, end = state.shard.index, state.start, state.next
    if start_ms is not None:
        first = await offset_since(reader, stream.name, shard, start_ms, stream.stream_id)
    if end_ms is not None:
        since_end = await offset_since(reader, stream.name, shard, end_ms, stream.stream_id)
        end = min(end, since_end)
    return OffsetRange(shard, min(first, end), end)


async def positions_since(
    reader: RecordReader,
    catalog: Catalog,
    name: StreamName,
    time_ms: int,
    stream_id: LogId | None = None,
) -> dict[int, int]:
    """Return the positions for a reader of all shards that starts at `time_ms`.

    Shards that ended before are passed. Each shard is queried, as clocks may differ on when it was closed.
    Raises StreamNotFound, StreamRecreated.
    """
    stream = await catalog.stream(name)
    ahead = read_frontier(stream, {})
    while unknown := [shard for shard, at in ahead.items() if at is None]:
        offsets = await asyncio.gather(
            *(_position(reader, name, one, time_ms, stream_id) for one in unknown)
        )
        positions = {shard: at for shard, at in ahead.items() if at is not None}
        ahead = read_frontier(stream, {**positions, **dict(zip(unknown, offsets, strict=True))})
    return {shard: at for shard, at in ahead.items() if at is not None}


async def _position(
    reader: RecordReader, name: StreamName, shard: int, time_ms: int, stream_id: LogId | None
) -> int:
    read = await _first_since(reader, name, shard, time_ms, stream_id)
    if read.records:
        return read.records[0].offset
    return FULLY_READ if read.ended else read.next_offset


async def _first_since(
    reader: RecordReader, name: StreamName, shard: int, time_ms: int, stream_id: LogId | None
) -> ShardRead:
    return await reader.read_one(name, shard, ReadFrom(time_ms=time_ms), stream_id)
