"""Lagging reader of the topic, for a buffer that is behind the router.

Its target is slow, its route is paused, or its route starts in the past.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from consumers.feeds.blocks import Chunk
from consumers.feeds.stream_tail import Tail
from consumers.routing.copies import Copy, blocks_of
from consumers.routing.delivery_buffer import DeliveryBuffer
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.streams.lineage import FULLY_READ, nearest
from storage.domain.streams.stream import Gap, LogRecord
from storage.domain.topics.read_match import HistoryMatch
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.targets.branch import RouteBranch

_RETRY_S = limits.ROUTER_RETRY_MS_MAX / limits.SECOND_MS / 10


class ReaderOwner(Protocol):
    """Router of the topic."""

    async def confirm_routes(self, chunk: Chunk) -> None:
        """Learn of all routes that take records, which were read before."""

    def routes_of(self, shard: int, entry: LogRecord) -> Sequence[TopicRoute]:
        """Return the routes that take a record, after `confirm_routes`."""

    def key_of(self, branch: RouteBranch) -> str:
        """Return the key of the buffer that a branch's copies go to."""

    def add_to(self, buffer: DeliveryBuffer, key: str, copies: Sequence[Copy]) -> None:
        """Add copies of a key's branches, unless their routes were paused or deleted meanwhile."""

    def note_gap(self, gap: Gap | None) -> None:
        """Count the messages that expired before a reader had read them."""

    def note_end(self, shard: int) -> None:
        """Note that a reader has come to the end of a closed shard."""

    def buffer_for(self, key: str) -> DeliveryBuffer:
        """Return a new buffer for a key."""

    def try_rejoin(self, lagging: "LaggingReader") -> bool:
        """Let a buffer that has caught up get its copies from the router; return whether it does."""


class LaggingReader:
    """Buffer with positions of its own; it reads while it is started and not held.

    With a `history`, it also copies the earlier messages that the route takes.
    """

    def __init__(
        self,
        owner: ReaderOwner,
        key: str,
        positions: Mapping[int, int],
        buffer: DeliveryBuffer | None,
        *,
        new_tail: Callable[[Mapping[int, int]], Tail],
        history: HistoryMatch | None = None,
    ) -> None:
        self.key = key
        self.buffer = buffer
        self._owner = owner
        self._positions: Mapping[int, int] = dict(positions)
        self._new_tail = new_tail
        self._history = history
        self._tail: Tail | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def positions(self) -> Mapping[int, int]:
        """The next offset to read of each shard."""
        return self._positions if self._tail is None else self._tail.positions

    def unsent(self) -> dict[int, int]:
        """Return the positions before which every copy was sent."""
        return nearest(self.positions, self.buffer.oldest() if self.buffer else {})

    def has_caught_up(self, read: Mapping[int, int]) -> bool:
        """Return whether the buffer has read at least as far as the router."""
        mine = self.positions
        return mine.keys() == read.keys() and all(
            mine[shard] == offset
            or (FULLY_READ not in (mine[shard], offset) and mine[shard] > offset)
            for shard, offset in read.items()
        )

    def start(self) -> None:
        """Read, unless it does already."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def hold(self) -> None:
        """Stop reading and sending; what was not sent is read again."""
        task, self._task = self._task, None
        try:
            if task is not None:
                await end(task)
        finally:  # also when this is cancelled: the buffer would go on
            self._positions = self.unsent()
            buffer, self.buffer = self.buffer, None
            if buffer is not None:
                await buffer.close()

    async def close(self) -> None:
        """Stop reading and sending."""
        await self.hold()

    async def _run(self) -> None:
        while True:
            with suppress(MillstreamError):  # an outage; a deleted topic ends the router
                await self._catch_up()
                return
            await asyncio.sleep(_RETRY_S)

    async def _catch_up(self) -> None:
        self.buffer = self.buffer or self._owner.buffer_for(self.key)
        try:
            async with self._new_tail(self._positions) as tail:
                self._tail = tail
                while not self._owner.try_rejoin(self):
                    is_sent = not any(self.buffer.pending())  # else it may rejoin once it is
                    chunk = await tail.next(
                        limits.ROUTER_READ_WAIT_MS if is_sent else limits.ROUTER_SAVE_MS
                    )
                    if chunk is not None:
                        await self._dispatch(chunk, self.buffer)
                        self._owner.note_gap(chunk.gap)
                        await tail.take(chunk)
        finally:
            if self._tail is not None:
                self._positions, self._tail = dict(self._tail.positions), None

    async def _dispatch(self, chunk: Chunk, buffer: DeliveryBuffer) -> None:
        await self._owner.confirm_routes(chunk)
        for block in blocks_of(chunk, self._routes_of):
            if copies := [copy for copy in block if self._owner.key_of(copy.branch) == self.key]:
                await buffer.wait_for_capacity(None)
                self._owner.add_to(buffer, self.key, copies)
        if chunk.ended:
            await buffer.wait_until_sent(chunk.shard, None)
            self._owner.note_end(chunk.shard)

    def _routes_of(self, shard: int, entry: LogRecord) -> Sequence[TopicRoute]:
        history = self._history
        if history is None or not history.covers(shard, entry.offset):
            return self._owner.routes_of(shard, entry)
        return [history.route] if history.takes(entry.record) else []
