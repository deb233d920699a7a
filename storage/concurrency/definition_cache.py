"""In-process cache of definitions, so that reading one costs nothing.

How the cache is kept current:

    this process changes a definition      dropped when the change is committed, or may have been
    another process does                   its announcement drops it (LISTEN/NOTIFY)
    announcements may have been missed     everything is dropped once they come again, or after a grace; until then
                                           nothing new is cached
    an announcement was lost all the same  a definition is read again after `age_ms_max`
    it changed while it was being read     that read is not cached
"""

from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.single_flight import SingleFlight
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

    Dropping a name forgets its read too, so that a result that may be old is returned only to those who
    asked before, and is not cached.
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
        self._age_ms_max = age_ms_max
        self._entries: BoundedCache[N, CachedValue[D]] = BoundedCache(
            entries_max, CachedValue.invalidate
        )
        self._reads = SingleFlight[N, D]()
        self.on_invalidate: list[Callable[[N | None], object]] = []
        """Called with the name of a definition that may have changed; None: any of them."""

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
        return self.get_cached(name) or await self._reads.run(name, partial(self._load, name))

    async def fresh(self, name: N) -> D:
        """Return the definition by a read that began after this call.

        Concurrent callers share it.
        """
        return await self._reads.run_fresh(name, partial(self._load, name))

    def invalidate(self, name: N) -> None:
        """Invalidate one definition."""
        self._evict(name)
        self._reads.discard(name)
        for notify in self.on_invalidate:
            notify(name)

    def invalidate_all(self) -> None:
        """Invalidate every definition."""
        for entry in self._entries.values():
            entry.invalidate()
        self._entries.clear()
        self._reads.discard_all()
        for notify in self.on_invalidate:
            notify(None)

    async def close(self) -> None:
        """Stop the reads in progress."""
        await self._reads.close()

    async def _load(self, name: N) -> D:
        hears_changes = self._may_keep()
        read_at_ms = self._clock.now_ms()
        definition = await self._read(name)
        if hears_changes and self._reads.is_current(name):
            self._evict(name)
            self._entries[name] = CachedValue(definition, read_at_ms, read_at_ms + self._age_ms_max)
        return definition

    def _evict(self, name: N) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry.invalidate()
