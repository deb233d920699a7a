"""Watermark of a view: the event time up to which its windows are complete."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from storage.domain.streams.lineage import FULLY_READ


def advance_marks(marks: Mapping[int, int], newest: Mapping[int, int]) -> dict[int, int]:
    """Return the greatest event time of each shard after a batch."""
    return {
        shard: max(times)
        for shard in {*marks, *newest}
        if (times := [given[shard] for given in (marks, newest) if shard in given])
    }


class StreamMarks(NamedTuple):
    """Greatest event times of a stream's shards. `idle`: those that hold nothing back."""

    marks: Mapping[int, int]
    delay_ms: int
    idle: Collection[int] = ()


def watermark_of(streams: Iterable[StreamMarks], before_ms: int | None) -> int | None:
    """Return the watermark: the least mark of the shards that are not idle, less the delay.

    It never falls. While all shards are idle, it stays at the greatest of them. None before the first record.
    """
    every, busy = list[int](), list[int]()
    for stream in streams:
        for shard, mark in stream.marks.items():
            every.append(mark - stream.delay_ms)
            busy += [] if shard in stream.idle else every[-1:]
    watermark_ms = min(busy) if busy else max(every, default=None)
    if watermark_ms is None or before_ms is None:
        return before_ms if watermark_ms is None else watermark_ms
    return max(before_ms, watermark_ms)


def ended_shards(marks: Iterable[int], positions: Mapping[int, int]) -> set[int]:
    """Return the shards with marks that have been read to their end, or were left out."""
    return {shard for shard in marks if positions.get(shard, FULLY_READ) == FULLY_READ}
