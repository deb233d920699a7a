"""In-process cache of definitions, so that reading one costs nothing.

How the cache is kept current:

    this process changes a definition      dropped when the change is committed, or may have been
    another process does                   its announcement drops it (LISTEN/NOTIFY)
    announcements may have been missed     everything is dropped once they come again, or after a grace; until then
                                           nothing new is cached
    an announcement was lost all the same  a definition is read again after `age_ms_max`
    it changed while it was being read     that read is not cached
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from storage.domain import limits
from storage.domain.clock import Clock

N = TypeVar("N", bound=Hashable)
D = TypeVar("D", bound=Struct)  # a value that is always true
V = TypeVar("V")


class CachedValue(Generic[V]):
    """A value read at `read_at_ms` and usable until `until_ms`, in milliseconds since 1970.

    The cache ends it when the value may have changed; other holders see that by the time alone. A clock that
    was set back makes it old.
    """

    __slots__ = ("read_at_ms", "until_ms", "value")

    def __init__(self, value: V, read_at_ms: int, until_ms: int) -> None:
        self.value = value
        self.read_at_ms = read_at_ms
        self.until_ms = until_ms

    def value_at(self, now_ms: int) -> V | None:
        """Return the value if it may be used now."""
        return self.value if self.read_at_ms <= now_ms < self.until_ms else None

    def invalidate(self) -> None:
        """Invalidate the value."""
        self.until_ms = 0


class DefinitionCache(Generic[N, D]):
    """Cache of definitions of one kind, with at most one read in progress for each name.

    A read is valid as long as it is in `_reading`. Dropping a name removes its read too, so that
    a result that may be old is returned only to those who asked before, and is not cached.
    """

    def __init__(
        self,
        read: Callable[[N], Awaitable[D]],
        may_keep: Callable[[], bool],
        clock: Clock,
        entries_max: int = limits.DEFINITIONS_CACHED_MAX,
        age_ms_max: int = limits.DEFINITION_AGE_MS_MAX,
    ) -> None:
        self._read = read
        self._may_keep = may_keep
        self._clock = clock
        self._entries_max = entries_max
        self._age_ms_max = age_ms_max
        self._entries: dict[N, CachedValue[D]] = {}
        self._reading: dict[N, asyncio.Task[D]] = {}
        self._tasks: set[asyncio.Task[D]] = set()

    def get_cached(self, name: N) -> D | None:
        """Return the definition if it is cached and young enough."""
        entry = self._entries.get(name)
        return None if entry is None else entry.value_at(self._clock.now_ms())

    def entry(self, name: N) -> CachedValue[D] | None:
        """Return the cache entry, which has its own expiry."""
        return self._entries.get(name)

    async def get(self, name: N) -> D:
        """Return the definition, from the cache if it is young enough.

        Raises what the read raises.
        """
        return self.get_cached(name) or await self._single_flight(name)

    async def fresh(self, name: N) -> D:
        """Return the definition by a read that began after this call.

        Concurrent callers share it.
        """
        earlier = self._reading.get(name)
        if earlier is not None:
            await asyncio.wait([earlier])
        return await self._single_flight(name)

    def invalidate(self, name: N) -> None:
        """Invalidate one definition."""
        self._evict(name)
        self._reading.pop(name, None)

    def invalidate_all(self) -> None:
        """Invalidate every definition."""
        for entry in self._entries.values():
            entry.invalidate()
        self._entries.clear()
        self._reading.clear()

    async def close(self) -> None:
        """Stop the reads in progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _single_flight(self, name: N) -> D:
        """Wait for the read of this name; a caller that gives up does not end it for the others."""
        task = self._reading.get(name)
        if task is None:
            task = self._reading[name] = asyncio.create_task(self._read_and_keep(name))
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._finish(name, done))
        return await asyncio.shield(task)

    async def _read_and_keep(self, name: N) -> D:
        hears_changes = self._may_keep()
        read_at_ms = self._clock.now_ms()
        definition = await self._read(name)
        if hears_changes and self._reading.get(name) is asyncio.current_task():
            self._keep(name, CachedValue(definition, read_at_ms, read_at_ms + self._age_ms_max))
        return definition

    def _keep(self, name: N, entry: CachedValue[D]) -> None:
        self._evict(name)
        if len(self._entries) >= self._entries_max:
            self._evict(next(iter(self._entries)))
        self._entries[name] = entry

    def _evict(self, name: N) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry.invalidate()

    def _finish(self, name: N, task: asyncio.Task[D]) -> None:
        self._tasks.discard(task)
        if self._reading.get(name) is task:
            del self._reading[name]
        if not task.cancelled():
            task.exception()  # waiting callers get it, if any waited to the end
