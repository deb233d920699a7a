"""Delivery buffer: the copies that wait for one target, sent in order by one task.

    add ──▶ outbox ──▶ a batch on its way (500 copies, 1 MiB) ──▶ target
              │             └ refused: all of it again, later; a copy that the target never takes is dropped and counted
              └ full: the router waits a moment, then the buffer gets a reader of its own

One batch is on its way at a time, and the next leaves when it has succeeded: the third promise of a monotonic producer
(`storage.streams.idempotent_append`). The log has the same record at an offset for ever, and a batch has every copy of a shard
and route between two offsets: the other two.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from consumers.routing.copies import Copy
from consumers.routing.target_sender import TargetSender
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import ErrorCategory, MillstreamError
from storage.domain.topics.route import RouteFailurePolicy
from storage.domain.topics.routing import RouteCounts

logger = logging.getLogger(__name__)

_OF_THE_MESSAGE = frozenset({ErrorCategory.INVALID, ErrorCategory.TOO_LARGE})


class DeliveryBuffer:
    """Outbox of one target, and its sender."""

    def __init__(self, sender: TargetSender) -> None:
        self._sender = sender
        self._outbox: deque[Copy] = deque()
        self._outbox_bytes = 0
        self._sending: list[Copy] = []
        self._has_copies = asyncio.Event()
        self._has_progress = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        self.is_failing = False
        self._skips: dict[tuple[int, int | None], int] = {}
        self.counts: dict[int, RouteCounts] = {}

    @property
    def is_full(self) -> bool:
        """Return whether the buffer takes no more copies for now."""
        return (
            len(self._outbox) >= limits.ROUTER_OUTBOX_RECORDS
            or self._outbox_bytes >= limits.ROUTER_OUTBOX_BYTES
        )

    def add(self, copy: Copy) -> None:
        """Append a copy, unless it was added already."""
        shard, offset, route = copy.shard, copy.offset, copy.route.number
        if self._skips and offset < max(
            self._skips.get((shard, None), 0), self._skips.get((shard, route), 0)
        ):
            return
        self._outbox.append(copy)
        self._outbox_bytes += copy.record.size_bytes
        self._has_copies.set()

    def pending(self) -> Iterable[Copy]:
        """Yield the copies that the target may not have, in order."""
        yield from self._sending
        yield from self._outbox

    def skip(self, positions: Mapping[int, int], number: int | None = None) -> None:
        """Skip copies below these offsets of shards, of one route or all: they were added before."""
        self._skips |= {(shard, number): offset for shard, offset in positions.items()}

    def oldest(self, number: int | None = None) -> dict[int, int]:
        """Return the lowest unsent offset of each shard, of one route or all."""
        offsets: dict[int, int] = {}
        for copy in self.pending():
            if number is None or copy.route.number == number:
                offsets.setdefault(copy.shard, copy.offset)
        return offsets

    def remove(self, number: int) -> list[Copy]:
        """Remove a route's copies, except those on their way; return them in order."""
        removed = [copy for copy in self._outbox if copy.route.number == number]
        if removed:
            self._outbox = deque(copy for copy in self._outbox if copy.route.number != number)
            self._outbox_bytes -= sum(copy.record.size_bytes for copy in removed)
        return removed

    async def wait_for_capacity(self, wait_s: float | None) -> bool:
        """Wait until the buffer is not full; return False after `wait_s`."""
        return await self._wait_until(lambda: not self.is_full, wait_s)

    async def wait_until_sent(self, shard: int, wait_s: float | None) -> bool:
        """Wait until the target has all copies of a shard; return False after `wait_s`."""
        return await self._wait_until(lambda: shard not in self.oldest(), wait_s)

    def stop(self) -> None:
        """Stop sending, of a buffer without copies."""
        self._task.cancel()

    async def close(self) -> None:
        """Stop sending."""
        await end(self._task)

    def drain_counts(self) -> dict[int, RouteCounts]:
        """Return what was counted since the last call."""
        counts, self.counts = self.counts, {}
        return counts

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
            self._sending = self._next_batch()
            if not self._outbox:
                self._has_copies.clear()
            await self._send(self._sending)
            self._sending = []
            self._note_progress()

    def _next_batch(self) -> list[Copy]:
        batch: list[Copy] = []
        size = 0
        while self._outbox and len(batch) < limits.ROUTER_BATCH_RECORDS:
            size += self._outbox[0].record.size_bytes
            if batch and size > limits.ROUTER_BATCH_BYTES:
                break
            batch.append(self._outbox.popleft())
        self._outbox_bytes -= sum(copy.record.size_bytes for copy in batch)
        return batch

    async def _send(self, batch: Sequence[Copy]) -> None:
        """Send a batch, or its halves in turn, until each copy is in the target or dropped."""
        backoff_ms = limits.ROUTER_RETRY_MS_MIN
        while batch:
            try:
                await self._sender.send(batch)
            except MillstreamError as error:
                if error.code.category in _OF_THE_MESSAGE:
                    await self._send_apart(batch, error)
                    return
                if self._drops(batch, error):
                    return
                self._note_failure(batch, error)
            except Exception as error:  # a buffer must not end
                logger.exception("route_failed", extra={"target": str(self._sender.target)})
                self._note_failure(batch, error)
            else:
                self._note_delivered(batch)
                return
            await asyncio.sleep(backoff_ms / limits.SECOND_MS)
            backoff_ms = min(2 * backoff_ms, limits.ROUTER_RETRY_MS_MAX)

    async def _send_apart(self, batch: Sequence[Copy], error: MillstreamError) -> None:
        """Send the halves of a batch in which some copy does not fit the target; drop it alone."""
        if len(batch) == 1:
            self._note_dropped(batch, error.detail)
            return
        middle = len(batch) // 2
        await self._send(batch[:middle])
        await self._send(batch[middle:])

    def _drops(self, batch: Sequence[Copy], error: MillstreamError) -> bool:
        is_missing = error.code.category is ErrorCategory.NOT_FOUND
        if not is_missing or any(
            one.route.spec.on_failure is RouteFailurePolicy.WAIT for one in batch
        ):
            return False
        self._note_dropped(batch, error.detail)
        return True

    # Counts

    def _note_delivered(self, batch: Sequence[Copy]) -> None:
        self.is_failing = False
        for copy in batch:
            counts = self._counts_of(copy)
            counts.delivered += 1
            counts.failure = ""

    def _note_dropped(self, batch: Sequence[Copy], reason: str) -> None:
        self.is_failing = False
        for copy in batch:
            self.count_dropped(copy.route.number, reason)

    def count_dropped(self, number: int, reason: str) -> None:
        """Count a message that the route does not get."""
        counts = self.counts.setdefault(number, RouteCounts())
        counts.dropped += 1
        counts.failure = reason

    def _note_failure(self, batch: Sequence[Copy], error: Exception) -> None:
        self.is_failing = True
        reason = error.detail if isinstance(error, MillstreamError) else repr(error)
        for copy in batch:
            self._counts_of(copy).failure = reason
        self._note_progress()

    def _counts_of(self, copy: Copy) -> RouteCounts:
        return self.counts.setdefault(copy.route.number, RouteCounts())

    def _note_progress(self) -> None:
        self._has_progress.set()
