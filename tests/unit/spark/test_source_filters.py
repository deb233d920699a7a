"""Filter pushdown: the offsets of a shard that remain to be read."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pyspark_millstream.filters import narrowed
from pyspark_millstream.ranges import Span

OFFSET, SHARD, TS = ("offset",), ("shard",), ("ts",)
WHOLE = Span(3, 10, 20)
TIMES = [1_000 * (offset // 2) for offset in range(30)]  # of each offset, in ms


def offset_at(ms: int) -> int:
    return next((offset for offset, time in enumerate(TIMES) if time >= ms), len(TIMES))


def left(*filters):
    found = narrowed(WHOLE, filters, offset_at)
    return None if found is None else (found.first, found.end)


@pytest.mark.parametrize(
    ("one", "stretch"),
    [
        (EqualTo(OFFSET, 12), (12, 13)),
        (GreaterThan(OFFSET, 12), (12, 20)),
        (GreaterThanOrEqual(OFFSET, 12), (12, 20)),
        (LessThan(OFFSET, 12), (10, 13)),
        (LessThanOrEqual(OFFSET, 12), (10, 13)),
        (In(OFFSET, (12, 15)), (12, 16)),
        (EqualTo(OFFSET, 30), None),
        (EqualTo(SHARD, 3), (10, 20)),
        (EqualTo(SHARD, 2), None),
        (In(SHARD, (2, 4)), None),
        (In(SHARD, (2, 3)), (10, 20)),
        (GreaterThan(SHARD, 4), None),
        (IsNotNull(OFFSET), (10, 20)),
        (Not(EqualTo(OFFSET, 12)), (10, 20)),
        (EqualNullSafe(OFFSET, 12), (10, 20)),
        (EqualTo(("key",), "k"), (10, 20)),
        (EqualTo(OFFSET, None), (10, 20)),
        (In(OFFSET, (12, None)), (10, 20)),
    ],
)
def test_filter_narrows_the_span(one, stretch):
    assert left(one) == stretch


@given(st.integers(0, 16_000_000), st.integers(0, 16_000_000))
def test_time_filter_keeps_every_matching_record(low_us, high_us):
    low, high = (datetime.fromtimestamp(us / 1e6, UTC) for us in (low_us, high_us))
    wanted = [
        offset
        for offset in range(10, 20)
        if low <= datetime.fromtimestamp(TIMES[offset] / 1000, UTC) <= high
    ]

    found = narrowed(WHOLE, [GreaterThanOrEqual(TS, low), LessThanOrEqual(TS, high)], offset_at)

    kept = [] if found is None else [*range(found.first, found.end)]
    assert {*wanted} <= {*kept}
    assert len(kept) <= len(wanted) + 2
