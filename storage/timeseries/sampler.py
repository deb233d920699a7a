"""Sampler: one process samples everything every few seconds, and records the changes.

    claim     a slot; only the process that has it measures. Had another process the one before, its state is loaded
    sample    each queue, shard and group (`storage.timeseries.collector`)
    add       to the chunks of what changed; a slot of a longer ring that is over is added up (`storage.domain.timeseries.changes`)
    store     the latest sample of each; delete those of deleted resources
    total     namespaces, then the deployment, whose own series has a row for each slot that was measured
    finish    the slot

A crash in between leaves a slot that was claimed and not finished: some of the latest samples may be missing in the
rings, so the next round continues from the last finished slot, and adds everything once, whether it changed or not. What
was written to a stream, or committed by a group, between those two slots is then in no count.
"""

import secrets
from collections.abc import Iterable, Sequence

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.timeseries.changes import ResourceState
from storage.domain.timeseries.samples import (
    FINEST,
    GROUP,
    QUEUE,
    STREAM,
    TOTAL,
    TotalSample,
)
from storage.hot_store.servers import HotServers
from storage.hot_store.time_series import LatestSample, TimeSeriesStore
from storage.postgres.repositories.sampled_resources import (
    MeasuredRows,
)
from storage.timeseries.collector import (
    Observation,
    ResourceCollector,
    StreamObservation,
    consumed_delta,
    group_sample,
    produced_delta,
    produced_total,
    stream_sample,
    together,
)
from storage.timeseries.recovery import SamplerState, load_state
from storage.timeseries.sample_round import SampleRound
from storage.timeseries.totals import (
    NAMESPACE,
)


class StateLost(Exception):
    """The store lost the samples that this process had written to it."""


class Sampler:
    """Sampling task.

    Raises StorageUnavailable, and then the samples of this slot are incomplete.
    """

    def __init__(
        self,
        hot: TimeSeriesStore,
        collector: ResourceCollector,
        rows: MeasuredRows,
        store: HotServers,
        clock: Clock,
    ) -> None:
        self._hot = hot
        self._collector = collector
        self._rows = rows
        self._store = store
        self._clock = clock
        self._owner = secrets.token_hex(8)
        self._memory: SamplerState | None = None

    async def sample(self) -> int:
        """Measure unless another process has in this slot; return the number of resources."""
        at_ms = self._clock.now_ms()
        slot = FINEST.slot(at_ms)
        claimed = await self._hot.claim(slot, self._owner)
        if not claimed.mine:
            return 0
        memory, self._memory = self._memory, None  # after any error the next round loads it again
        whole = claimed.previous_slot == claimed.done
        mine = claimed.after_me and memory is not None and memory.slot == claimed.done
        if memory is None or not mine or not whole:
            memory = await load_state(self._hot, claimed.done, claimed.previous_slot)
        sample_round = SampleRound(memory, at_ms, forced=not whole)
        try:
            count = await self._measure(sample_round)
        except StateLost:
            return 0
        if await self._hot.finish(slot, self._owner):
            memory.slot = slot
            self._memory = memory
        return count

    async def _measure(self, sample_round: SampleRound) -> int:
        namespaces = await self._rows.namespaces()
        await self._announce(sample_round, namespaces)
        queues = [one async for page in self._rows.queues() for one in page]
        streams = [one async for page in self._rows.streams() for one in page]
        groups = await self._rows.group_names()
        sample_round.share(len(queues) + sum(len(stream.shards) for stream in streams))
        sample_round.close_longer()
        sample_round.evict_missing(QUEUE, {one[:2] for one in queues})
        sample_round.evict_missing(STREAM, {one[:2] for one in streams})
        sample_round.evict_missing(GROUP, groups)
        for queue in await self._collector.queues(sample_round.due(queues)):
            sample_round.record(QUEUE, queue)
        due = sample_round.due(streams)
        for begin in range(0, len(due), limits.PAGE_ITEMS_MAX):
            for stream in await self._collector.streams(due[begin : begin + limits.PAGE_ITEMS_MAX]):
                _record_stream(sample_round, stream)
        await self._write(sample_round)
        await self._write_totals(sample_round, namespaces)
        return len(queues) + len(streams) + len(groups)

    async def _announce(self, sample_round: SampleRound, namespaces: Iterable[str]) -> None:
        """Store totals of new namespaces first: their samples are found by these totals."""
        totals = sample_round.memory.resources[TOTAL.kind]
        values = TOTAL.values(TotalSample())
        new = {
            name: LatestSample(NAMESPACE, sample_round.at_ms, values)
            for name in namespaces
            if (name, "") not in totals
        }
        if new:
            await self._hot.keep("", TOTAL.kind, new, ())

    async def _write(self, sample_round: SampleRound) -> None:
        additions, sample_round.additions = sample_round.additions, {}

        async def add(place: tuple[str, str]) -> bool:
            return await self._hot.add(*place, additions[place])

        if not all(await together(add, additions)):
            raise StateLost
        for (namespace, kind), changes in sample_round.changes.items():
            await self._hot.keep(namespace, kind, changes.latest, changes.gone)
        await together(lambda gone: self._hot.drop(*gone, sample_round.at_ms), sample_round.gone)
        sample_round.changes, sample_round.gone = {}, []

    async def _write_totals(self, sample_round: SampleRound, namespaces: Sequence[str]) -> None:
        sample_round.evict_missing(TOTAL, {("", ""), *((name, "") for name in namespaces)})
        totals = sample_round.record_namespaces(namespaces)
        await self._write(sample_round)
        used, most = await self._store.memory()
        sample_round.record_deployment(totals, used, most)
        await self._write(sample_round)


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
