"""Latency histogram with logarithmic buckets: percentiles within one part in 128.

Its memory does not grow with the number of values. A value in microseconds falls into the bucket of its power of two,
divided into 128, as in HdrHistogram.
"""

from collections import Counter
from collections.abc import Iterable
from math import ceil

SUB_BITS = 7
SUB_BUCKETS = 1 << SUB_BITS
PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Histogram:
    """Histogram of values in whole microseconds."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = 0
        self.max_us = 0

    def add(self, value_us: int, times: int = 1) -> None:
        """Count a value; a negative one counts as 0."""
        value_us = max(0, value_us)
        self._counts[bucket_of(value_us)] += times
        self.count += times
        self.max_us = max(self.max_us, value_us)

    def merge(self, others: Iterable["Histogram"]) -> None:
        """Add the counts of other histograms."""
        for other in others:
            self._counts.update(other._counts)
            self.count += other.count
            self.max_us = max(self.max_us, other.max_us)

    def percentile_us(self, percent: float) -> int:
        """Return the value that `percent` percent do not exceed; 0 without values.

        It is rounded up to its bucket's end.
        """
        rank, seen = ceil(round(percent * self.count / 100, 6)), 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= rank:
                return min(end_of(bucket), self.max_us)
        return self.max_us

    def summary_ms(self) -> dict[str, float]:
        """Return percentiles and the maximum, in milliseconds."""
        percentiles = {
            f"p{percent:g}": self.percentile_us(percent) / 1000 for percent in PERCENTILES
        }
        return {**percentiles, "max": self.max_us / 1000}


def bucket_of(value_us: int) -> int:
    """Return the bucket of a value, in the order of values."""
    shift = max(0, value_us.bit_length() - SUB_BITS - 1)
    return (shift << SUB_BITS) + (value_us >> shift)


def end_of(bucket: int) -> int:
    """Return the largest value of a bucket."""
    shift = max(0, (bucket >> SUB_BITS) - 1)
    return ((bucket - (shift << SUB_BITS) + 1) << shift) - 1
