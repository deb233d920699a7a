"""Rows of Spark executors: the ratio by the clock, and the one that cores would allow."""

import pytest

from tests.bench.plan import EXECUTORS_REPLAY
from tests.bench.rows_executors import Run, compared

MILLION = 1_000_000


def test_two_executors_are_compared_with_one_by_the_clock_and_by_their_time():
    one = Run(MILLION, seconds=6.0, executors_s=4.0, machine_s=9.0)
    two = Run(MILLION, seconds=4.0, executors_s=5.0, machine_s=8.0)

    row = compared(EXECUTORS_REPLAY, [(one, two)])

    assert row.ratios == [pytest.approx(1.5)]
    assert "4.0 s of processor time of executors" in row.notes[0]
    assert "used 2.0 cores" in row.notes[1]
    assert "would be 1.60 times as fast" in row.notes[2]
