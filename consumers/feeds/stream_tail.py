"""Tail of all shards of a stream through their feeds, children after all their parents.

Each shard is read in order.

positions    the reader's position in each shard: see `storage.domain.streams.lineage`
next ──▶ a chunk of some shard ──▶ take (all of it, or its beginning) ──▶ the positions behind it
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Self

from consumers.feeds.blocks import Block, Chunk
from consumers.feeds.feed import Feed, Feeds, Reader
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import ShardNotFound
from storage.domain.names import LogId, QueueName, StreamName
from storage.domain.queues.queue import Queue
from storage.domain.streams.lineage import FULLY_READ, expired_positions, read_frontier
from storage.domain.streams.stream import Gap, GapReason, ShardRead

TO_ITS_END = limits.OFFSET_MAX + 1
"""Up to the end of a closed shard."""


class _Lane:
    """One shard that is being read."""

    __slots__ = ("feed", "reader", "shard", "task")

    def __init__(self, shard: int, reader: Reader, feed: Feed) -> None:
        self.shard = shard
        self.reader = reader
        self.feed = feed
        self.task: asyncio.Task[Chunk] | None = None


class Tail:
    """One reader of a stream, to be used as `async with`.

    `until`: the offset up to which each shard is read, or None to follow; shards without one are not read. `alone`: only the
    one shard that has a position is read, and none of its children. The positions belong to the stream of `stream_id`. Small,
    as there are thousands, most of them idle.
    """

    __slots__ = (
        "_alone",
        "_catalog",
        "_expired",
        "_feeds",
        "_lanes",
        "_must_regroup",
        "_name",
        "_queue",
        "_read_done",
        "_ready",
        "_stream_id",
        "_until",
        "positions",
    )

    def __init__(
        self,
        feeds: Feeds,
        catalog: Catalog,
        name: StreamName,
        positions: Mapping[int, int],
        *,
        stream_id: LogId,
        until: Mapping[int, int] | None = None,
        alone: bool = False,
    ) -> None:
        self._feeds = feeds
        self._catalog = catalog
        self._name = name
        self._stream_id = stream_id
        self._until = until
        self._alone = alone
        self._lanes: dict[int, _Lane] = {}
        self._ready: list[_Lane] = []
        self._expired: list[Chunk] = []
        self._read_done: asyncio.Future[None] | None = None
        self._must_regroup = False  # a shard has ended, or was lost
        self._queue: Queue | None = None  # of which it is the view
        self.positions = dict(positions)
        """The next offset to read of each shard, or FULLY_READ while a child of it waits for another parent."""

    async def __aenter__(self) -> Self:
        try:
            await (self._begin() if self._alone else self._regroup())
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to read."""
        return not (self._lanes or self._expired or self._must_regroup)

    @property
    def has_ended(self) -> bool:
        """Return whether the only shard that is read was read to its end."""
        return self._alone and FULLY_READ in self.positions.values()

    @property
    def follows(self) -> bool:
        """Return whether reading continues at the tips."""
        return self._until is None

    # Reading

    async def next(self, wait_ms: int) -> Chunk | None:
        """Return a chunk of some shard; None when there is nothing for `wait_ms`, or sooner.

        A chunk that is not taken is returned again. Raises what `Feed.at` raises; it may be called again after that.
        """
        if self._must_regroup or (
            self._queue is not None and self._has_new_partitions(self._queue)
        ):
            await self._regroup()
        if self._expired:
            return self._expired[0]
        if len(self._lanes) == 1:
            [lane] = self._lanes.values()
            if lane.task is None:
                return await self._read_lane(lane, wait_ms)
        return await self._read_any(wait_ms)

    async def take(self, chunk: Chunk) -> None:
        """Advance behind the records that were used: all of a chunk, or its beginning."""
        if self._expired and chunk is self._expired[0]:
            self._expired.pop(0)
            return
        shard = chunk.shard
        self.positions[shard] = FULLY_READ if chunk.ended else chunk.next_offset
        if chunk.ended or self._is_done(shard):
            await self._leave(shard)
        self._must_regroup = chunk.ended and not self._alone

    async def _read_lane(self, lane: _Lane, wait_ms: int) -> Chunk | None:
        try:
            chunk = await self._at(lane, wait_ms)
        except ShardNotFound:
            await self._lose(lane)
            return None
        return await self._cut(lane, chunk)

    async def _at(self, lane: _Lane, wait_ms: int) -> Chunk:
        offset = self.positions[lane.shard]
        return await lane.feed.at(offset, wait_ms if self.follows else 0, until_drain=True)

    async def _read_any(self, wait_ms: int) -> Chunk | None:
        for lane in self._lanes.values():
            if lane.task is None:
                self._start_read(lane)
        if not self._ready:
            await self._wait_for_read(wait_ms)
        if not self._ready:
            return None
        lane = self._ready.pop(0)
        task, lane.task = lane.task, None
        assert task is not None
        try:
            chunk = task.result()
        except ShardNotFound:
            await self._lose(lane)
            return None
        return await self._cut(lane, chunk)

    def _start_read(self, lane: _Lane) -> None:
        lane.task = asyncio.create_task(self._at(lane, limits.WAIT_MS_MAX))
        lane.task.add_done_callback(partial(self._answered, lane))

    def _answered(self, lane: _Lane, task: "asyncio.Task[Chunk]") -> None:
        if task.cancelled():
            return
        self._ready.append(lane)
        if self._read_done is not None and not self._read_done.done():
            self._read_done.set_result(None)

    async def _wait_for_read(self, wait_ms: int) -> None:
        self._read_done = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(wait_ms / limits.SECOND_MS):
                await self._read_done
        except TimeoutError:
            return
        finally:
            self._read_done = None

    async def _cut(self, lane: _Lane, chunk: Chunk) -> Chunk | None:
        """Cut a chunk at `until`; a shard that ends before it counts as read to its end."""
        if self._until is not None:
            if chunk.is_empty:
                await self._leave(lane.shard)
                return None
            chunk = chunk.before(self._until[lane.shard])
        return None if chunk.is_empty else chunk

    async def _lose(self, lane: _Lane) -> None:
        """Stop reading a shard that expired before it was read to its end.

        Raises ShardNotFound if it is the only one to be read.
        """
        if self._alone:
            raise ShardNotFound(f"Stream '{self._name.name}' has no shard {lane.shard}.")
        await self._leave(lane.shard)
        self._must_regroup = True

    # Positions

    async def _regroup(self) -> None:
        """Replace parents that were read to their ends by their children.

        Shards that expired unread are reported. After an error nothing is lost: it is repeated at the next read.
        """
        stream = await self._catalog.fresh_stream(self._name, self._stream_id)
        self._expired.extend(
            _expired_chunk(shard, offset)
            for shard, offset in expired_positions(stream, self.positions).items()
        )
        if stream.is_view and self.follows:
            self._queue = await self._catalog.queue(
                QueueName(self._name.name, self._name.namespace)
            )
        ahead = read_frontier(stream, self.positions)
        self.positions = {shard: offset or 0 for shard, offset in ahead.items()}
        await self._begin()
        self._must_regroup = False

    def _has_new_partitions(self, former: Queue) -> bool:
        """Return whether the queue has got more partitions, which no shard forwards to."""
        queue = self._catalog.cached_queue(former.name)
        return queue is not None and len(queue.logs) > len(former.logs)

    async def _begin(self) -> None:
        for shard, offset in self.positions.items():
            if offset != FULLY_READ and shard not in self._lanes and not self._is_done(shard):
                reader = self._feeds.of(self._name, shard, self._stream_id)
                self._lanes[shard] = _Lane(shard, reader, await reader.__aenter__())

    def _is_done(self, shard: int) -> bool:
        """Return whether a shard was read up to `until`."""
        return self._until is not None and self.positions[shard] >= self._until.get(shard, 0)

    async def _leave(self, shard: int) -> None:
        lane = self._lanes.pop(shard)
        if lane in self._ready:
            self._ready.remove(lane)
        await self._end(lane)

    async def _end(self, *lanes: _Lane) -> None:
        """Stop reading shards: all of them, also if this is cancelled."""
        tasks = [lane.task for lane in lanes if lane.task is not None]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for lane in lanes:
                lane.reader.leave()

    async def _close(self) -> None:
        lanes, self._lanes = self._lanes, {}
        await self._end(*lanes.values())


def _expired_chunk(shard: int, offset: int) -> Chunk:
    """Return the chunk that reports an expired shard: how much was left is unknown."""
    read = ShardRead(shard, (), offset, offset, offset, 0, Gap(offset, offset, GapReason.EXPIRED))
    return Block(offset, read, {}).chunk(offset, offset)
