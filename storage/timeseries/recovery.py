"""What was measured so far, read from the store by a process that takes the measuring over."""

from collections.abc import Iterable, Mapping
from typing import Any

from storage.domain.timeseries.changes import LONGER, Known, Looked
from storage.domain.timeseries.rollup import Row, Tick, narrowed, read_chunk, rows_of, width
from storage.domain.timeseries.samples import FINEST, GROUP, QUEUE, STREAM, TOTAL, Ring, Shape
from storage.redis.counters.timeseries import HotSeries, Kept
from storage.timeseries.collector import together
from storage.timeseries.totals import DEPLOYMENT, ticks_of

KINDS: tuple[Shape[Any], ...] = (QUEUE, STREAM, GROUP)

Place = tuple[str, str]
"""A namespace and a name in it. Totals have the name '', and the deployment's the namespace '' too."""


class Memory:
    """Everything that was measured, up to a slot. `looked`: the longer rings' slots that are under way, none before the
    first look; `open`: which resources have to be added up when they are over."""

    def __init__(self, slot: int = -1) -> None:
        self.slot = slot
        self.known: dict[str, dict[Place, Known]] = {shape.kind: {} for shape in (*KINDS, TOTAL)}
        self.looked: list[Looked] = []
        self.open: list[dict[int, tuple[str, Known]]] = [{} for _ in LONGER]

    def open_up(self, namespace: str, known: Known, nth: int) -> None:
        """The slot under way of a longer ring is to be added up for this one."""
        self.open[nth][id(known)] = namespace, known


async def recall(hot: HotSeries, slot: int, taken: int) -> Memory:
    """What was measured up to a slot. `taken`: a later one that somebody began and did not finish; what that had kept
    already is taken back."""
    memory = Memory(slot)
    totals = await hot.latest("", TOTAL.kind)
    if slot < 0 or "" not in totals:
        return memory
    at_ms = totals[""].values[TOTAL.names.index("sampled_at_ms")] or 0
    for namespace, kept in totals.items():
        memory.known[TOTAL.kind][namespace, ""] = _known(TOTAL, kept, at_ms)
    wanted = [(namespace, shape) for namespace in totals if namespace for shape in KINDS]

    async def one(asked: tuple[str, Shape[Any]]) -> None:
        namespace, shape = asked
        known = memory.known[shape.kind]
        for name, kept in (await hot.latest(namespace, shape.kind)).items():
            known[namespace, name] = _known(shape, kept, at_ms)

    await together(one, wanted)
    await _go_on(hot, memory, max(slot, taken))
    return memory


def _known(shape: Shape[Any], kept: Kept, at_ms: int) -> Known:
    known = Known(shape, kept.resource_id)
    known.values = shape.values(shape.made(kept.values, kept.rates))
    known.rates, known.behind = kept.rates_of(shape), kept.behind
    known.changed_ms, known.seen_ms = kept.changed_ms, at_ms
    return known


async def _go_on(hot: HotSeries, memory: Memory, taken: int) -> None:
    """Look again at the slots that are under way, of what changed in them."""
    longest = LONGER[-1]
    first = _begin(longest, memory.slot) // FINEST.step_ms
    numbers = FINEST.chunks(first, taken)
    measured = ticks_of(await hot.chunks("", DEPLOYMENT, FINEST, numbers), FINEST)
    ticks = {slot: measured[slot] for slot in sorted(measured) if first <= slot <= memory.slot}
    memory.looked = [_looked(ring, memory.slot, ticks) for ring in LONGER]

    async def one(place: Place, known: Known) -> None:
        namespace = place[0]
        found = await hot.chunks(namespace, known.resource_id, FINEST, numbers)
        wide = width(known.shape)
        chunks = {
            number: read_chunk(packed, number * FINEST.chunk_slots, wide)
            for number, packed in found.items()
        }
        rows = dict(enumerate(rows_of(chunks, FINEST, first, taken, None), start=first))
        if taken > memory.slot:
            stood = rows[memory.slot]
            known.values = None if stood is None else narrowed(known.shape, stood)
        for ring in LONGER:
            _look_again(known, ring, memory.slot, ticks, rows)

    busy = []
    for of_kind in memory.known.values():
        for place, known in of_kind.items():
            for nth, ring in enumerate(LONGER):
                if known.changed_ms >= _begin(ring, memory.slot) - ring.step_ms:
                    memory.open_up(place[0], known, nth)
            if known.changed_ms >= first * FINEST.step_ms:
                busy.append((place, known))
    await together(lambda pair: one(*pair), busy)


def _begin(ring: Ring, slot: int) -> int:
    """When the slot of a longer ring began that a slot of the finest lies in."""
    return ring.slot(slot * FINEST.step_ms) * ring.step_ms


def _within(ring: Ring, slot: int, ticks: Iterable[int]) -> list[int]:
    """The slots among `ticks` that lie in the same slot of a longer ring as `slot`."""
    begin = _begin(ring, slot)
    return [tick for tick in ticks if tick * FINEST.step_ms >= begin]


def _looked(ring: Ring, slot: int, ticks: Mapping[int, Tick]) -> Looked:
    within = _within(ring, slot, ticks)
    last_at_ms = ticks[within[-1]].at_ms if within else 0
    return Looked(ring.slot(slot * FINEST.step_ms), len(within), last_at_ms)


def _look_again(
    known: Known, ring: Ring, slot: int, ticks: Mapping[int, Tick], rows: Mapping[int, Row | None]
) -> None:
    before: Row | None = None
    last_at_ms = 0
    for looks, tick in enumerate(_within(ring, slot, ticks)):
        row = rows[tick]
        if looks and row != before:
            stood = None if before is None else narrowed(known.shape, before)
            known.changed(ring, Looked(0, looks, last_at_ms), stood)
        before, last_at_ms = row, ticks[tick].at_ms
