"""Deduplication ids of in-memory queues and topics."""

from __future__ import annotations

from typing import Generic, TypeVar

from millstream_client.testing.definitions import Clock

WINDOW_S = 300.0

T = TypeVar("T")


class Deduplication(Generic[T]):
    """Items that were added under a deduplication id within the window."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._items: dict[str, tuple[T, float]] = {}

    def find(self, dedup_id: str) -> T | None:
        """Return the item that was added under an id; None without an id."""
        item, added_at = self._items.get(dedup_id, (None, 0.0))
        return item if dedup_id and self._now() - added_at < WINDOW_S else None

    def add(self, dedup_id: str, item: T) -> None:
        """Add an item under an id, unless that is empty."""
        if dedup_id:
            self._items[dedup_id] = (item, self._now())

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()
