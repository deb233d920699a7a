"""TTL cache that coalesces concurrent loads."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from storage.domain.clock import Clock

V = TypeVar("V")

_ENTRIES_MAX = 1_000  # results of one process: beyond it the oldest is dropped, and loaded again


class TtlCache(Generic[V]):
    """Cache of results by key with an expiry; concurrent callers share one load."""

    def __init__(self, age_ms: int, clock: Clock) -> None:
        self._age_ms = age_ms
        self._clock = clock
        self._entries: dict[Hashable, tuple[int, asyncio.Task[V]]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[V]]) -> V:
        """Return the cached result, or load it with `read`.

        An error of `read` is raised to all who wait, and the next caller loads again.
        """
        now_ms = self._clock.now_ms()
        loaded_ms, load = self._entries.get(key, (0, None))
        if (
            load is None
            or now_ms - loaded_ms >= self._age_ms
            or now_ms < loaded_ms
            or _failed(load)
        ):
            self._entries.pop(key, None)
            load = asyncio.ensure_future(_awaited(read))
            self._entries[key] = now_ms, load
            if len(self._entries) > _ENTRIES_MAX:
                del self._entries[next(iter(self._entries))]
        return await asyncio.shield(load)


async def _awaited(read: "Callable[[], Awaitable[V]]") -> V:
    return await read()


def _failed(load: "asyncio.Task[V]") -> bool:
    return load.done() and (load.cancelled() or load.exception() is not None)
