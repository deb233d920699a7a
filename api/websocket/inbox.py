"""Queue of received WebSocket events that were not processed yet."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """The subset of `asyncio.Queue` that a socket's protocol needs, for one reader.

    Small: an `asyncio.Queue` takes 3 KB when it is empty, and most sockets idle.
    """

    __slots__ = ("_arrival", "_items")

    def __init__(self) -> None:
        self._items: deque[T] | None = None  # an empty one takes 760 bytes
        self._arrival: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """Return whether a reader would have to wait."""
        return not self._items

    def put_nowait(self, item: T) -> None:
        """Add an item; the queue is unbounded."""
        if self._items is None:
            self._items = deque()
        self._items.append(item)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def get(self) -> T:
        """Return the oldest item, waiting for one. A cancelled reader loses nothing."""
        while not self._items:
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        item = self._items.popleft()
        if not self._items:
            self._items = None
        return item
