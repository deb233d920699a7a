"""Which offsets to read: of a batch, of the next micro-batch, of one task. No part of this speaks HTTP.

A shard's children begin at offset 0, and are read once all of the shard's records lie in earlier micro-batches, so
that each key keeps its order across splits and merges.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Positions = dict[int, int]
"""The next offset to read of each shard."""


@dataclass(frozen=True)
class ShardExtent:
    """A shard: its oldest readable offset, the next one to be written, and the shards that it came from."""

    shard: int
    start: int
    next: int
    open: bool
    parents: tuple[int, ...] = ()


@dataclass(frozen=True)
class Span:
    """Offsets [first, end) of a shard."""

    shard: int
    first: int
    end: int


def split(spans: Iterable[Span], records: int) -> list[Span]:
    """The spans in pieces of so many offsets at most."""
    return [
        Span(span.shard, first, min(first + records, span.end))
        for span in spans
        for first in range(span.first, span.end, records)
    ]


def roots(extents: Sequence[ShardExtent]) -> list[ShardExtent]:
    """The shards whose parents, if there were any, are gone."""
    known = {extent.shard for extent in extents}
    return [extent for extent in extents if known.isdisjoint(extent.parents)]


def earliest(extents: Sequence[ShardExtent]) -> Positions:
    """Where all that is readable begins."""
    return {extent.shard: extent.start for extent in roots(extents)}


def latest(extents: Sequence[ShardExtent]) -> Positions:
    """Where what comes next begins. Closed shards are behind it."""
    return {extent.shard: extent.next for extent in extents if extent.open}


def to_read(extents: Sequence[ShardExtent], positions: Mapping[int, int]) -> Positions:
    """The shards to read now, and from where: those with a position, and children whose parents are at their end."""
    by_number = {extent.shard: extent for extent in extents}
    found = {shard: at for shard, at in positions.items() if shard in by_number}
    for extent in extents:
        parents = [by_number[one] for one in extent.parents if one in by_number]
        known = any(one.shard in positions for one in parents)
        over = all(not one.open and positions.get(one.shard, -1) >= one.next for one in parents)
        if extent.shard not in found and known and over:
            found[extent.shard] = 0
    return found


def next_positions(
    extents: Sequence[ShardExtent],
    positions: Mapping[int, int],
    ceiling: Mapping[int, int] | None,
    records_max: int | None,
) -> Positions:
    """Where the next micro-batch ends. `ceiling`: offsets that it is not to pass; shards without one are left out.

    With `records_max` shards share evenly, and what one leaves the others take.
    """
    by_number = {extent.shard: extent for extent in extents}
    ends: Positions = dict(positions)
    wanted: list[Span] = []
    for shard, first in sorted(to_read(extents, positions).items()):
        if ceiling is not None and shard not in ceiling:
            continue
        end = (
            by_number[shard].next if ceiling is None else min(by_number[shard].next, ceiling[shard])
        )
        wanted.append(Span(shard, first, max(first, end)))
    for span, count in zip(wanted, shares(wanted, records_max), strict=True):
        if count or span.shard in positions:
            ends[span.shard] = span.first + count
    return ends


def shares(spans: Sequence[Span], records_max: int | None) -> list[int]:
    """How many records of each span to take, all together at most `records_max`."""
    sizes = [span.end - span.first for span in spans]
    if records_max is None or sum(sizes) <= records_max:
        return sizes
    taken = [0] * len(sizes)
    left = records_max
    while left > 0:
        hungry = [nth for nth, size in enumerate(sizes) if taken[nth] < size]
        if not hungry:
            break
        share = max(1, left // len(hungry))
        for nth in hungry:
            more = min(share, sizes[nth] - taken[nth], left)
            taken[nth] += more
            left -= more
    return taken


def between(start: Mapping[int, int], end: Mapping[int, int]) -> list[Span]:
    """What a micro-batch reads. A shard that `start` does not know is a child, and begins at 0."""
    spans = [Span(shard, start.get(shard, 0), last) for shard, last in sorted(end.items())]
    return [span for span in spans if span.first < span.end]
