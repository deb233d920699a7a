"""Backlog of a scan: records behind a read, as columns, without an object for each.

    read, as ever ──▶ [p, q)            records, gaps, ends of shards
    backlog       ──▶ [q, q + n)        columns, of shards that the read has not ended

Both are one batch. Whatever is not an ordinary record, such as a gap, ends the backlog before it: the next read reports it.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from spark_worker.views.planning.records import raw_batch
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.names import StreamName
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import ShardRead, StreamRead
from storage.domain.views.progress import FollowedStream, ViewRevision
from storage.streams.seek import positions_since


class BatchRecords(NamedTuple):
    """Records of a batch: those of a read of each stream, and others as columns.

    Others are those of the only stream; the positions of its read are behind both. `idle`: shards that do not hold back the watermark, by
    the id of a revision and the name of the stream in its query. `watermark_ms`: watermark that the batch reaches at least.
    """

    reads: Sequence[StreamRead]
    columns: Sequence[pa.RecordBatch] = ()
    idle: Mapping[str, Mapping[str, Collection[int]]] = {}
    watermark_ms: int | None = None


async def with_backlog(
    storage: Storage,
    stream: StreamName,
    read: StreamRead,
    records_max: int,
    caps: Mapping[int, int] | None,
) -> BatchRecords:
    """Return a read with what is behind it: at most `records_max` records more.

    `caps`: positions that are not passed; a shard without one was read to its end by that reader.
    """
    shards = [shard for shard in read.shards if _has_more(shard, read.positions)]
    if not shards:
        return BatchRecords([read])
    positions, columns = dict(read.positions), list[pa.RecordBatch]()
    for shard in shards:
        first = shard.next_offset
        end = min(shard.tip, first + records_max // len(shards))
        cap = None if caps is None else caps.get(shard.shard, FULLY_READ)
        if cap is not None and cap != FULLY_READ:
            end = min(end, cap)
        size_max = limits.VIEW_BACKLOG_BYTES // len(shards)
        async for batch, next_offset in _pages(storage, stream, shard, end, size_max):
            columns.append(raw_batch(shard.shard, batch))
            positions[shard.shard] = next_offset
    return BatchRecords([replace(read, positions=positions)], columns)


def records_until(revision: ViewRevision, watermark_ms: int) -> BatchRecords:
    """Return a batch without records, which advances the watermark of a revision."""
    progress = [followed.progress for followed in revision.streams]
    reads = [StreamRead([], dict(one.positions), one.stream_id) for one in progress]
    return BatchRecords(reads, watermark_ms=watermark_ms)


async def first_positions(
    storage: Storage, namespace: str, revision: ViewRevision, created_at_ms: int
) -> list[dict[int, int]]:
    """Return where a revision starts in each stream: later ones as the first of the view."""
    return [
        await _first_positions(storage, namespace, one, created_at_ms) for one in revision.streams
    ]


async def _first_positions(
    storage: Storage, namespace: str, followed: FollowedStream, created_at_ms: int
) -> dict[int, int]:
    if followed.input.start is StartAt.EARLIEST:
        return {}
    since = followed.input.start_time_ms
    return await positions_since(
        storage.record_reader,
        storage.catalog,
        StreamName(followed.input.stream, namespace),
        created_at_ms if since is None else since,
        followed.progress.stream_id or None,
    )


def _has_more(shard: ShardRead, positions: Mapping[int, int]) -> bool:
    is_open = not shard.ended and positions.get(shard.shard) == shard.next_offset
    return is_open and len(shard.records) > 0 and shard.tip > shard.next_offset


async def _pages(
    storage: Storage, stream: StreamName, shard: ShardRead, end: int, size_max: int
) -> AsyncIterator[tuple[pa.RecordBatch, int]]:
    """Yield records up to an offset or a size, with the offset behind each batch."""
    offset, size = shard.next_offset, 0
    while offset < end and size < size_max:
        try:
            page = await storage.arrow_reader.read(
                stream,
                shard.shard,
                offset=offset,
                end=end,
                bytes_max=min(limits.TABLE_BYTES_MAX, size_max - size),
                stream_id=shard.stream_id,
            )
        except MillstreamError:
            return  # the next read says what it is
        if page.gap is not None or page.next_offset <= offset:
            return
        table = pa.ipc.open_stream(page.encoded).read_all().combine_chunks()
        for batch in table.to_batches():
            yield batch, page.next_offset
        size += table.nbytes
        offset = page.next_offset
