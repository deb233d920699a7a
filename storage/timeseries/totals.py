"""Totals of the queues, streams and groups of a namespace, and of all namespaces.

Levels are recomputed in each round. Counts never decrease, whatever is deleted: the increase of each is added to them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from storage.domain.timeseries.rollup import Tick, read_chunk, width
from storage.domain.timeseries.samples import (
    GROUP,
    QUEUE,
    STREAM,
    TOTAL,
    Measure,
    Ring,
    Shape,
    TotalSample,
    Values,
)

DEPLOYMENT = "deployment"
NAMESPACE = "namespace"
"""Used as the id of totals; no resource has such an id."""

Increments = dict[str, int]
"""Increase of each count of a total since the last sample."""

_LEVELS: dict[str, dict[str, str]] = {
    QUEUE.kind: {
        name: name
        for name in (
            *("ready", "delayed", "in_flight", "dead_lettered", "parked", "moving"),
            *("bytes_held", "oldest_ready_at_ms"),
        )
    },
    STREAM.kind: {
        "shards": "shards",
        "records": "stream_records",
        "bytes_held": "stream_bytes_held",
        "unarchived_at_ms": "unarchived_at_ms",
    },
    GROUP.kind: {
        "lag_records": "lag_records",
        "unread_at_ms": "unread_at_ms",
        "members": "members",
    },
}
_MOST = {"lag_records"}
_COUNTS: dict[str, dict[str, tuple[str, ...]]] = {
    QUEUE.kind: {
        "sent": ("sent", "messages_in"),
        "acknowledged": ("acknowledged",),
        "received": ("received", "messages_out"),
        "expired": ("expired",),
        "purged": ("purged",),
        "dropped": ("dropped",),
        "dead_exhausted": ("dead_exhausted",),
        "dead_rejected": ("dead_rejected",),
        "dead_full": ("dead_full",),
    },
    STREAM.kind: {"records_in": ("records_in", "messages_in"), "bytes_in": ("bytes_in",)},
    GROUP.kind: {"committed": ("committed", "messages_out")},
}


def add_increments(
    increments: Increments, shape: Shape[Any], before: Values | None, after: Values
) -> None:
    """Add the increase of one resource's counts to `increments`.

    A count that decreased was restarted, and adds nothing.
    """
    if before == after:
        return
    for name, totals in _COUNTS[shape.kind].items():
        nth = shape.names.index(name)
        by = (after[nth] or 0) - ((before[nth] or 0) if before is not None else 0)
        if by > 0:
            for total in totals:
                increments[total] = increments.get(total, 0) + by


def total_of(
    before: TotalSample | None, samples: Mapping[str, Sequence[Values]], increments: Increments
) -> TotalSample:
    """Return a namespace's total, from the samples of its resources by kind."""
    facts: dict[str, Any] = {kind: len(some) for kind, some in samples.items()}
    for shape in (QUEUE, STREAM, GROUP):
        columns = dict(
            zip(shape.names, zip(*samples.get(shape.kind, ()), strict=True), strict=False)
        )
        for name, total in _LEVELS[shape.kind].items():
            facts[total] = _together(total, columns.get(name, ()))
    return TotalSample(**facts, **_counts(before, increments))


def total_of_all(
    before: TotalSample | None,
    namespaces: Sequence[TotalSample],
    increments: Increments,
    **own: int | None,
) -> TotalSample:
    """Return the deployment's total; `own` are values that only the deployment has."""
    facts: dict[str, Any] = dict(own)
    levels = {name for of_kind in _LEVELS.values() for name in of_kind.values()}
    for name in (*levels, QUEUE.kind, STREAM.kind, GROUP.kind):
        facts[name] = _together(name, [getattr(one, name) for one in namespaces])
    return TotalSample(**facts, namespaces=len(namespaces), **_counts(before, increments))


def _together(total: str, values: Iterable[int | None]) -> int | None:
    present = [value for value in values if value is not None]
    if total.endswith("_at_ms"):
        return min(present, default=None)
    return max(present, default=0) if total in _MOST else sum(present)


def _counts(before: TotalSample | None, increments: Increments) -> dict[str, int]:
    names = (TOTAL.names[nth] for nth in TOTAL.counts)
    return {
        name: (0 if before is None else getattr(before, name)) + increments.get(name, 0)
        for name in names
    }


def ticks_of(chunks: Mapping[int, bytes], ring: Ring) -> dict[int, Tick]:
    """Return the slots that were measured: the deployment has a row for each.

    In a longer slot each resource was measured.
    """
    wide, sampled_column, parts = (
        width(TOTAL),
        _column_index("sampled_at_ms"),
        _column_index("parts"),
    )
    ticks: dict[int, Tick] = {}
    for number, packed in chunks.items():
        for slot, row in read_chunk(packed, number * ring.chunk_slots, wide).rows.items():
            ticks[slot] = Tick(row[sampled_column] or 0, (row[parts] or 1) if ring.nth == 0 else 1)
    return ticks


def _column_index(name: str) -> int:
    """Return the index of a plain column of totals in a row."""
    before = TOTAL.columns[: TOTAL.names.index(name)]
    return sum(2 if column.measure is Measure.PEAK else 1 for column in before)
