"""Histograms: observations counted in plain numbers on the hot path, 0.1 µs each.

One has fixed bounds, for Prometheus. The buckets of the other grow with the value, as in HdrHistogram: each power of two is
divided into 2**sub_bits of them.
"""

from bisect import bisect_left
from collections.abc import Mapping
from math import ceil
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


def bucket_of(value: int, sub_bits: int) -> int:
    """Return the bucket of a value of at least 0, in the order of values."""
    shift = max(0, value.bit_length() - sub_bits - 1)
    return (shift << sub_bits) + (value >> shift)


def end_of(bucket: int, sub_bits: int) -> int:
    """Return the largest value of a bucket."""
    shift = max(0, (bucket >> sub_bits) - 1)
    return ((bucket - (shift << sub_bits) + 1) << shift) - 1


def percentile(counts: Mapping[int, int], percent: float, sub_bits: int) -> int | None:
    """Return the value that `percent` percent do not exceed; None without values.

    It is rounded up to the end of its bucket: by at most one part in 2**sub_bits.
    """
    rank, seen = ceil(round(percent * sum(counts.values()) / 100, 6)), 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if counts[bucket] and seen >= rank:
            return end_of(bucket, sub_bits)
    return None
