"""Bounded cache for hot paths, where a lookup costs what one in a dict does.

`cachetools` has the same and more, at ten times the cost of a lookup; it is used where a lookup is followed by I/O.
"""

from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_EVICTED_SHARE = 8  # one in eight: evicting them one at a time would cost more than the write


class BoundedCache(dict[K, V]):
    """Mapping of at most `size_max` entries; when it is full, the oldest eighth leaves.

    `on_evict` is called with each value that leaves for want of space. Write by `[]` and `update` alone.
    """

    __slots__ = ("_on_evict", "_size_max")

    def __init__(self, size_max: int, on_evict: Callable[[V], object] | None = None) -> None:
        super().__init__()
        self._size_max = size_max
        self._on_evict = on_evict

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._size_max and key not in self:
            self._evict(1)
        super().__setitem__(key, value)

    def update(self, entries: Mapping[K, V]) -> None:  # type: ignore[override]
        """Write many entries, for less than by `[]`."""
        super().update(entries)
        if len(self) > self._size_max:
            self._evict(len(self) - self._size_max)

    def _evict(self, count: int) -> None:
        for key in list(islice(self, max(count, self._size_max // _EVICTED_SHARE))):
            value = self.pop(key)
            if self._on_evict is not None:
                self._on_evict(value)
