"""Watermark of a view: the event time up to which its windows are complete."""

from collections.abc import Collection, Mapping


def advance_marks(marks: Mapping[int, int], newest: Mapping[int, int]) -> dict[int, int]:
    """Return the greatest event time of each shard after a batch."""
    return {
        shard: max(times)
        for shard in {*marks, *newest}
        if (times := [given[shard] for given in (marks, newest) if shard in given])
    }


def watermark_of(
    marks: Mapping[int, int],
    *,
    delay_ms: int,
    idle: Collection[int],
    before_ms: int | None,
) -> int | None:
    """Return the watermark: the least mark of the shards that are not idle, less the delay.

    It never falls. While all shards are idle, it stays at the greatest of them. None before the first record.
    """
    busy = [mark for shard, mark in marks.items() if shard not in idle]
    present = min(busy) if busy else max(marks.values(), default=None)
    if present is None:
        return before_ms
    watermark_ms = present - delay_ms
    return watermark_ms if before_ms is None else max(before_ms, watermark_ms)
