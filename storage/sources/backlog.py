"""Backlog of sources: events that their targets do not have yet."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.sources.source import InboundSource
from storage.hot_store.outbox import OutboxStore
from storage.sources.engine import Sources, outbox_of

_CONCURRENCY_MAX = 50


class SourceBacklog(NamedTuple):
    """Waiting events of all sources; `blocked`: sources whose oldest one waits for a minute."""

    sources: int = 0
    waiting: int = 0
    oldest_age_ms: int = 0
    blocked: int = 0


class _Waiting(NamedTuple):
    """Number of a source's waiting events, and the age of the oldest."""

    events: int
    age_ms: int = 0


class SourceBacklogReader:
    """Measurement of the outboxes of a deployment."""

    def __init__(self, sources: Sources, outboxes: OutboxStore, clock: Clock) -> None:
        self._sources = sources
        self._outboxes = outboxes
        self._clock = clock

    async def read(self) -> SourceBacklog:
        """Measure the outboxes of all sources."""
        sources = await self._sources.all()
        slots = asyncio.Semaphore(_CONCURRENCY_MAX)
        waiting = await asyncio.gather(*(self._measure(source, slots) for source in sources))
        return _sum(waiting)

    async def _measure(self, source: InboundSource, slots: asyncio.Semaphore) -> _Waiting:
        outbox = outbox_of(source)
        async with slots:
            events = (await self._outboxes.counts(outbox)).waiting
            entries = (await self._outboxes.pending(outbox, 1))[0] if events else []
        accepted_ms = [entry.sequence // limits.OUTBOX_SEQUENCES_PER_MS for entry in entries]
        return _Waiting(events, *[max(0, self._clock.now_ms() - at_ms) for at_ms in accepted_ms])


def _sum(waiting: Sequence[_Waiting]) -> SourceBacklog:
    ages = [entry.age_ms for entry in waiting]
    return SourceBacklog(
        sources=len(waiting),
        waiting=sum(entry.events for entry in waiting),
        oldest_age_ms=max(ages, default=0),
        blocked=sum(age_ms >= limits.SOURCE_BLOCKED_MS for age_ms in ages),
    )
