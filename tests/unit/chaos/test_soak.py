"""The soak test's definitions of bounded growth and of complaints."""

import json

import pytest

from api.cli.up.up import _api_processes
from tests.chaos.bounds import MIB, judge
from tests.chaos.history import Kind, Operation, Outcome
from tests.chaos.run import complaints_in
from tests.chaos.sampling import Tally
from tests.chaos.soak import MEANT


def test_plateau_is_bounded():
    judged = judge("memory api", [100 * MIB] * 10 + [200 * MIB] * 20)

    assert judged.is_bounded
    assert judged.thirds == (100 * MIB, 200 * MIB, 200 * MIB)


@pytest.mark.parametrize("name", ["memory api", "valkey memory"])
def test_memory_that_keeps_growing_is_reported(name):
    judged = judge(name, [number * 10 * MIB for number in range(30)])

    assert judged.grows
    assert "GROWS" in judged.line()


def test_oscillation_is_not_growth():
    assert judge("rows jobs", [float(number % 10) * 100 for number in range(90)]).is_bounded


def test_expected_growth_is_accepted_with_reason():
    judged = judge("rows shards", [float(number) for number in range(900)], MEANT)

    assert judged.grows
    assert judged.is_bounded
    assert "closed shards stay a day" in judged.line()


def test_doubled_latency_is_growth():
    assert judge("p50 of sends", [0.010] * 40 + [0.030] * 20).grows


def test_latencies_are_reset_when_read():
    tally = Tally()
    for number in range(100):
        tally.add(
            Operation(
                client="c",
                kind=Kind.SEND,
                log="q",
                invoked=0,
                ended=number / 1000,
                outcome=Outcome.OK,
            )
        )

    assert tally.latencies() == {"p50 of sends": 0.05, "p99 of sends": 0.099}
    assert tally.latencies() == {}
    assert tally.counts()["send"]["ok"] == 100


def test_reports_of_the_start_are_no_complaints(tmp_path):
    """A run of faults did not hold because the start said how many API processes there are."""
    lines = [_api_processes(1, 1), _api_processes(8, 16), "valkey is ready after 0.1 s"]
    (tmp_path / "log").write_text("\n".join(lines))

    assert complaints_in(tmp_path / "log") == []


def test_unhandled_exceptions_in_log_are_complaints(tmp_path):
    lines = [
        json.dumps({"event": "request_failed", "exception": "Traceback", "logger": "api"}),
        json.dumps({"event": "a range could not be archived", "level": "error", "logger": "s"}),
        json.dumps({"event": "Task exception", "exception": "Traceback", "logger": "asyncio"}),
        "Traceback (most recent call last):",
    ]
    (tmp_path / "log").write_text("\n".join(lines))

    assert complaints_in(tmp_path / "log") == [
        "asyncio: Task exception: Traceback",
        "Traceback (most recent call last):",
    ]
