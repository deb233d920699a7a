"""Hash ring chart: each shard is an arc over its hash keys, children outside parents.

 ╭──── 4 ────╮          outermost: the open shards
╭── 1 ──╮ 2 │           each ring further in: what they were split or merged from
"""

import itertools
from collections.abc import Sequence
from math import cos, pi, sin
from typing import NamedTuple

from storage.domain.streams.stream import RING_SIZE, Shard

SIZE = 360
_OUTER = 168.0
_INNER = 46.0
_BAND_MAX = 34.0
_GAP = 3.0
_WHOLE = 0.999_9  # an arc that ends where it begins is none


class Arc(NamedTuple):
    """A shard in the chart: the path of its band, and the position of its number."""

    shard: Shard
    path: str
    x: float
    y: float
    share: float

    @property
    def fits_label(self) -> bool:
        """Return whether the shard number fits in the arc."""
        return self.share > 0.015


def hash_ring_arcs(shards: Sequence[Shard]) -> list[Arc]:
    """Every shard, parents before children."""
    heights = _heights(shards)
    deepest = max(heights.values(), default=0)
    band = min(_BAND_MAX, (_OUTER - _INNER) / (deepest + 1))
    return [_arc(shard, _OUTER - heights[shard.index] * band, band) for shard in shards]


def _heights(shards: Sequence[Shard]) -> dict[int, int]:
    """Return the number of generations outside each shard: 0 for an open shard."""
    heights = {shard.index: 0 for shard in shards}
    for shard in reversed(shards):
        for parent in shard.parents:
            if parent in heights:
                heights[parent] = max(heights[parent], heights[shard.index] + 1)
    return heights


def _arc(shard: Shard, outer: float, band: float) -> Arc:
    first, last = share_of(shard.first_hash_key), share_of(shard.last_hash_key + 1)
    end = min(last, first + _WHOLE)
    inner = outer - band + _GAP
    is_long = int(end - first > 0.5)
    points = [_point(outer, first), _point(outer, end), _point(inner, end), _point(inner, first)]
    a, b, c, d = (f"{x:.1f} {y:.1f}" for x, y in points)
    path = (
        f"M{a}A{outer:.1f} {outer:.1f} 0 {is_long} 1 {b}L{c}"
        f"A{inner:.1f} {inner:.1f} 0 {is_long} 0 {d}Z"
    )
    x, y = _point((outer + inner) / 2, (first + last) / 2)
    return Arc(shard, path, round(x, 1), round(y, 1), last - first)


def share_of(position: int) -> float:
    """Return a position on the ring as a fraction: 0 at the top, 1 after a full turn."""
    return position / RING_SIZE


def _point(radius: float, turn: float) -> tuple[float, float]:
    angle = 2 * pi * turn - pi / 2
    return SIZE / 2 + radius * cos(angle), SIZE / 2 + radius * sin(angle)


def neighbours(shards: Sequence[Shard]) -> list[tuple[Shard, Shard]]:
    """Return pairs of adjacent open shards by hash key: those that can be merged."""
    ordered = sorted(
        (shard for shard in shards if shard.is_open), key=lambda shard: shard.first_hash_key
    )
    return list(itertools.pairwise(ordered))
