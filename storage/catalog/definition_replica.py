"""Replica of all definitions of a kind, for the tasks that visit each of them.

first use, or announcements may have been missed     read whole, page by page; each time while none can arrive
a definition has changed, or may have                that one is read again
Postgres is unreachable                              the last state stands
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeVar

import attrs

from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import StoredDefinition
from storage.domain.errors import (
    MillstreamError,
    QueueNotFound,
    StorageBusy,
    StorageUnavailable,
    StreamNotFound,
)

N = TypeVar("N", bound=Hashable)
D = TypeVar("D", bound=StoredDefinition)


@attrs.define(eq=False)
class DefinitionReplica(Generic[N, D]):
    """Last known definitions of a kind, by name, as current as announcements are."""

    _read_all: Callable[[], AsyncIterator[D]]
    _read: Callable[[N], Awaitable[D]]
    _is_notified: Callable[[], bool]
    _clock: Clock
    _definitions: dict[N, D] | None = attrs.field(default=None, init=False)
    _changed: dict[N, None] = attrs.field(factory=dict, init=False)  # in order
    _read_at_ms: int | None = attrs.field(default=None, init=False)
    _refreshing: SingleFlight[None, None] = attrs.field(factory=SingleFlight, init=False)

    async def close(self) -> None:
        """Stop the read in progress."""
        await self._refreshing.close()

    def note_change(self, name: N | None) -> None:
        """Note that a definition may have changed; None: any of them."""
        if name is None or len(self._changed) >= limits.DEFINITION_CHANGES_MAX:
            self._read_at_ms = None
        elif self._read_at_ms is not None:
            self._changed[name] = None

    async def get(self) -> Mapping[N, D]:
        """Return all definitions, by name.

        Raises StorageUnavailable and StorageBusy before the first read.
        """
        try:
            await self._refreshing.run(None, self._refresh)
        except (StorageUnavailable, StorageBusy):
            if self._definitions is None:
                raise
        assert self._definitions is not None
        return self._definitions

    async def _refresh(self) -> None:
        now_ms = self._clock.now_ms()
        is_young = (
            self._read_at_ms is not None
            and 0 <= now_ms - self._read_at_ms < limits.DEFINITION_REPLICA_AGE_MS_MAX
        )
        if not is_young:
            await self._read_whole(now_ms)
        while self._changed and self._definitions is not None:
            name = next(iter(self._changed))
            del self._changed[name]
            try:
                await self._read_one(name, self._definitions)
            except MillstreamError:
                self._changed[name] = None
                raise

    async def _read_whole(self, now_ms: int) -> None:
        self._read_at_ms, self._changed = (now_ms if self._is_notified() else None), {}
        try:
            self._definitions = {
                definition.name: definition async for definition in self._read_all()
            }
        except BaseException:
            self._read_at_ms = None
            raise

    async def _read_one(self, name: N, definitions: dict[N, D]) -> None:
        try:
            definition = await self._read(name)
            definitions[definition.name] = definition  # its own name, not one of an announcement
        except (QueueNotFound, StreamNotFound):
            definitions.pop(name, None)
