"""Recovery of the sampler's state from the store, when a process takes over."""

from collections.abc import Iterable, Mapping
from typing import Any

from storage.domain.timeseries.changes import LONGER, ResourceState, SlotProgress
from storage.domain.timeseries.rollup import Row, Tick, decode_row, read_chunk, rows_of, width
from storage.domain.timeseries.samples import FINEST, GROUP, QUEUE, STREAM, TOTAL, Ring, Shape
from storage.hot_store.time_series import LatestSample, TimeSeriesStore
from storage.timeseries.collector import together
from storage.timeseries.totals import DEPLOYMENT, ticks_of

KINDS: tuple[Shape[Any], ...] = (QUEUE, STREAM, GROUP)

Place = tuple[str, str]
"""A namespace and a name in it; totals have the name '', the deployment's also the namespace ''."""


class SamplerState:
    """The sampler's state: all samples up to a slot.

    `progress`: the longer rings' slots in progress, none before the first observation; `open`: the resources that have to be
    added up when those slots are over.
    """

    def __init__(self, slot: int = -1) -> None:
        self.slot = slot
        self.resources: dict[str, dict[Place, ResourceState]] = {
            shape.kind: {} for shape in (*KINDS, TOTAL)
        }
        self.progress: list[SlotProgress] = []
        self.open: list[dict[int, tuple[str, ResourceState]]] = [{} for _ in LONGER]

    def open_bucket(self, namespace: str, resource: ResourceState, nth: int) -> None:
        """Mark a resource to be added up for the current slot of a longer ring."""
        self.open[nth][id(resource)] = namespace, resource


async def load_state(hot: TimeSeriesStore, slot: int, claimed: int) -> SamplerState:
    """Load the state as of a slot.

    `claimed`: a later slot that a process began and did not finish; what it had written already is reverted.
    """
    memory = SamplerState(slot)
    totals = await hot.latest("", TOTAL.kind)
    if slot < 0 or "" not in totals:
        return memory
    at_ms = totals[""].values[TOTAL.names.index("sampled_at_ms")] or 0
    for namespace, latest in totals.items():
        memory.resources[TOTAL.kind][namespace, ""] = _resource_state(TOTAL, latest, at_ms)
    kinds = [(namespace, shape) for namespace in totals if namespace for shape in KINDS]

    async def one(kind: tuple[str, Shape[Any]]) -> None:
        namespace, shape = kind
        resources = memory.resources[shape.kind]
        for name, latest in (await hot.latest(namespace, shape.kind)).items():
            resources[namespace, name] = _resource_state(shape, latest, at_ms)

    await together(one, kinds)
    await _go_on(hot, memory, max(slot, claimed))
    return memory


def _resource_state(shape: Shape[Any], latest: LatestSample, at_ms: int) -> ResourceState:
    resource = ResourceState(shape, latest.resource_id)
    resource.values = shape.values(shape.made(latest.values, latest.rates))
    resource.rates, resource.behind = latest.rates_of(shape), latest.behind
    resource.changed_ms, resource.seen_ms = latest.changed_ms, at_ms
    return resource


async def _go_on(hot: TimeSeriesStore, memory: SamplerState, claimed: int) -> None:
    """Restore the longer slots in progress, from the changes made in them."""
    longest = LONGER[-1]
    first = _begin(longest, memory.slot) // FINEST.step_ms
    numbers = FINEST.chunks(first, claimed)
    measured = ticks_of(await hot.chunks("", DEPLOYMENT, FINEST, numbers), FINEST)
    ticks = {slot: measured[slot] for slot in sorted(measured) if first <= slot <= memory.slot}
    memory.progress = [_slot_progress(ring, memory.slot, ticks) for ring in LONGER]

    async def one(place: Place, resource: ResourceState) -> None:
        namespace = place[0]
        packed_chunks = await hot.chunks(namespace, resource.resource_id, FINEST, numbers)
        wide = width(resource.shape)
        chunks = {
            number: read_chunk(packed, number * FINEST.chunk_slots, wide)
            for number, packed in packed_chunks.items()
        }
        rows = dict(enumerate(rows_of(chunks, FINEST, first, claimed, None), start=first))
        if claimed > memory.slot:
            stood = rows[memory.slot]
            resource.values = None if stood is None else decode_row(resource.shape, stood)
        for ring in LONGER:
            _replay_changes(resource, ring, memory.slot, ticks, rows)

    busy = []
    for of_kind in memory.resources.values():
        for place, resource in of_kind.items():
            for nth, ring in enumerate(LONGER):
                if resource.changed_ms >= _begin(ring, memory.slot) - ring.step_ms:
                    memory.open_bucket(place[0], resource, nth)
            if resource.changed_ms >= first * FINEST.step_ms:
                busy.append((place, resource))
    await together(lambda pair: one(*pair), busy)


def _begin(ring: Ring, slot: int) -> int:
    """Return the start time of the longer ring's slot that contains this finest slot, in ms."""
    return ring.slot(slot * FINEST.step_ms) * ring.step_ms


def _within(ring: Ring, slot: int, ticks: Iterable[int]) -> list[int]:
    """Return the slots among `ticks` that lie in the same slot of a longer ring as `slot`."""
    begin = _begin(ring, slot)
    return [tick for tick in ticks if tick * FINEST.step_ms >= begin]


def _slot_progress(ring: Ring, slot: int, ticks: Mapping[int, Tick]) -> SlotProgress:
    within = _within(ring, slot, ticks)
    last_at_ms = ticks[within[-1]].at_ms if within else 0
    return SlotProgress(ring.slot(slot * FINEST.step_ms), len(within), last_at_ms)


def _replay_changes(
    resource: ResourceState,
    ring: Ring,
    slot: int,
    ticks: Mapping[int, Tick],
    rows: Mapping[int, Row | None],
) -> None:
    before: Row | None = None
    last_at_ms = 0
    for samples, tick in enumerate(_within(ring, slot, ticks)):
        row = rows[tick]
        if samples and row != before:
            stood = None if before is None else decode_row(resource.shape, before)
            resource.changed(ring, SlotProgress(0, samples, last_at_ms), stood)
        before, last_at_ms = row, ticks[tick].at_ms
