"""Delivery buffer: the copies that wait for one target, sent in order by one task.

    add ──▶ outbox ──▶ a batch on its way (500 copies, 1 MiB) ──▶ target, or a dead-letter queue (`batch_sender`)
              └ full: the router waits a moment, then the buffer gets a reader of its own

One batch is on its way at a time, and the next leaves when each of its copies is finished: the third promise of a monotonic producer
(`storage.streams.idempotent_append`). The log has the same record at an offset for ever, and a batch has every copy of a shard
and route between two offsets: the other two.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from consumers.routing.batch_sender import BatchSender, never_apart
from consumers.routing.copies import Copy
from storage.concurrency.tasks import end
from storage.domain import limits


class DeliveryBuffer:
    """Outbox of one target, and its sender.

    `on_blocked` is called with the buffer and a copy of a route that waits alone; it returns whether the route has another buffer.
    """

    def __init__(
        self, sender: BatchSender, on_blocked: Callable[["DeliveryBuffer", Copy], bool]
    ) -> None:
        self._sender = sender
        self._outbox: deque[Copy] = deque()
        self._outbox_bytes = 0
        self._has_copies = asyncio.Event()
        self._has_progress = asyncio.Event()
        sender.on_progress = self._has_progress.set
        sender.on_blocked = lambda copy: on_blocked(self, copy)
        self._task = asyncio.create_task(self._run())
        self._skips: dict[tuple[int, int | None], int] = {}

    @property
    def is_failing(self) -> bool:
        """Return whether the last attempt failed."""
        return self._sender.is_failing

    @property
    def is_full(self) -> bool:
        """Return whether the buffer takes no more copies for now."""
        return (
            len(self._outbox) >= limits.ROUTER_OUTBOX_RECORDS
            or self._outbox_bytes >= limits.ROUTER_OUTBOX_BYTES
        )

    def add(self, copies: Sequence[Copy]) -> None:
        """Append copies, except those that were added already."""
        if self._skips:
            copies = [copy for copy in copies if not self._is_skipped(copy)]
        if copies:
            self._outbox += copies
            self._outbox_bytes += _size_bytes(copies)
            self._has_copies.set()

    def _is_skipped(self, copy: Copy) -> bool:
        shard = copy.source.shard
        before = max(self.skipped(shard), self.skipped(shard, copy.route.number))
        return copy.source.offset < before

    def skipped(self, shard: int, number: int | None = None) -> int:
        """Return the offset below which copies of a shard are skipped, of one route or all."""
        return self._skips.get((shard, number), 0)

    def pending(self) -> Iterable[Copy]:
        """Yield the copies that the target may not have, in order."""
        yield from self._sender.unfinished
        yield from self._outbox

    def skip(self, positions: Mapping[int, int], number: int | None = None) -> None:
        """Skip copies below these offsets of shards, of one route or all: they were added before."""
        self._skips |= {(shard, number): offset for shard, offset in positions.items()}

    def oldest(self, number: int | None = None) -> dict[int, int]:
        """Return the lowest unsent offset of each shard, of one route or all."""
        return {
            copy.source.shard: copy.source.offset
            for copy in chain(reversed(self._outbox), reversed(self._sender.unfinished))
            if number is None or copy.route.number == number
        }

    def remove(self, number: int) -> list[Copy]:
        """Remove a route's copies, except those on their way; return them in order."""
        removed = [copy for copy in self._outbox if copy.route.number == number]
        if removed:
            self._outbox = deque(copy for copy in self._outbox if copy.route.number != number)
            self._outbox_bytes -= _size_bytes(removed)
        return removed

    def leave(self, number: int) -> None:
        """Leave a route's copies, also those that are sent again, to another buffer."""
        self.remove(number)
        self._sender.leave(number)

    async def wait_for_capacity(self, wait_s: float | None) -> bool:
        """Wait until the buffer is not full; return False after `wait_s`."""
        return await self._wait_until(lambda: not self.is_full, wait_s)

    async def wait_until_sent(self, shard: int, wait_s: float | None) -> bool:
        """Wait until the target has all copies of a shard; return False after `wait_s`."""
        return await self._wait_until(lambda: shard not in self.oldest(), wait_s)

    def stop(self) -> None:
        """Stop sending, of a buffer without copies."""
        self._task.cancel()
        self._sender.on_blocked = never_apart

    async def close(self) -> None:
        """Stop sending."""
        await end(self._task)
        self._sender.on_blocked = never_apart  # which leads to the buffer, and to its router

    # Sending

    async def _wait_until(self, is_met: Callable[[], bool], wait_s: float | None) -> bool:
        try:
            async with asyncio.timeout(wait_s):
                while not is_met():
                    self._has_progress.clear()
                    await self._has_progress.wait()
        except TimeoutError:
            return False
        return True

    async def _run(self) -> None:
        while True:
            await self._has_copies.wait()
            batch = self._next_batch()
            if not self._outbox:
                self._has_copies.clear()
            await self._sender.send(batch)
            self._has_progress.set()

    def _next_batch(self) -> list[Copy]:
        copies = [*islice(self._outbox, limits.ROUTER_BATCH_RECORDS)]
        size = _size_bytes(copies)
        while len(copies) > 1 and size > limits.ROUTER_BATCH_BYTES:
            copies = copies[: len(copies) // 2]
            size = _size_bytes(copies)
        for _ in copies:
            self._outbox.popleft()
        self._outbox_bytes -= size
        return copies


def _size_bytes(copies: Iterable[Copy]) -> int:
    return sum([copy.source.size_bytes for copy in copies])
