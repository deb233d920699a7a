"""Histogram with logarithmic buckets, as in HdrHistogram.

Each power of two is divided into 2**sub_bits buckets.
"""

from collections.abc import Mapping
from math import ceil


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
