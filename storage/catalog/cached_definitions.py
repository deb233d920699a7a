"""Definitions read by name through a cache, which announcements keep current."""

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from storage.concurrency.batcher import Batcher
from storage.concurrency.definition_cache import DefinitionCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError, SecretUnreadable
from storage.postgres.definition_table import CHANNEL, DefinitionTable
from storage.postgres.listener import Listener

N = TypeVar("N", bound=Hashable)
D = TypeVar("D", bound=msgspec.Struct)

_UNREADABLE = (msgspec.ValidationError, SecretUnreadable)


class CachedDefinitions(Generic[N, D]):
    """Cache of one noun's definitions; reads of many names share a statement.

    `name_of` builds a name from its text and its namespace.
    """

    def __init__(
        self,
        table: DefinitionTable[N, Any, Any],
        name_of: Callable[[str, str], N],
        not_found: Callable[[N], MillstreamError],
        listener: Listener,
        clock: Clock,
    ) -> None:
        self._table = table
        self._name_of = name_of
        self._not_found = not_found
        self._reads: Batcher[N, D] = Batcher(
            self._read_many,
            batch_max=limits.DEFINITION_BATCH_NAMES_MAX,
            backlog_max=limits.DEFINITION_BACKLOG_MAX,
        )
        self._cache = DefinitionCache(
            self._reads.submit,
            lambda: listener.listening,
            clock,
            is_vouched=lambda: listener.is_vouched,
        )
        self.get_cached = self._cache.get_cached
        """Return the definition if it is in the cache and young enough to act on."""
        self.get = self._cache.get
        """Return the definition, from the cache if possible."""
        self.fresh = self._cache.fresh
        """Return the definition as Postgres has it now."""
        self.invalidate = self._cache.invalidate
        """Drop a name whose definition has changed, or may have."""
        self.on_invalidate = self._cache.on_invalidate
        """Called with each name that is dropped; with None when all are."""
        listener.subscribe(CHANNEL, self._on_change, self._cache.invalidate_all)

    async def keep_warm(self) -> None:
        """Keep every definition cached, until cancelled."""
        await self._cache.keep_warm(self._read_all)

    async def every(self) -> AsyncIterator[D]:
        """Yield every definition as Postgres has it, as the cached object where that is equal."""
        async for definition in self._table.every():
            yield self._cache.shared(definition.name, definition)

    async def _read_all(self) -> AsyncIterator[tuple[N, D]]:
        async for definition in self._table.every():
            yield definition.name, definition

    def _on_change(self, payload: str) -> None:
        """Drop what an announcement, "<kind>:<namespace>/<name>", names."""
        kind, _, path = payload.partition(":")
        if kind == self._table.kind:
            namespace, _, name = path.partition("/")
            self.invalidate(self._name_of(name, namespace))

    async def close(self) -> None:
        """Stop the reads in progress."""
        await self._cache.close()
        await self._reads.close()

    async def _read_many(self, names: Sequence[N]) -> list[D | MillstreamError]:
        """Read the definitions that were requested during the previous statement.

        If one of them cannot be decoded, such as that of a later version, or decrypted, the others are read without it.
        """
        try:
            by_name = await self._table.find_many(names)
        except _UNREADABLE:
            if len(names) == 1:
                raise
            halves = names[: len(names) // 2], names[len(names) // 2 :]
            return [result for half in halves for result in await self._read_half(half)]
        return [by_name.get(name) or self._not_found(name) for name in names]

    async def _read_half(self, names: Sequence[N]) -> Sequence[D | MillstreamError]:
        try:
            return await self._read_many(names)
        except _UNREADABLE as error:
            return [error]  # type: ignore[list-item]
