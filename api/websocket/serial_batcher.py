"""Serial processing in batches: items that arrive during a batch form the next one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from storage.domain import limits

Item = TypeVar("Item")


class SerialBatcher(Generic[Item]):
    """Batcher that passes items to `work` in order, a list at a time, one call at any time.

    `work` does not raise. Adding waits while too many items are queued.
    """

    __slots__ = ("_capacity", "_items", "_task", "_work")

    def __init__(self, work: Callable[[list[Item]], Awaitable[None]]) -> None:
        self._work = work
        self._items: list[Item] = []
        self._task: asyncio.Task[None] | None = None
        self._capacity: asyncio.Event | None = None

    async def add(self, item: Item) -> None:
        """Queue an item for the next batch."""
        while len(self._items) >= limits.PUSH_PENDING_MAX:
            self._capacity = self._capacity or asyncio.Event()
            await self._capacity.wait()
        self._items.append(item)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._items:
                items, self._items = self._items, []
                if self._capacity is not None:
                    self._capacity.set()
                    self._capacity = None
                await self._work(items)
        finally:
            self._task = None

    async def finished(self) -> None:
        """Wait until everything that was added is done."""
        while self._task is not None:
            await asyncio.wait([self._task])
