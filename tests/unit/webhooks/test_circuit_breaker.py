"""Scheduling of webhook deliveries: rate, throttling, circuit breaker and verdicts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.webhooks.circuit_breaker import CircuitBreaker
from consumers.webhooks.queue_source import verdict
from storage.domain.errors import ValidationFailed
from storage.domain.limits import MINUTE_MS, SECOND_MS
from storage.domain.queues.message import SettleAction
from storage.domain.webhooks import Attempt, AttemptOutcome, OnFailure, Source, WebhookSpec

NOW = 1_700_000_000_000
SPEC = WebhookSpec(source=Source.of("queue:orders"), url="https://example.com/")


def attempt(outcome: AttemptOutcome, wait_ms: int | None = None) -> Attempt:
    return Attempt(outcome=outcome, at_ms=NOW, duration_ms=1, wait_ms=wait_ms)


DONE, FAILED = attempt(AttemptOutcome.DELIVERED), attempt(AttemptOutcome.SERVER_ERROR)


@given(st.floats(0.5, 500), st.integers(1, 20))
def test_deliveries_stay_within_the_rate(rate, seconds):
    gate, now_ms, went = CircuitBreaker(rate), NOW, 0
    while now_ms < NOW + seconds * SECOND_MS:
        wait_ms = gate.wait_ms(now_ms)
        assert wait_ms is not None
        if wait_ms:
            now_ms += wait_ms
            continue
        gate.record_start(now_ms)
        gate.record_result(DONE, now_ms)
        went += 1

    assert rate * seconds * 0.95 - 1 <= went <= rate * (seconds + 0.02) + 2


def test_ten_consecutive_failures_open_breaker_and_allow_probe():
    gate = CircuitBreaker(None)
    for _ in range(9):
        gate.record_result(FAILED, NOW)
    closed = gate.wait_ms(NOW)
    gate.record_result(FAILED, NOW)
    opened = gate.wait_ms(NOW)

    later = NOW + 10 * SECOND_MS
    gate.record_start(later)
    probing = gate.wait_ms(later)
    gate.record_result(FAILED, later)

    assert (closed, opened, probing) == (0, 10 * SECOND_MS, None)
    assert gate.wait_ms(later) == 20 * SECOND_MS


def test_successful_probe_closes_breaker():
    gate = CircuitBreaker(None)
    for _ in range(10):
        gate.record_result(FAILED, NOW)
    later = NOW + 10 * SECOND_MS

    gate.record_start(later)
    gate.record_result(DONE, later)

    assert (gate.wait_ms(later), gate.is_half_open) == (0, False)


def test_unsent_probe_allows_another():
    gate = CircuitBreaker(None)
    for _ in range(10):
        gate.record_result(FAILED, NOW)
    later = NOW + 10 * SECOND_MS

    gate.record_start(later)
    gate.record_result(None, later)

    assert gate.wait_ms(later) == 0


def test_failures_in_flight_count_as_one_opening():
    gate = CircuitBreaker(None)
    for _ in range(60):
        gate.record_result(FAILED, NOW)

    assert gate.wait_ms(NOW) == 10 * SECOND_MS


def test_throttled_receiver_backs_off_exponentially():
    gate, now_ms, waits = CircuitBreaker(None), NOW, []
    for _ in range(9):
        gate.record_result(attempt(AttemptOutcome.THROTTLED), now_ms)
        wait_ms = gate.wait_ms(now_ms)
        assert wait_ms is not None
        waits.append(wait_ms)
        now_ms += wait_ms

    assert waits == [seconds * SECOND_MS for seconds in (1, 2, 4, 8, 16, 32, 60, 60, 60)]


def test_throttle_honours_retry_after():
    gate = CircuitBreaker(None)

    gate.record_result(attempt(AttemptOutcome.THROTTLED, 5 * MINUTE_MS), NOW)

    assert gate.wait_ms(NOW) == 5 * MINUTE_MS


@pytest.mark.parametrize(
    ("tried", "failures", "action", "delay_ms"),
    [
        (DONE, 0, SettleAction.ACK, None),
        (DONE, 9, SettleAction.ACK, None),
        (FAILED, 0, SettleAction.NACK, 5 * SECOND_MS),
        (FAILED, 1, SettleAction.NACK, 5 * MINUTE_MS),
        (FAILED, 8, SettleAction.NACK, 24 * 60 * MINUTE_MS),
        (FAILED, 9, SettleAction.REJECT, None),
        (attempt(AttemptOutcome.GONE), 0, SettleAction.RELEASE, None),
        (attempt(AttemptOutcome.THROTTLED, MINUTE_MS), 0, SettleAction.NACK, MINUTE_MS),
        (attempt(AttemptOutcome.THROTTLED, 1), 0, SettleAction.NACK, 5 * SECOND_MS),
    ],
)
def test_attempt_outcome_determines_settlement(tried, failures, action, delay_ms):
    assert verdict(SPEC, tried, failures, 0.5) == (action, delay_ms)


@given(st.floats(0, 1))
def test_retry_jitter_is_within_ten_percent(chance):
    delay_ms = SPEC.retry_delay_ms(2, chance)

    assert delay_ms is not None
    assert 0.9 * 5 * MINUTE_MS <= delay_ms <= 1.1 * 5 * MINUTE_MS


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"timeout_ms": 0}, "/timeout_seconds"),
        ({"timeout_ms": 121_000}, "/timeout_seconds"),
        ({"rate": 0.0}, "/rate"),
        ({"rate": float("nan")}, "/rate"),
        ({"in_flight_max": 0}, "/in_flight_max"),
        ({"in_flight_max": 1_001}, "/in_flight_max"),
        ({"retry_delays_ms": (1,) * 51}, "/retry_seconds"),
        ({"retry_delays_ms": (86_400_001,)}, "/retry_seconds"),
        ({"disable_after_ms": 1}, "/disable_after_seconds"),
        ({"log_ms": 1}, "/log_retention_seconds"),
        ({"on_failure": OnFailure.DEAD_LETTER}, "/on_failure"),
        ({"dead_letter_queue": "dead"}, "/dead_letter_queue"),
        ({"headers": (("a b", "c"),)}, "/headers"),
        ({"headers": (("host", "c"),)}, "/headers/host"),
        ({"headers": (("Webhook-Id", "c"),)}, "/headers/Webhook-Id"),
        ({"headers": (("a", "b\r\nc: d"),)}, "/headers/a"),
        ({"headers": (("a", ""),)}, "/headers/a"),
        ({"headers": (("a", "b"), ("A", "b"))}, "/headers"),
        ({"headers": tuple((f"h{n}", "v") for n in range(33))}, "/headers"),
    ],
)
def test_invalid_specification_is_rejected_with_pointer(changes, pointer):
    spec = WebhookSpec(source=Source.of("queue:orders"), url="https://example.com/", **changes)

    with pytest.raises(ValidationFailed) as refused:
        spec.check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_fault_states_large_limits_in_digits():
    """The limits of a webhook's log were 3.6e+03 to 2.592e+06 seconds."""
    spec = WebhookSpec(source=Source.of("queue:orders"), url="https://example.com/", log_ms=1)

    with pytest.raises(ValidationFailed) as refused:
        spec.check()

    [fault] = refused.value.faults
    assert fault.detail.endswith("to 2592000")


@pytest.mark.parametrize("word", ["", "orders", "queue:", "stream:s", "queue:a/b", "group:"])
def test_invalid_source_is_rejected(word):
    with pytest.raises(ValidationFailed):
        Source.of(word)


def test_attempt_of_zero_duration_round_trips():
    """A duration of 0 ms was omitted, and left a log row that could not be decoded."""
    attempt = Attempt(outcome=AttemptOutcome.DELIVERED, at_ms=0, duration_ms=0, status=200)

    values = attempt.log_fields()

    assert values == {"outcome": "delivered", "at_ms": 0, "duration_ms": 0, "status": 200}
    assert msgspec.convert(values, Attempt) == attempt
