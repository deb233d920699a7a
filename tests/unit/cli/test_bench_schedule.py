"""Open-loop load with a manual clock: a stall delays all calls that were due meanwhile."""

import json
import random

import pytest

from api.cli.bench.histogram import Histogram
from api.cli.bench.report import comparison, differences, read_result
from api.cli.bench.schedule import BenchSchedule, run_open_loop
from api.cli.errors import CliError

CALL_S = 0.001


class FakeClock:
    """A clock that advances when something waits or works."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    async def until(self, moment: float) -> None:
        self.time = max(self.time, moment)


def serving(clock: FakeClock, stalls: dict[int, float]):
    """A service that takes one millisecond, or longer for the given calls."""

    async def work(number: int) -> int:
        clock.time += stalls.get(number, CALL_S)
        return 1

    return work


async def test_latency_equals_service_time_at_even_pace():
    clock = FakeClock()

    tally = await run_open_loop(serving(clock, {}), BenchSchedule(100, 10, 0, 1), clock)

    assert (tally.calls, tally.failed) == (1_000, 0)
    assert tally.latencies.summary_ms()["max"] == pytest.approx(1, rel=0.01)


async def test_stall_counts_for_all_calls_that_were_due():
    """At a hundred calls a second, a one-second stall delays one call in ten.

    Measured from the actual start of each call, only one call in a thousand would be slow.
    """
    clock = FakeClock()

    tally = await run_open_loop(serving(clock, {500: 1.0}), BenchSchedule(100, 10, 0, 1), clock)

    told = tally.latencies.summary_ms()
    assert told["p50"] < 2
    assert told["p95"] == pytest.approx(550, abs=60)
    assert told["p99"] == pytest.approx(910, abs=30)
    assert told["max"] == pytest.approx(1_000, rel=0.01)


async def test_warm_up_is_not_counted():
    clock = FakeClock()

    tally = await run_open_loop(serving(clock, {10: 0.5}), BenchSchedule(100, 1, 1, 1), clock)

    assert tally.calls == 100
    assert tally.latencies.summary_ms()["max"] < 2


async def test_failures_are_counted_with_their_latency():
    clock = FakeClock()

    async def work(number: int) -> int:
        clock.time += 0.5
        raise TimeoutError

    tally = await run_open_loop(work, BenchSchedule(2, 1, 0, 1), clock)

    assert (tally.calls, tally.failed, tally.failures) == (0, 2, {"TimeoutError": 2})
    assert tally.latencies.max_us == 500_000


def test_percentiles_match_sorted_values():
    chance = random.Random(7)
    values = [round(chance.lognormvariate(8, 2)) for _ in range(10_000)]
    halves = Histogram(), Histogram()
    for number, value in enumerate(values):
        halves[number % 2].add(value)

    whole = Histogram()
    whole.merge(halves)

    for percent in (50, 95, 99, 99.9, 100):
        exact = sorted(values)[max(0, round(percent / 100 * len(values)) - 1)]
        assert whole.percentile_us(percent) == pytest.approx(exact, rel=1 / 100)
    assert Histogram().percentile_us(99) == 0


RESULT = {
    "bench": "send",
    "asked": {"batch": 1},
    "calls_per_second": 100.0,
    "items_per_second": 100.0,
    "failed": 0,
    "latency_ms": {"p50": 1.0, "p95": 2.0, "p99": 3.0, "p99.9": 4.0, "max": 5.0},
}


def test_results_are_compared_side_by_side():
    now = {**RESULT, "calls_per_second": 150.0, "asked": {"batch": 10}}

    rows = comparison(RESULT, now)

    assert rows[0] == {
        "figure": "calls_per_second",
        "before": 100.0,
        "now": 150.0,
        "change": "+50.0 %",
    }
    assert differences(RESULT, now) == ["batch was 1"]


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({**RESULT, "failed": None})])
def test_file_that_is_not_a_result_is_rejected(tmp_path, text):
    path = tmp_path / "old.json"
    path.write_text(text)

    with pytest.raises(CliError, match="is not a bench result"):
        read_result(path)
