"""Outbox of a source: its events on their way to a queue or stream, each once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import end, in_batches
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.domain.names import QueueName, StreamName
from storage.domain.sources.source import InboundSource, SourceCounts, SourceFailure
from storage.domain.streams.idempotence import SequencedBatch
from storage.hot_store.outbox import OutboxEntry, OutboxStore
from storage.log.outbox import PendingEntries, transfer
from storage.queues.engine import Queues
from storage.sources.engine import (
    Sources,
    day_of,
    outbox_of,
    producer_of,
    producer_on,
    producers_of,
    target_of,
)
from storage.sources.events import decode_event, message_of, record_of
from storage.streams.engine import Streams

Target = QueueName | StreamName


@attrs.define(eq=False, slots=False, kw_only=True)
class SourceTransfer:
    """Transfers of the events of sources, at most one at a time for each source in a process."""

    _sources: Sources
    _outboxes: OutboxStore
    _catalog: Catalog
    _queues: Queues
    _streams: Streams
    _isolation: Isolation
    _clock: Clock
    _retired_days: BoundedCache[str, int] = attrs.field(
        factory=lambda: BoundedCache(limits.SOURCES_RETIRED_CACHED_MAX), init=False
    )
    _running: dict[str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    _requested: dict[str, InboundSource] = attrs.field(factory=dict, init=False)

    def begin(self, source: InboundSource) -> None:
        """Transfer what waits in a source's outbox, without waiting for it."""
        self._requested[source.source_id] = source  # also if its last read may precede this event
        if source.source_id not in self._running:
            self._running[source.source_id] = asyncio.create_task(self._run(source.source_id))

    async def close(self) -> None:
        """Stop the transfers in progress; a sweep continues them."""
        await end(*self._running.values())

    async def _run(self, source_id: str) -> None:
        """Transfer until nothing was accepted meanwhile, each time by the latest definition.

        No await is between the last look at the requests and the end, so none is missed.
        """
        try:
            while source := self._requested.pop(source_id, None):
                await self._visit(source, partial(self.complete, source))
        except MillstreamError:
            pass  # the store is down; a sweep continues
        finally:
            del self._running[source_id]

    async def sweep(self) -> int:
        """Transfer what waits in the outboxes of all sources; return the number of events."""
        sources = await self._sources.all()
        counts = await in_batches(sources, self._sweep, limits.MAINTENANCE_CONCURRENCY_MAX)
        return sum(counts)

    async def _sweep(self, source: InboundSource) -> int:
        if source.source_id in self._running:
            return 0
        return await self._visit(source, partial(self._complete_and_retire, source))

    async def _complete_and_retire(self, source: InboundSource) -> int:
        transferred = await self.complete(source)
        await self._retire_producers(source)
        return transferred

    async def _retire_producers(self, source: InboundSource) -> None:
        """Retire the producers of past days, whose events have all left the outbox."""
        target, last = target_of(source), day_of(self._clock.now_ms()) - limits.SOURCE_PRODUCER_DAYS
        after = self._retired_days.get(source.source_id, -1)
        if isinstance(target, StreamName) and after < last:
            await self._streams.retire_writers(target, producers_of(source, last, after))
            self._retired_days[source.source_id] = last

    async def _visit(self, source: InboundSource, work: Callable[[], Awaitable[int]]) -> int:
        return await self._isolation.visit("sources", f"sources/{source.name}", work, skipped=0)

    async def complete(self, source: InboundSource) -> int:
        """Transfer everything that waits in a source's outbox; return the number of events.

        Raises what its target raises.
        """
        outbox = _SourceOutbox(source, self._outboxes, self._catalog, self._queues, self._streams)
        return await transfer(outbox)

    def failure_of(self, source: InboundSource) -> str:
        """Return why the last transfer of a source failed in this process; empty if it did not."""
        subject = f"sources/{source.name}"
        failing = {entry.object: entry.reason for entry in self._isolation.failing}
        return failing.get(subject, "")

    async def counts(self, source: InboundSource) -> SourceCounts:
        """Return the counters of a source."""
        return await self._outboxes.counts(outbox_of(source))

    async def failures(self, source: InboundSource) -> list[SourceFailure]:
        """Return the last rejected requests, the newest first."""
        return await self._outboxes.failures(outbox_of(source))


@attrs.define(eq=False)
class _SourceOutbox:
    """The waiting events of one source, which go to its target through the idempotent append."""

    _source: InboundSource
    _outboxes: OutboxStore
    _catalog: Catalog
    _queues: Queues
    _streams: Streams

    async def pending(self) -> PendingEntries[OutboxEntry, Target]:
        entries, is_last = await self._outboxes.pending(
            outbox_of(self._source), limits.OUTBOX_BATCH_ENTRIES
        )
        return PendingEntries({target_of(self._source): entries} if entries else {}, is_last)

    async def deliver(self, target: Target, entries: Sequence[OutboxEntry]) -> bool:
        sequences = [entry.sequence for entry in entries]
        events = [decode_event(entry.payload) for entry in entries]
        if isinstance(target, QueueName):
            queue, producer_id = await self._catalog.queue(target), producer_of(self._source)
            messages = [message_of(event, self._source, queue) for event in events]
            await self._queues.send_idempotent(target, producer_id, sequences, messages)
        else:
            batch = SequencedBatch([self._producer_of(entry) for entry in entries], sequences)
            records = [record_of(event) for event in events]
            await self._streams.append_idempotent_batch(target, batch, records)
        return True

    def _producer_of(self, entry: OutboxEntry) -> str:
        accepted_ms = entry.sequence // limits.OUTBOX_SEQUENCES_PER_MS
        return producer_on(self._source, day_of(accepted_ms))

    async def clear(
        self, target: Target | None, entries: Sequence[OutboxEntry], *, delivered: bool
    ) -> None:
        if delivered:
            await self._outboxes.clear(
                outbox_of(self._source), [entry.sequence for entry in entries]
            )
