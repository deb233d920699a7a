"""TTL cache that coalesces concurrent loads."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from cachetools import TLRUCache

from storage.concurrency.single_flight import SingleFlight
from storage.domain.clock import Clock

V = TypeVar("V")

_ENTRIES_MAX = 1_000  # results of one process: beyond it the least recently used is loaded again


class _TimedResult(NamedTuple, Generic[V]):
    """A result, and the time at which its load began."""

    value: V
    began_ms: int


class TtlCache(Generic[V]):
    """Cache of results by key with an expiry; concurrent callers share one load."""

    def __init__(self, age_ms: int, clock: Clock, *, entries_max: int = _ENTRIES_MAX) -> None:
        self._clock = clock
        self._results: TLRUCache[Hashable, _TimedResult[V]] = TLRUCache(
            entries_max, lambda _key, loaded, _now: loaded.began_ms + age_ms, clock.now_ms
        )
        self._loads = SingleFlight[Hashable, V]()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[V]]) -> V:
        """Return the cached result, or load it with `read`.

        An error of `read` is raised to all who wait, and the next caller loads again. A clock that was set back makes a result
        old.
        """
        loaded = self._results.get(key)
        if loaded is not None and loaded.began_ms <= self._clock.now_ms():
            return loaded.value
        return await self._loads.run(key, lambda: self._load(key, read))

    async def _load(self, key: Hashable, read: Callable[[], Awaitable[V]]) -> V:
        began_ms = self._clock.now_ms()
        value = await read()
        self._results[key] = _TimedResult(value, began_ms)
        return value
