"""Logarithmic histogram: buckets and percentiles."""

import random
from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.histogram import bucket_of, end_of, percentile


@given(st.integers(0, 10**12), st.integers(0, 7))
def test_bucket_width_is_bounded(value, sub_bits):
    end = end_of(bucket_of(value, sub_bits), sub_bits)

    assert value <= end <= value * (1 + 1 / 2**sub_bits)
    assert bucket_of(end, sub_bits) == bucket_of(value, sub_bits)
    assert bucket_of(end + 1, sub_bits) == bucket_of(value, sub_bits) + 1


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
def test_percentile_is_at_most_one_bucket_too_high(percent):
    chance = random.Random(5)
    values = sorted(round(chance.lognormvariate(6, 2)) for _ in range(5_000))
    counts = Counter(bucket_of(value, 3) for value in values)

    exact = values[ceil(percent * len(values) / 100) - 1]

    assert exact <= percentile(counts, percent, 3) <= exact * 9 / 8


def test_percentile_of_nothing_is_none():
    assert percentile({}, 50, 3) is None
    assert percentile({4: 0}, 50, 3) is None
