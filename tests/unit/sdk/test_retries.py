"""When the Python SDK calls again. Time and chance are handed in."""

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
    """A clock that goes when it is told to."""

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
def test_what_did_not_happen_is_tried_again_whatever_it_is(failure):
    assert attempts(UNSAFE).pause_after(failure) > 0


@pytest.mark.parametrize("failure", [UNKNOWN, OutcomeUnknown("no answer")])
def test_what_may_have_happened_is_tried_again_only_where_that_changes_nothing_more(failure):
    assert attempts(SAFE).pause_after(failure) > 0
    assert attempts(KEYED).pause_after(failure) > 0
    with pytest.raises(type(failure)):
        attempts(UNSAFE).pause_after(failure)
    with pytest.raises(type(failure)):
        attempts(call_of("send_messages")).pause_after(failure)


def test_what_is_refused_for_good_is_raised():
    with pytest.raises(NotFound):
        attempts(SAFE).pause_after(MISSING)


def test_pauses_grow_to_the_longest():
    tried = attempts(SAFE)

    assert [tried.pause_after(BUSY) for _ in range(6)] == [1, 2, 4, 8, 8, 8]


def test_chance_spreads_them_and_the_service_says_how_soon_at_the_soonest():
    told = problem(429, "queue_full", retry_after=3, retryable=True)

    assert attempts(SAFE, chance=0.25).pause_after(BUSY) == 0.25
    assert attempts(SAFE, chance=0.0).pause_after(told) == 3
    assert attempts(SAFE, chance=0.5).pause_after(told) == 3.5


def test_it_ends_when_its_time_is_up():
    watch = Watch()
    tried = attempts(SAFE, watch)
    tried.pause_after(BUSY)
    watch.now_s += 59

    with pytest.raises(Unavailable):
        tried.pause_after(BUSY)


def test_a_refusal_after_an_unknown_attempt_does_not_hide_it():
    tried = attempts(SAFE)
    tried.pause_after(UNKNOWN)

    with pytest.raises(OutcomeUnknown) as raised:
        tried.pause_after(MISSING)

    assert raised.value.__cause__ is MISSING


def test_a_read_has_no_outcome_to_be_unknown():
    tried = attempts(call_of("get_queue", "GET"))
    tried.pause_after(OutcomeUnknown("no answer"))

    with pytest.raises(NotFound):
        tried.pause_after(MISSING)


def test_a_delete_that_finds_nothing_after_an_unknown_one_is_done():
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
def test_an_answer_from_something_in_front_of_the_service(status, kind, retryable, unknown):
    """It does not say whether the service was reached."""
    error = refused(httpx.Response(status, text="<html>"))

    assert type(error) is kind
    assert (error.retryable, error.outcome_unknown) == (retryable, unknown)
    assert error.code == f"http_{status}"


def test_a_url_that_is_none_is_not_tried_again():
    error = unsent_or_unknown(httpx.UnsupportedProtocol("ftp"), "ftp://here")

    assert isinstance(error, ConnectionFailed)
    assert not error.retryable


def test_a_retry_after_that_is_a_date_is_none():
    answer = httpx.Response(503, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"})

    assert refused(answer).retry_after_s == 0


def test_a_guarded_call_may_be_repeated_if_its_guard_is_there():
    assert call_of("start_replay", json={"id": "again"}).may_repeat
    assert not call_of("start_replay", json={"id": ""}).may_repeat
    assert not call_of("start_replay").may_repeat
    assert receive("orders", 1, None, None, "attempt").may_repeat
    assert settle("orders", []).may_repeat
    assert send("orders", [], "key").may_repeat


def test_the_server_may_think_as_long_as_it_was_told_to_wait():
    assert receive("orders", 1, 5, None, "").patience_s == 5
    assert receive("orders", 1, None, None, "").patience_s == 20
    assert call_of("fetch_records", params={"wait_seconds": 3}).patience_s == 3


def test_every_operation_has_its_row():
    assert set(REPEATS.values()) == {"safe", "keyed", "guarded", "unsafe"}


def test_items_that_were_refused_for_now_are_sent_again_until_time_is_up():
    watch = Watch()
    later, never = ItemRefused("archive_behind", "", True), ItemRefused("fence", "", False)
    remaining = Remaining(KEYED, RETRIES, watch, lambda: 1.0)

    assert remaining.pause_after(["done", never]) is None
    assert remaining.pause_after(["done", later, never]) == 1
    watch.now_s += 60
    assert remaining.pause_after(["done", later]) is None


def test_every_error_is_one_and_says_what_it_is():
    error = problem(
        422, "validation_failed", detail="no", errors=[{"pointer": "/a", "detail": "b"}]
    )

    assert isinstance(error, MillstreamError)
    assert str(error) == "no [/a: b] (validation_failed)"
