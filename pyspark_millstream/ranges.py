"""Offset ranges to read: of a batch, of the next micro-batch, of one task. No HTTP here.

A shard's children begin at offset 0, and are read once all of the shard's records lie in earlier micro-batches, so
that each key keeps its order across splits and merges.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

Positions = dict[int, int]
"""The next offset to read of each shard."""


@dataclass(frozen=True)
class ShardExtent:
    """The extent of a shard: its oldest readable offset, the next one, and its parents."""

    shard: int
    start: int
    next: int
    open: bool
    parents: tuple[int, ...] = ()


@dataclass(frozen=True)
class Extents:
    """The selected shards of the stream of this id.

    `missing`: those that were selected and do not exist.
    """

    stream_id: str
    shards: Sequence[ShardExtent]
    missing: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Span:
    """Offsets [first, end) of a shard, in the stream of this id, if it is known."""

    shard: int
    first: int
    end: int
    stream_id: str = ""


def split(spans: Iterable[Span], records: int) -> list[Span]:
    """Split the spans into pieces of at most `records` offsets."""
    return [
        replace(span, first=first, end=min(first + records, span.end))
        for span in spans
        for first in range(span.first, span.end, records)
    ]


def roots(extents: Sequence[ShardExtent]) -> list[ShardExtent]:
    """Return the shards without parents, or whose parents no longer exist."""
    shards = {extent.shard for extent in extents}
    return [extent for extent in extents if shards.isdisjoint(extent.parents)]


def earliest(extents: Sequence[ShardExtent]) -> Positions:
    """Return the positions of the oldest readable records."""
    return {extent.shard: extent.start for extent in roots(extents)}


def latest(extents: Sequence[ShardExtent]) -> Positions:
    """Return the positions of the next records to be written."""
    return {extent.shard: extent.next for extent in extents}


def since(extents: Sequence[ShardExtent], offsets: Mapping[int, int]) -> Positions:
    """Return the positions of records since some time, given each shard's first such offset.

    A child of a shard that has such records is left out: it is read from its beginning, afterwards.
    """
    ends = {extent.shard: extent.next for extent in extents}
    return {
        extent.shard: offsets[extent.shard]
        for extent in extents
        if all(offsets[one] >= ends[one] for one in extent.parents if one in ends)
    }


def to_read(extents: Sequence[ShardExtent], positions: Mapping[int, int]) -> Positions:
    """Return the shards to read now, and their starting offsets.

    Those with a position, children whose parents are at their end, and those that are `adrift`.
    """
    by_number = {extent.shard: extent for extent in extents}
    starts = {shard: at for shard, at in positions.items() if shard in by_number}
    for extent in extents:
        parents = [by_number[one] for one in extent.parents if one in by_number]
        has_position = any(one.shard in positions for one in parents)
        over = all(not one.open and positions.get(one.shard, -1) >= one.next for one in parents)
        if extent.shard not in starts and has_position and over:
            starts[extent.shard] = 0
    return starts | {extent.shard: extent.start for extent in adrift(extents, positions)}


def adrift(extents: Sequence[ShardExtent], positions: Mapping[int, int]) -> list[ShardExtent]:
    """Return shards whose parents expired before they were read to the end."""
    parents = {extent.shard: extent.parents for extent in extents}
    behind, line = set(positions), [*positions]
    while line:
        line = [one for shard in line for one in parents.get(shard, ()) if one not in behind]
        behind.update(line)
    return [one for one in roots(extents) if one.parents and one.shard not in behind]


def next_positions(
    extents: Sequence[ShardExtent],
    positions: Mapping[int, int],
    ceiling: Mapping[int, int] | None,
    records_max: int | None,
) -> Positions:
    """Return the end positions of the next micro-batch.

    `ceiling`: offsets that it must not pass; shards without one are left out. With `records_max`, shards share evenly, and
    others take what one leaves.
    """
    by_number = {extent.shard: extent for extent in extents}
    ends: Positions = dict(positions)
    spans: list[Span] = []
    for shard, first in sorted(to_read(extents, positions).items()):
        if ceiling is not None and shard not in ceiling:
            continue
        end = (
            by_number[shard].next if ceiling is None else min(by_number[shard].next, ceiling[shard])
        )
        spans.append(Span(shard, first, max(first, end)))
    for span, count in zip(spans, shares(spans, records_max), strict=True):
        ends[span.shard] = span.first + count
    return ends


def shares(spans: Sequence[Span], records_max: int | None) -> list[int]:
    """Return how many records of each span to take, at most `records_max` in total."""
    sizes = [span.end - span.first for span in spans]
    if records_max is None or sum(sizes) <= records_max:
        return sizes
    counts = [0] * len(sizes)
    left = records_max
    while left > 0:
        hungry = [nth for nth, size in enumerate(sizes) if counts[nth] < size]
        if not hungry:
            break
        share = max(1, left // len(hungry))
        for nth in hungry:
            count = min(share, sizes[nth] - counts[nth], left)
            counts[nth] += count
            left -= count
    return counts


def beyond_end(extents: Sequence[ShardExtent], positions: Mapping[int, int]) -> list[ShardExtent]:
    """Return the shards that end before their position."""
    return [one for one in extents if positions.get(one.shard, 0) > one.next]


def between(start: Mapping[int, int], end: Mapping[int, int], stream_id: str = "") -> list[Span]:
    """Return the spans that a micro-batch reads.

    A shard without a position in `start` is a child, and begins at 0.
    """
    spans = [
        Span(shard, start.get(shard, 0), last, stream_id) for shard, last in sorted(end.items())
    ]
    return [span for span in spans if span.first < span.end]
