"""Latency histogram with logarithmic buckets: percentiles within one part in 128.

Its memory does not grow with the number of values.
"""

from collections import Counter
from collections.abc import Iterable

from storage.domain.histogram import bucket_of, percentile

SUB_BITS = 7
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
        self._counts[bucket_of(value_us, SUB_BITS)] += times
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
        return min(percentile(self._counts, percent, SUB_BITS) or 0, self.max_us)

    def summary_ms(self) -> dict[str, float]:
        """Return percentiles and the maximum, in milliseconds."""
        percentiles = {
            f"p{percent:g}": self.percentile_us(percent) / 1000 for percent in PERCENTILES
        }
        return {**percentiles, "max": self.max_us / 1000}
