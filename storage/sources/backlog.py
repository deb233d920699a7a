"""Backlog of sources: events that their targets do not have yet."""

from functools import partial
from typing import NamedTuple

import attrs

from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.sources.source import InboundSource, SourceCounts
from storage.hot_store.outbox import OutboxStore
from storage.sources.engine import Sources, outbox_of


class SourceBacklog(NamedTuple):
    """Waiting events of all sources; `blocked`: sources whose oldest one waits for a minute."""

    sources: int = 0
    waiting: int = 0
    oldest_age_ms: int = 0
    blocked: int = 0


@attrs.define(eq=False, slots=False)
class SourceBacklogReader:
    """Measurement of the outboxes of a deployment."""

    _sources: Sources
    _outboxes: OutboxStore
    _isolation: Isolation
    _clock: Clock

    async def read(self) -> SourceBacklog:
        """Measure the outboxes of all sources; one that cannot be measured counts as empty."""
        sources = await self._sources.all()
        counts = await in_batches(sources, self._counts, limits.MAINTENANCE_CONCURRENCY_MAX)
        now_ms = self._clock.now_ms()
        ages = [max(0, now_ms - one.waiting_since_ms) for one in counts if one.waiting_since_ms]
        return SourceBacklog(
            sources=len(sources),
            waiting=sum(one.waiting for one in counts),
            oldest_age_ms=max(ages, default=0),
            blocked=sum(age_ms >= limits.SOURCE_BLOCKED_MS for age_ms in ages),
        )

    async def _counts(self, source: InboundSource) -> SourceCounts:
        measure = partial(self._outboxes.counts, outbox_of(source))
        return await self._isolation.visit(
            "source_backlog", f"sources/{source.name}", measure, SourceCounts()
        )
