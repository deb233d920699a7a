"""Request coalescing: items that arrive during a flush leave together in the next.

    submit ─▶ backlog ─▶ flush of a batch, one at any time ─▶ each caller gets the result or error of its item
    add ────────┘                                             nobody waits; a full backlog delays the caller

The counterpart of the hot tier's pipeline in front of Postgres and of calls with many items: group commit.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar, cast

import attrs

from storage.concurrency.tasks import end, give
from storage.domain import limits
from storage.domain.errors import MillstreamError, StorageBusy

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

Flush = Callable[[Sequence[Item]], Awaitable[Sequence[Result | MillstreamError] | None]]
"""Returns the results of all items, in their order; None where no item has one."""


class _Entry(NamedTuple, Generic[Item, Result]):
    """An item, and the future of its result if a caller waits for it."""

    item: Item
    done: "asyncio.Future[Result] | None"

    def is_abandoned(self) -> bool:
        """Return whether the caller has given up."""
        return self.done is not None and self.done.done()


@attrs.define(eq=False)
class Batcher(Generic[Item, Result]):
    """Batcher of one kind of item, with at most one flush at a time.

    A batch weighs at most `batch_max`, or is one item; `weigh` returns the weight of an item, 1 by default. A flush of
    fewer items than that begins after `linger_s`. `subject` names what callers wait for in the error of a full backlog.
    `when_idle` is called when no item waits any longer.
    """

    _flush: Flush[Item, Result]
    _batch_max: int = attrs.field(default=limits.GROUP_BATCH_CALLS_MAX, kw_only=True)
    _backlog_max: int = attrs.field(default=limits.GROUP_BACKLOG_MAX, kw_only=True)
    _weigh: Callable[[Item], int] | None = attrs.field(default=None, kw_only=True)
    _linger_s: float = attrs.field(default=0.0, kw_only=True)
    _subject: str = attrs.field(default="Postgres", kw_only=True)
    _when_idle: Callable[[], object] | None = attrs.field(default=None, kw_only=True)
    _waiting: deque[_Entry[Item, Result]] = attrs.field(factory=deque, init=False)
    _working: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _capacity: asyncio.Event | None = attrs.field(default=None, init=False)
    _hurry: asyncio.Event | None = attrs.field(default=None, init=False)

    def __len__(self) -> int:
        """Return the number of items that wait for a flush."""
        return len(self._waiting)

    async def submit(self, item: Item) -> Result:
        """Submit an item and return its result.

        Raises the item's error, and StorageBusy when too many wait. The item of a caller that gives up before it leaves is
        dropped.
        """
        if len(self._waiting) >= self._backlog_max:
            raise StorageBusy(f"Too many callers are waiting for {self._subject}.")
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._enqueue(_Entry(item, done))
        return await done

    async def add(self, item: Item) -> None:
        """Add an item whose result nobody waits for; wait while the backlog is full."""
        while len(self._waiting) >= self._backlog_max:
            self._capacity = self._capacity or asyncio.Event()
            await self._capacity.wait()
        self.put(item)

    def put(self, item: Item) -> None:
        """Add an item whose result nobody waits for, whatever the backlog."""
        self._enqueue(_Entry(item, None))

    async def finish(self) -> None:
        """Wait until everything that was added is flushed, without lingering."""
        while (task := self._working) is not None:
            if self._hurry is not None:
                self._hurry.set()
            await asyncio.wait([task])

    async def close(self) -> None:
        """Stop; waiting callers are cancelled."""
        if self._working is not None:
            await end(self._working)
        for entry in self._waiting:
            if entry.done is not None:
                entry.done.cancel()

    def _enqueue(self, entry: _Entry[Item, Result]) -> None:
        self._waiting.append(entry)
        if self._working is None:
            if self._linger_s:
                self._hurry = asyncio.Event()
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                if self._hurry is not None and len(self._waiting) < self._batch_max:
                    await self._linger(self._hurry)
                await self._flush_batch(self._next_batch())
        finally:
            self._working = None
            if self._when_idle is not None:
                self._when_idle()

    async def _linger(self, hurry: asyncio.Event) -> None:
        """Let other items arrive, until `finish` is called."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._linger_s):
                await hurry.wait()

    def _next_batch(self) -> list[_Entry[Item, Result]]:
        batch: list[_Entry[Item, Result]] = []
        weight = 0
        while self._waiting:
            weight += 1 if self._weigh is None else self._weigh(self._waiting[0].item)
            if batch and weight > self._batch_max:
                break
            batch.append(self._waiting.popleft())
        if self._capacity is not None:
            self._capacity.set()
            self._capacity = None
        return [entry for entry in batch if not entry.is_abandoned()]

    async def _flush_batch(self, batch: Sequence[_Entry[Item, Result]]) -> None:
        results: Sequence[Result | Exception]
        try:
            returned = await self._flush([entry.item for entry in batch]) if batch else ()
            nothing = cast("Sequence[Result]", [None] * len(batch))
            results = nothing if returned is None else returned
            if len(results) != len(batch):
                raise ValueError(f"{len(results)} results for {len(batch)} items")
        except asyncio.CancelledError:
            for entry in batch:
                if entry.done is not None:
                    entry.done.cancel()
            raise
        except Exception as error:
            results = [error] * len(batch)
            if any(entry.done is None for entry in batch):
                logger.exception("batch_failed", extra={"count": len(batch)})
        for entry, result in zip(batch, results, strict=True):
            if entry.done is not None:
                give(entry.done, result)
