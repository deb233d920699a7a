"""Totals of the queues, streams and groups of a namespace, and of all namespaces.

Levels are recomputed in each round. Counts never decrease, whatever is deleted: the increase of each is added to them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from storage.domain.timeseries.rollup import Tick, read_chunks
from storage.domain.timeseries.samples import (
    FINEST,
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


def increments_of(shape: Shape[Any], before: Values | None, after: Values) -> Increments:
    """Return what the increase of one resource's counts adds to totals.

    A count that decreased was restarted, and adds nothing.
    """
    increments: Increments = {}
    for name, totals in _COUNTS[shape.kind].items():
        nth = shape.names.index(name)
        by = (after[nth] or 0) - ((before[nth] or 0) if before is not None else 0)
        if by > 0:
            add_all(increments, dict.fromkeys(totals, by))
    return increments


def add_all(increments: Increments, other: Increments) -> None:
    """Add `other` to `increments`."""
    for name, by in other.items():
        increments[name] = increments.get(name, 0) + by


def with_increments(values: Values | None, increments: Increments) -> Values:
    """Return a total's values with the increase of its counts; None for a total that is new."""
    values = TOTAL.values(TotalSample()) if values is None else values
    return tuple(
        value if name not in increments else (value or 0) + increments[name]
        for name, value in zip(TOTAL.names, values, strict=True)
    )


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
    sampled_column, parts = _column_index("sampled_at_ms"), _column_index("parts")
    ticks: dict[int, Tick] = {}
    for chunk in read_chunks(chunks, ring, TOTAL).values():
        for slot, row in chunk.rows.items():
            ticks[slot] = Tick(row[sampled_column] or 0, (row[parts] or 1) if ring is FINEST else 1)
    return ticks


def _column_index(name: str) -> int:
    """Return the index of a plain column of totals in a row."""
    before = TOTAL.columns[: TOTAL.names.index(name)]
    return sum(2 if column.measure is Measure.PEAK else 1 for column in before)
