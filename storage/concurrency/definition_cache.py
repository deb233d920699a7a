"""In-process cache of definitions, so that reading one costs nothing.

How the cache is kept current:

    this process changes a definition      dropped when the change is committed, or may have been
    another process does                   its announcement drops it (LISTEN/NOTIFY)
    announcements may have been missed     everything is dropped once they come again, or after a grace; until then
                                           nothing new is cached
    they cannot come, and none is missed   what is cached stays in use at any age (`is_vouched`)
    an announcement was lost all the same  a definition is read again after `age_ms_max`, once Postgres answers
    it changed while it was being read     that read is not cached
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from msgspec import Struct

from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.periodic import periodic
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import StorageBusy, StorageUnavailable

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
        *,
        is_vouched: Callable[[], bool] = lambda: False,
    ) -> None:
        self._read = read
        self._may_keep = may_keep
        self._clock = clock
        self._age_ms_max = age_ms_max
        self._entries_max = entries_max
        self._is_vouched = is_vouched
        self._unread: dict[N, None] | None = None  # in order
        self._wake = asyncio.Event()
        self._entries: BoundedCache[N, CachedValue[D]] = BoundedCache(
            entries_max, CachedValue.invalidate
        )
        self._reads = SingleFlight[N, D]()
        self.on_invalidate: list[Callable[[N | None], object]] = []
        """Called with the name of a definition that may have changed; None: any of them."""

    def get_cached(self, name: N) -> D | None:
        """Return the definition if it is cached and young enough."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        value = entry.value_at(self._clock.now_ms())
        return self._renewed(entry) if value is None and self._is_vouched() else value

    def entry(self, name: N) -> CachedValue[D] | None:
        """Return the cache entry, which has its own expiry."""
        return self._entries.get(name)

    def shared(self, name: N, definition: D) -> D:
        """Return the cached definition if this one is equal: its holders have one object then."""
        entry = self._entries.get(name)
        return entry.value if entry is not None and entry.value == definition else definition

    async def get(self, name: N) -> D:
        """Return the definition, from the cache if it is young enough.

        Raises what the read raises.
        """
        if (value := self.get_cached(name)) is not None:
            return value
        try:
            return await self._reads.run(name, partial(self._load, name))
        except (StorageUnavailable, StorageBusy):
            entry = self._entries.get(name)
            if entry is None or not (self._may_keep() or self._is_vouched()):
                raise
            return self._renewed(entry)

    def _renewed(self, entry: CachedValue[D]) -> D:
        """Let an old value, which nobody has changed as far as is known, be used for a moment."""
        entry.until_ms = self._clock.now_ms() + limits.CATALOG_WITNESS_MS
        return entry.value

    async def fresh(self, name: N) -> D:
        """Return the definition by a read that began after this call.

        Concurrent callers share it.
        """
        return await self._reads.run_fresh(name, partial(self._load, name))

    def invalidate(self, name: N) -> None:
        """Invalidate one definition."""
        self._evict(name)
        self._reads.discard(name)
        self.note_new(name)
        for notify in self.on_invalidate:
            notify(name)

    def invalidate_all(self) -> None:
        """Invalidate every definition."""
        for entry in self._entries.values():
            entry.invalidate()
        self._entries.clear()
        self._reads.discard_all()
        self._unread = None
        self._wake.set()
        for notify in self.on_invalidate:
            notify(None)

    # Warming

    async def keep_warm(self, read_all: Callable[[], AsyncIterator[tuple[N, D]]]) -> None:
        """Read all definitions, and each that changes, in the background, until cancelled.

        So an outage finds those in the cache that were not used lately. What exceeds the cache is left out.
        """
        await periodic(
            limits.CACHE_WARM_MS / limits.SECOND_MS,
            partial(self._warm, read_all),
            "cache",
            wake=self._wake,
            retry_s=limits.CACHE_WARM_RETRY_MS / limits.SECOND_MS,
        )

    def note_new(self, name: N) -> None:
        """Have a definition read in the background, if the cache is kept warm."""
        if self._unread is not None:
            self._unread[name] = None
            self._wake.set()

    async def _warm(self, read_all: Callable[[], AsyncIterator[tuple[N, D]]]) -> None:
        if not self._may_keep():
            return
        if self._unread is None:
            await self._read_all(read_all)
        while self._unread:
            await asyncio.sleep(limits.CACHE_WARM_LINGER_MS / limits.SECOND_MS)
            if not self._unread:
                return
            names = [*islice(self._unread, limits.DEFINITION_BATCH_NAMES_MAX)]
            for name in names:
                del self._unread[name]
            await self._read_changed(names)

    async def _read_all(self, read_all: Callable[[], AsyncIterator[tuple[N, D]]]) -> None:
        """Cache what is not cached; what changes meanwhile is read again after that."""
        unread = self._unread = {}
        read_at_ms, is_complete = self._clock.now_ms(), False
        try:
            async for name, definition in read_all():
                if self._unread is not unread or not self._may_keep():
                    return
                if len(self._entries) >= self._entries_max:
                    break
                if name not in unread and name not in self._entries:
                    until_ms = read_at_ms + self._age_ms_max
                    self._entries[name] = CachedValue(definition, read_at_ms, until_ms)
            is_complete = True
        finally:
            if not is_complete:
                self._unread = None

    async def _read_changed(self, names: Sequence[N]) -> None:
        results = await asyncio.gather(*map(self.get, names), return_exceptions=True)
        for name, result in zip(names, results, strict=True):
            if isinstance(result, (StorageUnavailable, StorageBusy)):
                if self._unread is not None:
                    self._unread[name] = None
                raise result

    async def close(self) -> None:
        """Stop the reads in progress."""
        await self._reads.close()

    async def _load(self, name: N) -> D:
        hears_changes = self._may_keep()
        read_at_ms = self._clock.now_ms()
        definition = self.shared(name, await self._read(name))
        if hears_changes and self._reads.is_current(name):
            self._evict(name)
            self._entries[name] = CachedValue(definition, read_at_ms, read_at_ms + self._age_ms_max)
        return definition

    def _evict(self, name: N) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry.invalidate()
