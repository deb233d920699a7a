"""Every back-off of the service, after any number of failures."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cli.up.supervisor import BACK_OFF_S_MAX, back_off_s
from consumers.webhooks.circuit_breaker import CircuitBreaker
from storage.concurrency import isolation
from storage.domain import limits
from storage.domain.jobs import wait_after_ms
from storage.domain.presence import FailingObject
from storage.domain.replays.pacing import AdaptiveThrottle
from storage.domain.webhooks import Attempt, AttemptOutcome
from storage.quotas.gcra import TokenLease

_FAILURES = 2_000  # a doubling without a bound leaves 2**63 after sixty
_REFUSED = Attempt(outcome=AttemptOutcome.THROTTLED, at_ms=0, duration_ms=1, status=429)


def _job(failures: int) -> float:
    return wait_after_ms(failures, limits.JOB_BACKOFF_MS_MIN)


def _isolation(failures: int) -> float:
    return isolation._retry_at_ms(FailingObject("task", "object", "", 0, 0, failures))


def _restarts(failures: int) -> float:
    pause_s = 0.0
    for _ in range(failures):
        pause_s = back_off_s(pause_s, 0)
    return pause_s * limits.SECOND_MS


def _throttle(failures: int) -> float:
    throttle = AdaptiveThrottle()
    for _ in range(failures):
        throttle.note(limits.REPLAY_LATENCY_MS_MAX + 1)
    return throttle.pause_ms


def _breaker(failures: int) -> float:
    breaker, now_ms, wait_ms = CircuitBreaker(None), 0, 0
    for _ in range(failures):
        breaker.record_start(now_ms)
        breaker.record_result(_REFUSED, now_ms)
        wait_ms = breaker.wait_ms(now_ms) or 0
        now_ms += wait_ms
    return wait_ms


def _unanswered_leases(failures: int) -> float:
    lease = TokenLease(100, 10)
    lease.granted(0, 0, 0)
    return max(lease.units_to_request([1], 1)[1] for _ in range(failures))


_MAX: dict[Callable[[int], float], float] = {
    _job: limits.JOB_BACKOFF_MS_MAX,
    _isolation: limits.ISOLATION_BACKOFF_MS << limits.ISOLATION_BACKOFF_DOUBLINGS_MAX,
    _restarts: BACK_OFF_S_MAX * limits.SECOND_MS,
    _throttle: limits.REPLAY_PAUSE_MS_MAX,
    _breaker: limits.WEBHOOK_BREAKER_MS_MAX,
    _unanswered_leases: 1_001,
}


@pytest.mark.parametrize("backoff", _MAX, ids=lambda function: function.__name__)
@given(failures=st.integers(1, _FAILURES))
def test_backoff_is_bounded(backoff: Callable[[int], float], failures: int):
    assert 0 <= backoff(failures) <= _MAX[backoff]
