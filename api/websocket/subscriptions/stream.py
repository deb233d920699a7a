"""Stream subscriptions: records of the stream's shards within credit, from shared feeds.

Reads are shared with every other reader in the process; a subscription has only its own positions, credit and
filter.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf

import msgspec

from api.observability.metric_buffers import ProtocolMetrics
from api.websocket.connection import SocketClosed
from api.websocket.frames import Gap, Mode, ServerFrame, ShardEnded, Subscribe
from api.websocket.session import PushSession
from api.websocket.subscriptions.backoff import RetryBackoff
from consumers.feeds.blocks import Chunk
from consumers.feeds.feed import Feeds
from consumers.subscriptions.credit import SubscriptionCredit
from storage.catalog.catalog import Catalog
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError, ShardNotFound
from storage.domain.names import LogId, StreamName
from storage.domain.streams.lineage import (
    FULLY_READ,
    expired_positions,
    needs_refresh,
    read_frontier,
)
from storage.domain.streams.record_filter import selects
from storage.domain.streams.stream import GapReason, Stream
from storage.streams.read import RecordReader
from storage.streams.seek import offset_since, positions_since

_FOLLOWING = -1  # key in the readers of the task that finds the next shards


class DeliveryMark(msgspec.Struct, frozen=True):
    """The extent of a delivered frame: its shard, first offset, and credit used."""

    shard: int
    offset: int
    messages: int = 0
    bytes: int = 0


class StreamSource(msgspec.Struct, frozen=True):
    """The stream that a subscription reads, its feeds, and the counts of what is read."""

    stream: StreamName
    stream_id: LogId
    feeds: Feeds
    count: ProtocolMetrics


class ShardReaders:
    """Delivery of the records of some shards to one session.

    A subclass decides what follows a shard that has ended.
    """

    __slots__ = (
        "_backoff",
        "_count",
        "_feeds",
        "_positions",
        "_readers",
        "_running",
        "_selects",
        "_session",
        "_skipped",
        "_stream",
        "_stream_id",
        "credit",
        "name",
    )

    def __init__(self, session: PushSession, request: Subscribe, source: StreamSource) -> None:
        self.name = request.sub
        self.credit = SubscriptionCredit(request.credit.messages, request.credit.bytes)
        self._session = session
        self._stream = source.stream
        self._stream_id = source.stream_id
        self._feeds = source.feeds
        self._count = source.count
        self._selects = (
            None if request.filter is None else selects(request.filter.to_domain(), source.stream)
        )
        self._backoff = RetryBackoff(session, self.name)
        self._positions: dict[int, int] = {}  # the next offset to deliver, by shard
        self._skipped: dict[int, int] = {}  # records filtered out since the shard's last frame
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._running = False

    @property
    def source(self) -> str:
        return f"stream:{self._stream.name}"

    @property
    def stream_id(self) -> LogId | None:
        return self._stream_id

    @property
    def mode(self) -> Mode:
        return Mode.READ

    @property
    def group(self) -> str | None:
        return None

    # Running

    def start(self) -> None:
        self._running = True
        self._start_reading(self._positions)

    async def stop(self) -> None:
        self._running = False
        await self._stop_reading(list(self._readers))

    @property
    def is_due(self) -> bool:
        return False

    async def tick(self) -> None:
        """Do nothing: a stream subscription has no timed work."""

    async def end(self, *, release: bool) -> None:
        """End the subscription; a stream has no deliveries to release."""
        await self.stop()

    def _start_reading(self, shards: Iterable[int]) -> None:
        for shard in list(shards):
            if (
                self._running
                and shard not in self._readers
                and self._positions[shard] != FULLY_READ
            ):
                self._readers[shard] = asyncio.create_task(self._read(shard))

    async def _stop_reading(self, shards: Iterable[int]) -> None:
        tasks = [self._readers.pop(shard) for shard in list(shards) if shard in self._readers]
        own = asyncio.current_task()
        await end(*(task for task in tasks if task is not own))

    async def _read(self, shard: int) -> None:
        """Deliver a shard, then start what follows it.

        While idle, it keeps as little memory as it can.
        """
        try:
            while True:
                try:
                    async with self._feeds.of(self._stream, shard, self._stream_id) as feed:
                        while True:
                            if not self.credit.is_there:
                                await self.credit.wait()
                            chunk = await feed.at(self._positions[shard], inf)
                            if await self._take(shard, chunk):
                                break
                            del chunk
                    break
                except MillstreamError as error:
                    if not await self._recovered(shard, error):
                        raise
                    if self._positions.get(shard, FULLY_READ) == FULLY_READ:
                        break
            self._readers.pop(shard, None)
            await self._follow(shard)
        except SocketClosed:
            return
        except MillstreamError as error:
            await self._fail(error)

    async def _take(self, shard: int, chunk: Chunk) -> bool:
        """Deliver a chunk within credit; return whether the shard has ended with it."""
        await self._backoff.resume()
        if not self.credit.is_there:  # another shard used it concurrently
            return False
        if chunk.gap is not None:
            await self._send_gap(shard, chunk)
        delivered = await self._deliver(shard, chunk)
        if delivered.ended:
            await self._send_end(shard, delivered)
        return delivered.ended

    async def _follow(self, shard: int) -> None:
        """Start what follows an ended shard, retrying through outages."""
        while True:
            try:
                await self._start_successors(shard)
                return
            except MillstreamError as error:
                if not await self._recovered(shard, error):
                    raise

    async def _recovered(self, shard: int, error: MillstreamError) -> bool:
        """Handle a read error and return whether reading continues."""
        return await self._backoff.wait_and_retry(error)

    async def _fail(self, error: MillstreamError) -> None:
        """Report the error to the client and end the subscription."""
        with suppress(SocketClosed):
            await self._session.send_bytes(self._session.wire.failure(error, sub=self.name))
        await self._session.unsubscribe(self)

    # Delivery

    async def _send_gap(self, shard: int, chunk: Chunk) -> None:
        gap = chunk.gap
        assert gap is not None
        mark = DeliveryMark(shard, self._positions[shard])
        self._positions[shard] = gap.next
        await self._send_mark(
            mark,
            lambda seq: Gap(self.name, seq, shard, gap.first, gap.next, gap.reason),
        )

    async def _deliver(self, shard: int, chunk: Chunk) -> Chunk:
        """Deliver the part of a chunk that the credit covers, and return that part."""
        part, chosen, count, size_bytes = chunk.select(
            self._selects, self.credit.messages, self.credit.bytes
        )
        mark = DeliveryMark(shard, self._positions[shard], count, size_bytes)
        self._positions[shard] = part.next_offset
        if not count:
            self._pass_over(shard, mark.offset, part.next_offset)
            if not self._has_skipped_much(shard, len(part)):
                return part
        if self._skipped is not None:
            self._skipped.pop(shard, None)
        self.credit.take(count, size_bytes)
        self._count.read(count)
        wire = self._session.wire
        joined = part.joined(wire.format, chosen)
        await self._session.deliver(
            self,
            mark,
            0,
            lambda seq: wire.encode_records(
                self.name, seq, shard, joined, count, part.next_offset, part.tip
            ),
        )
        return part

    def _pass_over(self, shard: int, first: int, next_offset: int) -> None:
        """Note that no record in [first, next_offset) is delivered."""

    def _has_skipped_much(self, shard: int, count: int) -> bool:
        """Return whether to report the position, with `count` more records filtered out."""
        self._skipped = self._skipped or {}
        self._skipped[shard] = self._skipped.get(shard, 0) + count
        return self._skipped[shard] >= limits.PUSH_SKIPPED_RECORDS_MAX

    async def _send_end(self, shard: int, chunk: Chunk) -> None:
        children = [child.index for child in chunk.children]
        mark = DeliveryMark(shard, self._positions[shard])
        self._ended(shard, self._positions[shard])
        await self._send_mark(mark, lambda seq: ShardEnded(self.name, seq, shard, children))

    async def _send_mark(self, mark: DeliveryMark, frame: Callable[[int], ServerFrame]) -> None:
        wire = self._session.wire
        await self._session.deliver(self, mark, 0, lambda seq: wire.encode(frame(seq)))

    def _ended(self, shard: int, offset: int) -> None:
        """Handle the complete delivery of a closed shard."""

    async def _start_successors(self, shard: int) -> None:
        """Start what follows an ended shard."""

    # Resuming

    def arrived(self, what: DeliveryMark) -> None:
        """Do nothing: arrived records need no state."""

    def lost(self, what: Sequence[DeliveryMark]) -> None:
        """Rewind each shard to its first offset that has not arrived."""
        for mark in reversed(what):
            self.credit.grant(mark.messages, mark.bytes)
            self._rewind(mark.shard, mark.offset)

    def _rewind(self, shard: int, offset: int) -> None:
        if shard in self._positions:
            self._positions[shard] = offset


class StreamSubscription(ShardReaders):
    """Subscription that reads a stream independently of other readers.

    Each shard is read in order, and after its parents; or one shard alone.
    """

    __slots__ = ("_alone", "_catalog", "_expired", "_parents", "_reader")

    def __init__(
        self,
        session: PushSession,
        request: Subscribe,
        source: StreamSource,
        reader: RecordReader,
        catalog: Catalog,
    ) -> None:
        super().__init__(session, request, source)
        self._reader = reader
        self._catalog = catalog
        self._alone = request.shard
        self._parents: dict[int, tuple[int, ...]] | None = None  # of shards started while following
        self._expired: dict[int, int] | None = None  # positions in shards that no longer exist

    async def open(self, positions: Mapping[int, int], since_ms: int | None) -> None:
        """Seek to these positions, or to a time.

        Raises OffsetOutOfRange, ShardNotFound, StreamNotFound, StreamRecreated.
        """
        stream = await self._catalog.stream(self._stream, self._stream_id)
        if needs_refresh(stream, positions):
            stream = await self._catalog.fresh_stream(self._stream, self._stream_id)
        if self._alone is not None:
            stream.shard(self._alone)
            first = positions.get(self._alone)
            if first is None:
                first = await self._since(self._alone, since_ms or 0)
            self._positions = {self._alone: first}
            return
        if since_ms is not None:
            positions = await positions_since(
                self._reader, self._catalog, self._stream, since_ms, self._stream_id
            )
        self._positions = await self._all(stream, positions)
        self._expired = expired_positions(stream, positions) or None

    async def _all(self, stream: Stream, positions: Mapping[int, int]) -> dict[int, int]:
        return {
            shard: await self._since(shard, 0) if at is None else at
            for shard, at in read_frontier(stream, positions).items()
        }

    async def _since(self, shard: int, time_ms: int) -> int:
        return await offset_since(self._reader, self._stream, shard, time_ms, self._stream_id)

    def start(self) -> None:
        """Start delivery, including what follows shards that have ended.

        The socket may have broken after a shard ended and before its children started.
        """
        if self._expired is None:
            super().start()
        self._running = True
        if self._expired is not None or FULLY_READ in self._positions.values():
            self._readers[_FOLLOWING] = asyncio.create_task(self._read_on())

    async def _read_on(self) -> None:
        try:
            for shard, offset in (self._expired or {}).items():
                self._positions[shard] = offset
                await self._lose(shard)
            self._expired = None
            self._start_reading(self._positions)
            await self._follow(_FOLLOWING)
        except MillstreamError as error:
            await self._fail(error)
        except SocketClosed:
            return
        finally:
            self._readers.pop(_FOLLOWING, None)

    async def _recovered(self, shard: int, error: MillstreamError) -> bool:
        """Also survive the expiry of a shard that was not fully read: its children follow."""
        if isinstance(error, ShardNotFound) and self._alone is None:
            if shard in self._positions:
                await self._lose(shard)
            return True
        return await super()._recovered(shard, error)

    async def _lose(self, shard: int) -> None:
        """Report a shard that no longer exists as an expired gap. Raises SocketClosed.

        The number of its unread records is no longer known.
        """
        offset = self._positions[shard]
        self._ended(shard, offset)
        await self._send_mark(
            DeliveryMark(shard, offset),
            lambda seq: Gap(self.name, seq, shard, offset, offset, GapReason.EXPIRED),
        )

    def _ended(self, shard: int, offset: int) -> None:
        self._positions[shard] = FULLY_READ

    async def _start_successors(self, shard: int) -> None:
        if self._alone is not None:
            return
        stream = await self._catalog.fresh_stream(self._stream, self._stream_id)
        standing = dict(self._positions)
        for child, offset in read_frontier(stream, standing).items():
            if child not in standing:
                self._positions.setdefault(child, offset or 0)
                self._parents = self._parents or {}
                self._parents[child] = stream.shard(child).parents
        self._start_reading(self._positions)

    def _rewind(self, shard: int, offset: int) -> None:
        """Rewind a shard, also out of the children whose parent's end has not arrived."""
        self._positions[shard] = offset
        for child in self._descendants(shard):
            self._positions.pop(child, None)

    def _descendants(self, shard: int) -> set[int]:
        lineage = {shard}
        begun = self._parents or {}
        for child in sorted(begun):  # children have higher numbers than their parents
            if lineage.intersection(begun[child]):
                lineage.add(child)
        return lineage - {shard}
