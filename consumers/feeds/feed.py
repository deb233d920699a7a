"""Feeds: shared reads of shards, each read and encoded once for all readers.

    reader ─┐ at(7)                            ┌─ recent blocks, bounded in bytes over all feeds
    reader ─┼ at(7) ──▶ feed of the shard ─────┤
    reader ─┘ at(3)     one in a process       └─ else one read of the store for all readers at the same offset;
                                                  at the tip it waits, and all wait on it

A feed lives as long as it has readers. It belongs to one stream: if another one takes the name, its readers get
StreamRecreated.
"""

import asyncio
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from consumers.feeds.block_cache import BlockCache, ShardBlocks
from consumers.feeds.blocks import Block, Chunk, Format
from storage.concurrency.tasks import end, give
from storage.domain import limits
from storage.domain.errors import (
    MillstreamError,
    StorageBusy,
    StorageUnavailable,
)
from storage.domain.names import LogId, StreamName
from storage.domain.streams.stream import ShardRead
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource


class _Key(NamedTuple):
    stream_id: LogId
    shard: int


class Feeds:
    """The feeds of a process; to be closed when no reader is left."""

    def __init__(
        self,
        reader: RecordReader,
        formats: Mapping[str, Format],
        bytes_max: int = limits.FEEDS_BYTES_MAX,
    ) -> None:
        self._reader = reader
        self._formats = formats
        self._recent = BlockCache(bytes_max)
        self._feeds: dict[_Key, Feed] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order
        self._readers = 0
        self.draining = False
        """The process is about to end, and its readers with it."""

    def of(self, name: StreamName, shard: int, stream_id: LogId) -> "Reader":
        """Open the feed of a shard, shared with its other readers: `async with`.

        `stream_id`: the stream that the reader's position belongs to, whatever has its name.
        """
        return Reader(self, name, shard, stream_id)

    def enter(self, name: StreamName, shard: int, stream_id: LogId) -> "Feed":
        """Count a reader that begins."""
        key = _Key(stream_id, shard)
        feed = self._feeds.get(key)
        if feed is None:
            source = RecordSource(self._reader, name, stream_id)
            feed = self._feeds[key] = Feed(self, source, key)
        feed.readers += 1
        return feed

    def leave(self, feed: "Feed") -> None:
        """Count a reader that ends."""
        feed.readers -= 1
        if feed.readers == 0:
            del self._feeds[feed.key]
            self._recent.drop_all(feed.shard_blocks)

    def check_capacity(self) -> None:
        """Raise StorageBusy if the maximum number of long-lived responses is reached."""
        if self._readers >= limits.EVENT_READERS_MAX:
            raise StorageBusy("Too many event readers.")

    def begin(self) -> None:
        """Count a long-lived response that begins; to be ended with `finish`.

        Raises StorageBusy.
        """
        self.check_capacity()
        self._readers += 1

    def finish(self) -> None:
        """Count the end of a long-lived response."""
        self._readers -= 1

    def drain(self) -> None:
        """Wake all readers that wait until the drain, as the process is about to end.

        They get an empty chunk.
        """
        self.draining = True
        for feed in self._feeds.values():
            feed.release()

    async def close(self) -> None:
        """Stop all reads; readers that still wait get StorageUnavailable."""
        await end(*self._tasks)

    @property
    def count(self) -> int:
        """The number of shards that are being read."""
        return len(self._feeds)

    @property
    def size_bytes(self) -> int:
        """The size of the cached blocks."""
        return self._recent.size_bytes

    # For a feed

    def find(self, shard_blocks: ShardBlocks, offset: int) -> Block | None:
        """Return a cached block in which this offset lies."""
        return self._recent.find(shard_blocks, offset)

    def keep(self, shard_blocks: ShardBlocks, offset: int, read: ShardRead) -> Block:
        """Make a block of a read from `offset`, and cache it unless it is empty."""
        block = Block(offset, read, self._formats, self._recent.resize)
        if block.next > block.first:
            self._recent.keep(shard_blocks, block)
        self._recent.drop_below(shard_blocks, read.start)
        return block

    def run(self, read: "_SharedRead", feed: "Feed") -> None:
        """Start a read."""
        task = asyncio.create_task(read.run(feed))
        read.task = task
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)


