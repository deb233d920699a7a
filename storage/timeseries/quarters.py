"""Rollup of a quarter of an hour, when it is over, from the samples of the finest ring.

A chunk of the finest ring is as long as a slot of the longer one, and resources that did not change in a slot or in the
one before it need no row. Nothing is accumulated in memory, so a process that takes over, or a round that is repeated,
writes the same rows.
"""

from collections.abc import Mapping
from typing import Any

from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.timeseries.rollup import (
    Addition,
    Row,
    SeriesChunk,
    Tick,
    encode_row,
    read_chunks,
    roll_up,
    rows_of,
)
from storage.domain.timeseries.samples import FINEST, QUARTERS, TOTAL, Shape
from storage.hot_store.time_series import TimeSeriesStore
from storage.timeseries.state import Place, ResourceState, SamplerState
from storage.timeseries.totals import DEPLOYMENT, ticks_of


async def close_quarter(hot: TimeSeriesStore, state: SamplerState, at_ms: int) -> None:
    """Roll up the slot of the last complete round, if that slot is over.

    The deployment comes last: its row marks the slot as measured for readers.
    """
    slot = QUARTERS.slot(state.at_ms)
    if not state.at_ms or slot == QUARTERS.slot(at_ms):
        return
    ticks = ticks_of(await hot.chunks("", DEPLOYMENT, FINEST, range(slot, slot + 1)), FINEST)

    async def close(resource: tuple[Place, ResourceState]) -> None:
        (namespace, _), last = resource
        addition = await _rolled(hot, namespace, last, slot, ticks)
        if addition is not None:
            await hot.add(namespace, last.resource_id, addition)

    since_ms = (slot - 1) * QUARTERS.step_ms
    active = [
        resource
        for of_kind in state.resources.values()
        for resource in of_kind.items()
        if resource[1].changed_ms >= since_ms
    ]
    resources = [resource for resource in active if resource[1].resource_id != DEPLOYMENT]
    await in_batches(resources, close, limits.SERIES_MEASURE_CONCURRENCY_MAX)
    await close((("", ""), state.resources[TOTAL.kind]["", ""]))


async def _rolled(
    hot: TimeSeriesStore,
    namespace: str,
    resource: ResourceState,
    slot: int,
    ticks: Mapping[int, Tick],
) -> Addition | None:
    """Return the row of a resource, None if it did not change in this slot or the last.

    Where the samples have expired, during an outage, the last one represents the slot.
    """
    shape = resource.shape
    if not ticks:
        row = encode_row(shape, resource.values or ())
        return Addition(QUARTERS, slot, None, row)
    packed = await hot.chunks(namespace, resource.resource_id, FINEST, range(slot - 1, slot + 1))
    chunks = read_chunks(packed, FINEST, shape)
    if len({row for chunk in chunks.values() for row in (chunk.before, *chunk.rows.values())}) < 2:
        return None
    before, rolled = quarter_row(shape, chunks, slot, ticks)
    return None if rolled is None else Addition(QUARTERS, slot, before, rolled)


def quarter_row(
    shape: Shape[Any], chunks: Mapping[int, SeriesChunk], slot: int, ticks: Mapping[int, Tick]
) -> tuple[Row | None, Row | None]:
    """Return what stood before a quarter, and its row as far as `ticks` were measured.

    `chunks` are those of the finest ring for this quarter and the one before it.
    """
    first, per_slot = (slot - 1) * FINEST.chunk_slots, FINEST.chunk_slots
    rows = rows_of(chunks, FINEST, first, first + 2 * per_slot - 1, None)
    measured = [
        (row, ticks[first + nth].at_ms)
        for nth, row in enumerate(rows)
        if row is not None and first + nth in ticks
    ]
    if not measured:
        return None, None
    return rows[per_slot - 1], roll_up(shape, *zip(*measured, strict=True))
