"""Sampler: one process samples everything every few seconds, and records the changes.

    claim     a slot; only the process that has it measures. Had another process the one before, its state is loaded
    close     the quarter of an hour that is over, from the rows of the finest ring (`storage.timeseries.quarters`)
    sample    each queue, shard and group (`storage.timeseries.collector`)
    add       a row to the finest ring of what changed
    store     the latest sample of each, with the totals that include it; delete those of deleted resources
    total     namespaces, then the deployment, whose own series has a row for each slot that was measured

A round that is interrupted has no row of the deployment, so readers show a gap. The next round loads the state; the first
sample of each loaded resource has a row, because that round may have written one. A sampler that was suspended and continues after another
took over stores no latest sample: the store compares the claim.
"""

import secrets
from collections.abc import Sequence

import attrs

from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.timeseries.rollup import Addition
from storage.domain.timeseries.samples import FINEST, GROUP, QUEUE, STREAM, TOTAL
from storage.hot_store.servers import HotServers
from storage.hot_store.time_series import Claim, LatestUpdate, TimeSeriesStore
from storage.postgres.repositories.sampled_resources import MeasuredRows
from storage.timeseries.collector import (
    Observation,
    ResourceCollector,
    StreamObservation,
    consumed_delta,
    group_sample,
    produced_delta,
    produced_total,
    stream_sample,
    with_percentiles,
)
from storage.timeseries.quarters import close_quarter
from storage.timeseries.sample_round import SampleRound
from storage.timeseries.state import ResourceState, SamplerState, load_state


class ClaimLost(Exception):
    """Another sampler has claimed a slot since."""


@attrs.define(eq=False, slots=False)
class Sampler:
    """Sampling task.

    Raises StorageUnavailable, and then the samples of this slot are incomplete.
    """

    _hot: TimeSeriesStore
    _collector: ResourceCollector
    _rows: MeasuredRows
    _store: HotServers
    _clock: Clock
    _owner: str = attrs.field(factory=lambda: secrets.token_hex(8), init=False)
    _state: SamplerState | None = attrs.field(default=None, init=False)

    async def sample(self) -> int:
        """Measure unless another process has in this slot; return the number of resources."""
        at_ms = self._clock.now_ms()
        claim = await self._hot.claim(FINEST.slot(at_ms), self._owner)
        if claim is Claim.REJECTED:
            return 0
        state, self._state = self._state, None  # after any error the next round loads it again
        if state is None or claim is Claim.NEW_OWNER:
            state = await load_state(self._hot)
        await close_quarter(self._hot, state, at_ms)
        try:
            count = await self._measure(SampleRound(state, at_ms))
        except ClaimLost:
            return 0
        state.at_ms, self._state = at_ms, state
        return count

    async def _measure(self, sample_round: SampleRound) -> int:
        namespaces = await self._rows.namespaces()
        queues = [one async for page in self._rows.queues() for one in page]
        streams = [one async for page in self._rows.streams() for one in page]
        groups = await self._rows.group_names()
        sample_round.share(len(queues) + sum(len(stream.shards) for stream in streams))
        sample_round.evict_missing(QUEUE, {one[:2] for one in queues})
        sample_round.evict_missing(STREAM, {one[:2] for one in streams})
        sample_round.evict_missing(GROUP, groups)
        for queue in await self._collector.queues(sample_round.due(queues)):
            _record_queue(sample_round, queue)
        due = sample_round.due(streams)
        for begin in range(0, len(due), limits.PAGE_ITEMS_MAX):
            for stream in await self._collector.streams(due[begin : begin + limits.PAGE_ITEMS_MAX]):
                _record_stream(sample_round, stream)
        await self._write(sample_round)
        await self._write_totals(sample_round, namespaces)
        return len(queues) + len(streams) + len(groups)

    async def _write(self, sample_round: SampleRound) -> None:
        """Write rows before latest samples: a reader asks for the latest first."""

        async def add(row: tuple[str, str, Addition]) -> None:
            await self._hot.add(*row)

        async def drop(gone: tuple[str, str]) -> None:
            await self._hot.drop(*gone, sample_round.at_ms)

        await in_batches(sample_round.additions, add, limits.SERIES_MEASURE_CONCURRENCY_MAX)
        await in_batches(sample_round.gone, drop, limits.SERIES_MEASURE_CONCURRENCY_MAX)
        for (namespace, kind), changes in sample_round.changes.items():
            for batch in changes.batches(limits.SERIES_NAMES_PER_CALL):
                totals = (
                    {} if kind == TOTAL.kind else sample_round.totals_including(namespace, batch)
                )
                update = LatestUpdate(batch.latest, batch.deleted, totals)
                if not await self._hot.store_latest(self._owner, namespace, kind, update):
                    raise ClaimLost
        sample_round.additions, sample_round.changes, sample_round.gone = [], {}, []

    async def _write_totals(self, sample_round: SampleRound, namespaces: Sequence[str]) -> None:
        sample_round.evict_missing(TOTAL, {("", ""), *((name, "") for name in namespaces)})
        totals = sample_round.record_namespaces(namespaces)
        await self._write(sample_round)
        used, most = await self._store.memory()
        sample_round.record_deployment(totals, used, most)
        await self._write(sample_round)


def _record_queue(sample_round: SampleRound, seen: Observation) -> None:
    before = sample_round.last_state(QUEUE, *seen[:3])
    values = with_percentiles(seen.values, before.behind if before else (), seen.behind)
    sample_round.record(QUEUE, seen._replace(values=values))


def _record_stream(sample_round: SampleRound, seen: StreamObservation) -> None:
    namespace, name, stream_id, _ = seen.stream
    before, behind = (
        sample_round.last_state(STREAM, namespace, name, stream_id),
        produced_total(seen),
    )
    since = produced_delta(before.behind if before else (), behind)
    records, size = _count(before, "records_in"), _count(before, "bytes_in")
    values = STREAM.values(stream_sample(seen, records + since[0], size + since[1]))
    sample_round.record(STREAM, Observation(namespace, name, stream_id, values, behind))
    for seen_group in seen.groups:
        namespace, name, group_id, *_ = seen_group.group
        previous = sample_round.last_state(GROUP, namespace, name, group_id)
        committed = consumed_delta(previous.behind if previous else (), seen_group.positions)
        values = GROUP.values(group_sample(seen_group, _count(previous, "committed") + committed))
        sample_round.record(
            GROUP, Observation(namespace, name, group_id, values, seen_group.positions)
        )


def _count(resource: ResourceState | None, name: str) -> int:
    """Return the value of a count that only the sampler keeps."""
    if resource is None or resource.values is None:
        return 0
    return resource.values[resource.shape.names.index(name)] or 0