class Reader:
    """A reader of a shard; small, as there are thousands."""

    __slots__ = ("_feed", "_feeds", "_name", "_shard", "_stream_id")

    def __init__(self, feeds: Feeds, name: StreamName, shard: int, stream_id: LogId) -> None:
        self._feeds = feeds
        self._name = name
        self._shard = shard
        self._stream_id = stream_id

    async def __aenter__(self) -> "Feed":
        self._feed = self._feeds.enter(self._name, self._shard, self._stream_id)
        return self._feed

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop reading."""
        self._feeds.leave(self._feed)


class Feed:
    """Shared reads of one shard, for all of its readers in this process."""

    def __init__(self, feeds: Feeds, source: RecordSource, key: _Key) -> None:
        self._feeds = feeds
        self._source = source
        self.key = key
        self.shard_blocks = ShardBlocks()
        self.readers = 0
        self._start = 0  # offsets below are no longer readable, as far as is known
        self._tip = 0
        self._end: Block | None = None  # of a closed shard, which stays as it is
        self._reads: dict[tuple[int, bool], _SharedRead] = {}

    @property
    def stream_id(self) -> LogId:
        """The id of the feed's stream, whatever stream takes its name."""
        return self.key.stream_id

    async def at(self, offset: int, wait_ms: float = 0, *, until_drain: bool = False) -> Chunk:
        """Return the records from an offset; at the tip, an empty chunk after `wait_ms`.

        With `until_drain`, the empty chunk is returned as soon as the process is about to end. Expired records are reported as a
        gap. Raises OffsetOutOfRange, ShardNotFound; StreamNotFound or StreamRecreated once the stream was deleted;
        StorageUnavailable and its like, after which the call may be repeated.
        """
        cached = self._cached(offset)
        if cached is not None:
            await asyncio.sleep(0)  # yields to other tasks also if everything is cached
            return cached
        if until_drain and self._feeds.draining:
            wait_ms = 0
        read = self._joined((offset, wait_ms > 0))
        try:
            block = await read.wait(wait_ms, until_drain)
        finally:
            self._detach(read)
        if block is None:
            return self._nothing(offset)
        return block.chunk(offset, max(self._tip, block.next))

    def _cached(self, offset: int) -> Chunk | None:
        """Return the cached records from an offset."""
        block = None if offset < self._start else self._feeds.find(self.shard_blocks, offset)
        if block is not None:
            return block.chunk(offset, max(self._tip, block.next))
        end = self._end
        if end is None or end.next != offset:
            return None
        return Chunk(
            block=end,
            first=offset,
            start=len(end.records),
            stop=len(end.records),
            gap=None,
            tip=offset,
        )

    def _joined(self, key: tuple[int, bool]) -> "_SharedRead":
        """Return the read in progress at this offset, or start one: all callers share it."""
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = _SharedRead(*key)
            self._feeds.run(read, self)
        return read

    def _detach(self, read: "_SharedRead") -> None:
        """Cancel a read when its last waiter has left."""
        if not read.waiters:
            self.discard(read)
            read.task.cancel()
            del read.task  # its error has a frame with the read: a cycle

    def release(self) -> None:
        """Release the readers that wait until the process is about to end."""
        for (_, waits), read in self._reads.items():
            if waits:
                read.release()

    def discard(self, read: "_SharedRead") -> None:
        """Remove a read, so that no more callers join it."""
        if self._reads.get(read.key) is read:
            del self._reads[read.key]

    async def read_block(self, offset: int, waits: bool) -> Block:
        """Read at an offset; with `waits`, until there is a record, a gap or an end."""
        wait_ms = limits.WAIT_MS_MAX if waits else 0
        while True:
            read = await self._source.read(
                self.key.shard,
                offset,
                records_max=limits.FEED_READ_RECORDS,
                bytes_max=limits.FEED_READ_BYTES,
                wait_ms=wait_ms,
            )
            self._start = read.start
            self._tip = max(self._tip, read.tip)
            block = self._feeds.keep(self.shard_blocks, offset, read)
            if block.ended:
                self._end = block
            if block.next > offset or block.ended or not waits:
                return block

    def _nothing(self, offset: int) -> Chunk:
        """Return an empty chunk, for a wait that timed out."""
        tip = max(self._tip, offset)
        read = ShardRead(self.key.shard, (), offset, self._start, tip, 0)
        return Block(offset, read, {}).chunk(offset, tip)


class _SharedRead:
    """A read in progress, and its waiters; cancelled when there are none."""

    __slots__ = ("key", "task", "waiters")
    task: "asyncio.Task[None]"

    def __init__(self, offset: int, waits: bool) -> None:
        self.key = offset, waits
        self.waiters: dict[asyncio.Future[Block | None], bool] = {}

    async def wait(self, wait_ms: float, until_drain: bool) -> Block | None:
        """Return the block that is read, or None after `wait_ms`; infinity needs no timer.

        Raises the read's error.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Block | None] = loop.create_future()
        self.waiters[future] = until_drain
        timer = None
        if 0 < wait_ms < inf:
            timer = loop.call_later(wait_ms / limits.SECOND_MS, give, future, None)
        try:
            return await future
        except MillstreamError as error:
            raise error.with_traceback(None) from None  # it is raised for each waiter
        finally:
            del self.waiters[future]
            if timer:
                timer.cancel()

    def release(self) -> None:
        """Release the waiters that wait until the process is about to end."""
        for waiter, until_drain in self.waiters.items():
            if until_drain:
                give(waiter, None)

    async def run(self, feed: Feed) -> None:
        """Read, and give the result to all waiters."""
        try:
            result: Block | Exception = await feed.read_block(*self.key)
        except Exception as error:
            result = error
        except asyncio.CancelledError:
            self._resolve(feed, StorageUnavailable("The service is shutting down."))
            raise
        self._resolve(feed, result)

    def _resolve(self, feed: Feed, result: "Block | Exception") -> None:
        feed.discard(self)
        for waiter in self.waiters:
            give(waiter, result)
