"""Pacing of replays: rate limits and the adaptive throttle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.limits import (
    REPLAY_BATCH_BYTES,
    REPLAY_BATCH_RECORDS,
    REPLAY_LATENCY_SAMPLES,
    REPLAY_PAUSE_MS_MAX,
    REPLAY_PAUSE_MS_MIN,
)
from storage.domain.replays.pacing import AdaptiveThrottle, Pacing, ReplaySpeed, p95


def test_fast_appends_need_no_pause():
    courtesy = AdaptiveThrottle(100)

    assert [courtesy.note(99) for _ in range(100)] == [0] * 100


def test_pause_doubles_up_to_limit_while_appends_are_slow():
    courtesy = AdaptiveThrottle(100)

    pauses = [courtesy.note(101) for _ in range(12)]

    assert pauses[:3] == [REPLAY_PAUSE_MS_MIN, 2 * REPLAY_PAUSE_MS_MIN, 4 * REPLAY_PAUSE_MS_MIN]
    assert pauses[-1] == REPLAY_PAUSE_MS_MAX


def test_pause_shrinks_slowly_when_appends_are_fast_again():
    courtesy = AdaptiveThrottle(100)
    for _ in range(10):
        courtesy.note(500)

    pauses = [courtesy.note(1) for _ in range(REPLAY_LATENCY_SAMPLES + 40)]

    assert pauses[-1] == 0
    eased = pauses[REPLAY_LATENCY_SAMPLES:]
    assert eased == sorted(eased, reverse=True)


def test_one_slow_append_in_twenty_causes_no_pause():
    courtesy = AdaptiveThrottle(100)
    for _ in range(20):
        courtesy.note(1)

    assert courtesy.note(10_000) == 0


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_p95_is_exceeded_by_at_most_one_in_twenty(values):
    assert sum(value > p95(values) for value in values) <= max(1, len(values) // 20 + 1)
    assert p95(values) in values


def test_low_rate_uses_small_batches():
    assert Pacing().batch_records_max == REPLAY_BATCH_RECORDS
    assert Pacing(records_per_second=1_000).batch_records_max == 100
    assert Pacing(records_per_second=0.5).batch_records_max == 1
    assert Pacing().batch_bytes_max == REPLAY_BATCH_BYTES
    assert Pacing(bytes_per_second=1_000).batch_bytes_max == 100


def test_estimated_duration_follows_slowest_limit():
    pacing = Pacing(records_per_second=10, bytes_per_second=1_000, speed=2)

    assert pacing.seconds_for(100, 100, 1_000) == 10
    assert pacing.seconds_for(10, 50_000, 1_000) == 50
    assert pacing.seconds_for(10, 100, 240_000) == 120
    assert Pacing().seconds_for(10, 10, 10) is None


def test_replay_speed_scales_arrival_times():
    rhythm = ReplaySpeed(arrival_ms=1_000, begun_ms=50_000, speed=4)

    assert [rhythm.due_ms(ms) for ms in (900, 1_000, 5_000)] == [50_000, 50_000, 51_000]


@pytest.mark.parametrize(
    "pacing",
    [
        Pacing(records_per_second=0),
        Pacing(bytes_per_second=-1),
        Pacing(speed=float("nan")),
        Pacing(speed=1e9),
        Pacing(lag_records_max=-1),
    ],
)
def test_invalid_pacing_is_rejected(pacing):
    assert pacing.faults()
