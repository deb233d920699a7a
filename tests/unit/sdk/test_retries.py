"""Retries of the Python SDK, with injected time and randomness."""

import httpx
import pytest

from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.core.tables import REPEATS
from millstream_client.errors import (
    ConnectionFailed,
    ItemRefused,
    Limited,
    MillstreamError,
    NotFound,
    OutcomeUnknown,
    Refused,
    ServerFailed,
    TimedOut,
    Unavailable,
    refused,
    unsent_or_unknown,
)
from millstream_client.messages import receive, send, settle
from millstream_client.repeating import Remaining
from millstream_client.retries import Attempts, Retries

RETRIES = Retries(seconds=60, first_pause_s=1, longest_pause_s=8)


def call_of(operation: str, method: str = "POST", **more) -> Call[None]:
    return Call(operation, method, "/", lambda answer: None, **more)


SAFE = call_of("put_queue", "PUT")
UNSAFE = call_of("purge_queue")
KEYED = call_of("send_messages", headers={IDEMPOTENCY_KEY: "1"})


class Watch:
    """A manual clock."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def attempts(call: Call[None], watch: Watch | None = None, chance: float = 1.0) -> Attempts:
    return Attempts(call, RETRIES, watch or Watch(), lambda: chance)


def problem(status: int, code: str, retry_after: float = 0, **members) -> Refused:
    answer = httpx.Response(
        status, json={"code": code, **members}, headers={"retry-after": str(retry_after)}
    )
    return refused(answer)


BUSY = problem(503, "storage_busy", retryable=True)
UNKNOWN = problem(504, "storage_timeout", retryable=True, outcome="unknown")
MISSING = problem(404, "queue_not_found", retryable=False)


@pytest.mark.parametrize("failure", [BUSY, ConnectionFailed("no")])
def test_failure_without_effect_is_retried(failure):
    assert attempts(UNSAFE).pause_after(failure) > 0


@pytest.mark.parametrize("failure", [UNKNOWN, OutcomeUnknown("no answer")])
def test_unknown_outcome_is_retried_only_when_idempotent(failure):
    assert attempts(SAFE).pause_after(failure) > 0
    assert attempts(KEYED).pause_after(failure) > 0
    with pytest.raises(type(failure)):
        attempts(UNSAFE).pause_after(failure)
    with pytest.raises(type(failure)):
        attempts(call_of("send_messages")).pause_after(failure)


def test_permanent_failure_is_raised():
    with pytest.raises(NotFound):
        attempts(SAFE).pause_after(MISSING)


def test_pauses_grow_to_the_maximum():
    tried = attempts(SAFE)

    assert [tried.pause_after(BUSY) for _ in range(6)] == [1, 2, 4, 8, 8, 8]


def test_pause_is_jittered_but_at_least_retry_after():
    returned_problem = problem(429, "queue_full", retry_after=3, retryable=True)

    assert attempts(SAFE, chance=0.25).pause_after(BUSY) == 0.25
    assert attempts(SAFE, chance=0.0).pause_after(returned_problem) == 3
    assert attempts(SAFE, chance=0.5).pause_after(returned_problem) == 3.5


def test_retrying_ends_at_the_deadline():
    watch = Watch()
    tried = attempts(SAFE, watch)
    tried.pause_after(BUSY)
    watch.now_s += 59

    with pytest.raises(Unavailable):
        tried.pause_after(BUSY)


def test_refusal_after_unknown_outcome_is_unknown_outcome():
    tried = attempts(SAFE)
    tried.pause_after(UNKNOWN)

    with pytest.raises(OutcomeUnknown) as raised:
        tried.pause_after(MISSING)

    assert raised.value.__cause__ is MISSING


def test_read_has_no_unknown_outcome():
    tried = attempts(call_of("get_queue", "GET"))
    tried.pause_after(OutcomeUnknown("no answer"))

    with pytest.raises(NotFound):
        tried.pause_after(MISSING)


def test_delete_of_missing_resource_after_unknown_succeeds():
    delete = attempts(call_of("delete_queue", "DELETE"))

    assert not delete.has_happened_before(MISSING)
    delete.pause_after(UNKNOWN)
    assert delete.has_happened_before(MISSING)


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "unknown"),
    [
        (429, Limited, True, False),
        (502, ServerFailed, True, True),
        (503, Unavailable, True, True),
        (504, TimedOut, True, True),
        (500, ServerFailed, False, False),
        (404, NotFound, False, False),
        (302, Refused, False, False),
    ],
)
def test_proxy_error_is_classified_by_status(status, kind, retryable, unknown):
    """A proxy's status does not show if the service was reached."""
    error = refused(httpx.Response(status, text="<html>"))

    assert type(error) is kind
    assert (error.retryable, error.outcome_unknown) == (retryable, unknown)
    assert error.code == f"http_{status}"


def test_unsupported_url_is_not_retried():
    error = unsent_or_unknown(httpx.UnsupportedProtocol("ftp"), "ftp://here")

    assert isinstance(error, ConnectionFailed)
    assert not error.retryable


def test_retry_after_as_date_is_ignored():
    answer = httpx.Response(503, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"})

    assert refused(answer).retry_after_s == 0


def test_guarded_call_is_repeatable_with_its_guard():
    assert call_of("start_replay", json={"id": "again"}).may_repeat
    assert not call_of("start_replay", json={"id": ""}).may_repeat
    assert not call_of("start_replay").may_repeat
    assert receive("orders", 1, None, None, "attempt").may_repeat
    assert settle("orders", []).may_repeat
    assert send("orders", [], "key").may_repeat


def test_timeout_includes_requested_wait():
    assert receive("orders", 1, 5, None, "").patience_s == 5
    assert receive("orders", 1, None, None, "").patience_s == 20
    assert call_of("fetch_records", params={"wait_seconds": 3}).patience_s == 3


def test_every_operation_has_a_repeat_class():
    assert set(REPEATS.values()) == {"safe", "keyed", "guarded", "unsafe"}


def test_retryable_items_are_resent_until_deadline():
    watch = Watch()
    later, never = ItemRefused("archive_behind", "", True), ItemRefused("fence", "", False)
    remaining = Remaining(KEYED, RETRIES, watch, lambda: 1.0)

    assert remaining.pause_after(["done", never]) is None
    assert remaining.pause_after(["done", later, never]) == 1
    watch.now_s += 60
    assert remaining.pause_after(["done", later]) is None


def test_error_message_includes_faults_and_code():
    error = problem(
        422, "validation_failed", detail="no", errors=[{"pointer": "/a", "detail": "b"}]
    )

    assert isinstance(error, MillstreamError)
    assert str(error) == "no [/a: b] (validation_failed)"
