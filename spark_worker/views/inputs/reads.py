"""Reads of the streams that a revision follows: one, or the two that it joins.

positions ──▶ read of each stream ──▶ capped: not beyond another reader
                                  ──▶ aligned: of two streams, up to the same arrival, so that neither runs ahead of the other
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.concurrency.tasks import end, gather_all
from storage.domain.names import StreamName
from storage.domain.streams.lineage import FULLY_READ, have_passed
from storage.domain.streams.stream import Gap, ShardRead, Stream, StreamRead
from storage.domain.views.progress import FollowedStream, ViewRevision

Caps = Sequence[Mapping[int, int]]
"""Positions in each stream of a revision that it must not pass."""


async def read_streams(
    storage: Storage, namespace: str, revision: ViewRevision, caps: Caps | None = None
) -> list[StreamRead]:
    """Read behind the positions of a revision in each of its streams.

    Raises StreamNotFound, StreamRecreated.
    """
    streams = revision.streams
    reads = await gather_all([_read(storage, namespace, one) for one in streams])
    if caps is not None:
        pairs = zip(streams, reads, caps, strict=True)
        reads = [
            capped(
                read,
                one.progress.positions,
                cap,
                await storage.catalog.stream(StreamName(one.input.stream, namespace)),
            )
            for one, read, cap in pairs
        ]
    return aligned(reads) if len(reads) > 1 else reads


async def wait_for_records(
    storage: Storage, namespace: str, revisions: Collection[ViewRevision], wait_ms: int
) -> None:
    """Wait until a stream has records behind the positions of one of these revisions.

    Raises StreamNotFound, StreamRecreated.
    """
    waiting = [
        asyncio.create_task(_read(storage, namespace, one, wait_ms))
        for one in {one.input.stream: one for each in revisions for one in each.streams}.values()
    ]
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end(*waiting)


async def _read(
    storage: Storage, namespace: str, followed: FollowedStream, wait_ms: int = 0
) -> StreamRead:
    name, progress = StreamName(followed.input.stream, namespace), followed.progress
    return await storage.record_reader.read(
        name, progress.positions, wait_ms=wait_ms, stream_id=progress.stream_id or None
    )


def has_news(read: StreamRead) -> bool:
    """Return whether a read advances its positions."""
    return any(shard.records or shard.gap or shard.ended for shard in read.shards)


def capped(
    read: StreamRead, before: Mapping[int, int], caps: Mapping[int, int], stream: Stream
) -> StreamRead:
    """Return the part of a read that another reader, whose positions are `caps`, has passed.

    `before`: the positions of the read. A shard that the other reader has not reached stays where it was, and one that it reads is cut at
    its position.
    """
    positions, shards = dict(read.positions), list[ShardRead]()
    for shard in read.shards:
        index, cap = shard.shard, caps.get(shard.shard)
        if cap is None and not have_passed(stream, caps, {index: 0}):
            positions[index] = before.get(index, 0)
        elif cap is None or cap == FULLY_READ:
            shards.append(shard)
        else:
            shards.append(_cut(shard, max(cap, before.get(index, 0))))
            positions[index] = shards[-1].next_offset
    return StreamRead(shards, positions if shards else dict(before), read.stream_id)


def aligned(reads: Sequence[StreamRead]) -> list[StreamRead]:
    """Return reads without the records that arrived after one that was not read yet.

    So the streams are read in the order of arrival, also when one of them has a long history or was split: otherwise records of one
    would be late, or would wait for the other.
    """
    unread = [first for read in reads for shard in read.shards for first in _unread_since(shard)]
    return [_until(read, min(unread)) for read in reads] if unread else [*reads]


def _unread_since(shard: ShardRead) -> list[int]:
    """Return after when records arrived in a shard, or in its children, that were not read.

    It is not before the records that were: a shard takes records while its children are opened, and a clock may be set back. So the
    shard that the others wait for is not cut, and each read advances.
    """
    read_ms = [each.arrival_ms for each in shard.records]
    if shard.ended:
        return [max([child.opened_at_ms, *read_ms]) for child in shard.children]
    return [max(read_ms)] if read_ms and shard.tip > shard.next_offset else []


def _until(read: StreamRead, until_ms: int) -> StreamRead:
    """Return the part of a read that had arrived at a time."""
    positions, shards = dict(read.positions), list[ShardRead]()
    for shard in read.shards:
        later = (each.offset for each in shard.records if each.arrival_ms > until_ms)
        if (first := next(later, None)) is not None:
            shard = _cut(shard, first)
            positions[shard.shard] = shard.next_offset
        shards.append(shard)
    return StreamRead(shards, positions, read.stream_id)


def _cut(shard: ShardRead, end_offset: int) -> ShardRead:
    """Return the part of a read before an offset; the shard goes on there."""
    gap = shard.gap
    if gap is not None:
        gap = (
            Gap(gap.first, min(gap.next, end_offset), gap.reason)
            if gap.first < end_offset
            else None
        )
    return replace(
        shard,
        records=[each for each in shard.records if each.offset < end_offset],
        next_offset=min(shard.next_offset, end_offset),
        gap=gap,
        ended=False,
        children=(),
    )
