"""Hooks, debug log and options of single calls, over a transport that answers by itself."""

import logging
from collections.abc import Iterator

import httpx
import pytest

from millstream_client import (
    AsyncMillstream,
    ConnectionFailed,
    Limited,
    Millstream,
    RequestEvent,
    ResponseEvent,
    Retries,
)

URL = "http://millstream.test"
QUICK = Retries(seconds=5, first_pause_s=0.001, longest_pause_s=0.001)
NONE = Retries(seconds=0)
PURGED = {"purged": 0}
LIMITED = {"code": "rate_limited", "detail": "Too many.", "status": 429, "retryable": True}


class Recorder:
    """Hooks that keep their events."""

    def __init__(self) -> None:
        self.requests: list[RequestEvent] = []
        self.responses: list[ResponseEvent] = []


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def answering(*answers: int | Exception, seen: list[httpx.Request]) -> httpx.MockTransport:
    """Answer requests with statuses or errors, in turn; keep the requests."""
    turns: Iterator[int | Exception] = iter(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        turn = next(turns)
        if isinstance(turn, Exception):
            raise turn
        body = PURGED if turn == 200 else LIMITED
        return httpx.Response(turn, json=body, headers={"x-request-id": f"r{len(seen)}"})

    return httpx.MockTransport(answer)


def client_of(
    recorder: Recorder, *answers: int | Exception, seen: list[httpx.Request] | None = None
) -> Millstream:
    transport = answering(*answers, seen=[] if seen is None else seen)
    return Millstream(
        URL,
        "secret",
        retries=QUICK,
        http=httpx.Client(transport=transport),
        on_request=recorder.requests.append,
        on_response=recorder.responses.append,
    )


def test_hooks_are_called_for_each_attempt(recorder):
    client = client_of(recorder, 429, httpx.ConnectError("refused"), 200)

    client.queue("orders").purge()

    assert [request.attempt for request in recorder.requests] == [1, 2, 3]
    assert {request.operation for request in recorder.requests} == {"purge_queue"}
    assert {(request.method, request.path) for request in recorder.requests} == {
        ("POST", "/v1/queues/orders/purges")
    }
    outcomes = [(event.status, event.request_id) for event in recorder.responses]
    assert outcomes == [(429, "r1"), (None, ""), (200, "r3")]
    assert isinstance(recorder.responses[1].error, httpx.ConnectError)
    assert all(event.duration_seconds >= 0 for event in recorder.responses)


async def test_asynchronous_client_calls_hooks_too(recorder):
    http = httpx.AsyncClient(transport=answering(429, 200, seen=[]))
    client = AsyncMillstream(
        URL, retries=QUICK, http=http, on_response=lambda event: recorder.responses.append(event)
    )

    await client.queue("orders").purge()

    assert [event.status for event in recorder.responses] == [429, 200]


def test_headers_that_a_hook_adds_are_sent(recorder):
    seen: list[httpx.Request] = []
    transport = answering(200, seen=seen)

    def add(event: RequestEvent) -> None:
        event.headers["x-tenant"] = "acme"

    client = Millstream(URL, http=httpx.Client(transport=transport), on_request=add)
    client.queue("orders").purge()

    assert seen[0].headers["x-tenant"] == "acme"


def test_call_continues_when_a_hook_raises(caplog):
    def fail(event: ResponseEvent) -> None:
        raise RuntimeError("no metrics")

    http = httpx.Client(transport=answering(200, seen=[]))
    client = Millstream(URL, http=http, on_response=fail)

    assert client.queue("orders").purge() == 0
    assert "A hook failed" in caplog.text


def test_attempts_are_logged_without_secrets(caplog, recorder):
    caplog.set_level(logging.DEBUG, "millstream_client")
    http = httpx.Client(transport=answering(429, 200, seen=[]))

    Millstream(URL, "secret", retries=QUICK, http=http).queue("orders").purge()

    lines = [line.getMessage() for line in caplog.records if line.levelno == logging.DEBUG]
    ours = [line for line in lines if line.startswith("POST /v1/queues/orders/purges")]
    assert [line.split(" in ")[0].split()[-1] for line in ours] == ["429", "200"]
    assert ours[1].endswith("attempt 2, request id r2")
    assert "secret" not in caplog.text


def test_retries_of_a_single_call_are_replaced(recorder):
    client = client_of(recorder, 429, 429, 200)

    with pytest.raises(Limited):
        client.queue("orders").with_options(retries=NONE).purge()
    assert client.queue("orders").purge() == 0


@pytest.mark.parametrize("noun", ["queue", "stream", "group", "source", "replay", "job"])
def test_every_object_takes_a_time_limit(recorder, noun):
    of = getattr(client_of(recorder), noun)("x")

    limited = of.with_options(timeout_seconds=2)

    assert type(limited) is type(of)
    assert (limited.name, limited.transport.options.timeout_s) == ("x", 2)
    assert of.transport.options.timeout_s == 30


def test_time_limit_of_a_single_call_is_sent(recorder):
    seen: list[httpx.Request] = []
    client = client_of(recorder, 200, 200, 200, seen=seen)

    client.with_options(timeout_seconds=2).queue("orders").purge()
    client.queue("orders").with_options(timeout_seconds=3).purge()
    client.queue("orders").purge()

    assert [request.extensions["timeout"]["read"] for request in seen] == [2, 3, 30]


def test_derived_client_leaves_the_connections_open():
    client = Millstream(URL, retries=NONE)

    client.with_options(timeout_seconds=2).close()

    assert not client.transport._http.is_closed
    client.close()
    assert client.transport._http.is_closed


def test_failure_without_response_is_reported(recorder):
    client = client_of(recorder, httpx.ConnectError("refused"))

    with pytest.raises(ConnectionFailed):
        client.with_options(retries=NONE).queue("orders").purge()

    assert [event.status for event in recorder.responses] == [None]


def test_acknowledgement_of_a_single_call_is_sent(recorder):
    seen: list[httpx.Request] = []
    client = client_of(recorder, 200, 200, 200, seen=seen)

    client.with_options(acknowledge="primary").queue("orders").purge()
    client.queue("orders").with_options(acknowledge="primary").purge()
    client.queue("orders").purge()

    sent = [request.headers.get("millstream-acknowledge") for request in seen]
    assert sent == ["primary", "primary", None]
