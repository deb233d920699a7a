"""Unreachable services: one warning, and an early end where there was never a connection."""

import asyncio
import http.server
import logging
import pickle
import socket
import threading
import time

import pytest

from api.cli.shell.error_messages import cli_error_from
from millstream_client import AsyncMillstream, Millstream, Retries
from millstream_client.calls import Call
from millstream_client.errors import ConnectionFailed, NeverConnected, NotMillstream, OutcomeUnknown
from millstream_client.reachability import Reachability
from millstream_client.retries import UNREACHED_PAUSE_S, Attempts
from tests.conditions import PATIENCE_S

REFUSED = ConnectionFailed("Cannot reach http://127.0.0.1:1: Connection refused")
CALL: Call[None] = Call("put_queue", "PUT", "/", lambda _: None)
QUICK = Retries(first_pause_s=0.01, longest_pause_s=0.05, first_contact_s=0.3)
LATE_S = 0.4


class Watch:
    """A manual clock."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Answering(http.server.BaseHTTPRequestHandler):
    """Answer every request with an empty list of queues."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b'{"items": [], "next_cursor": null}')

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def port():
    """A port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return closed.getsockname()[1]


@pytest.fixture
def warnings(caplog):
    """The messages of the SDK's logger."""
    caplog.set_level(logging.WARNING, "millstream_client")
    return lambda: [
        line.getMessage() for line in caplog.records if line.name == "millstream_client"
    ]


def served_late(port: int) -> threading.Timer:
    """Serve at a port after a while, as a service that starts together with its client."""

    def serve() -> None:
        with http.server.HTTPServer(("127.0.0.1", port), Answering) as server:
            server.handle_request()

    timer = threading.Timer(LATE_S, serve)
    timer.start()
    return timer


def pauses_until_raised(attempts: Attempts, watch: Watch, failure: ConnectionFailed) -> None:
    while True:
        watch.now_s += attempts.pause_after(failure)


@pytest.mark.parametrize(("is_established", "limit_s"), [(False, 5), (True, 60)])
def test_first_contact_has_a_limit_of_its_own(is_established, limit_s):
    watch = Watch()
    service = Reachability(watch)
    if is_established:
        service.established()

    with pytest.raises(ConnectionFailed) as raised:
        pauses_until_raised(Attempts(CALL, Retries(), watch, service=service), watch, REFUSED)

    longest_pause_s = Retries().longest_pause_s if is_established else UNREACHED_PAUSE_S
    assert limit_s - longest_pause_s <= watch.now_s <= limit_s
    assert isinstance(raised.value, NeverConnected) is not is_established


def test_slow_first_failure_counts_into_first_contact():
    """A host that drops packets: the connection alone takes five seconds."""
    watch = Watch()
    attempts = Attempts(CALL, Retries(), watch)
    watch.now_s += 5

    with pytest.raises(NeverConnected):
        attempts.pause_after(REFUSED)


@pytest.mark.parametrize("failure", [REFUSED, OutcomeUnknown("No answer came from http://a")])
def test_retries_are_logged_once_a_minute(failure, warnings):
    watch = Watch()
    service = Reachability(watch)
    service.established()

    def fail_three_times() -> None:
        attempts = Attempts(CALL, Retries(), watch, service=service)
        for _ in range(3):
            attempts.pause_after(failure)

    fail_three_times()
    fail_three_times()
    assert warnings() == [f"{failure}; retrying for up to 60 s"]
    watch.now_s += 60
    fail_three_times()

    assert len(warnings()) == 2


def test_first_failure_is_not_logged(warnings):
    Attempts(CALL, Retries()).pause_after(REFUSED)

    assert warnings() == []


def test_call_to_closed_port_says_what_to_do(port, warnings):
    url = f"http://127.0.0.1:{port}"

    with Millstream(url, retries=QUICK) as client, pytest.raises(NeverConnected) as raised:
        client.queue("orders").stats()

    assert str(raised.value).startswith(f"Cannot reach {url}: ")
    assert str(raised.value).endswith("Start one with `millstream up`.")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert str(cli_error_from(raised.value)).count("millstream up") == 1
    [warning] = warnings()
    assert warning.startswith(f"Cannot reach {url}: ")
    assert warning.endswith("; retrying for up to 0.3 s")


def test_default_client_fails_within_five_seconds(port):
    started = time.monotonic()

    with Millstream(f"http://127.0.0.1:{port}") as client, pytest.raises(NeverConnected):
        client.queue("orders").stats()

    assert 4 < time.monotonic() - started < 6


def test_call_succeeds_when_port_opens_late(port, warnings):
    retries = Retries(first_pause_s=0.05, longest_pause_s=0.1)
    serving = served_late(port)

    with Millstream(f"http://127.0.0.1:{port}", retries=retries) as client:
        assert list(client.queues()) == []

    serving.join()
    assert len(warnings()) == 1


async def test_subscription_to_closed_port_says_what_to_do(port, warnings):
    async with AsyncMillstream(f"http://127.0.0.1:{port}", retries=QUICK) as client:
        with pytest.raises(NeverConnected, match="millstream up"):
            async with client.queue("orders").subscribe():
                pass

    assert len(warnings()) <= 1


async def ignore(_: object) -> None:
    """Do nothing."""


async def test_worker_at_closed_port_ends(port):
    """A worker retried for ever, at a port that may have been misspelled."""
    async with AsyncMillstream(f"http://127.0.0.1:{port}", retries=QUICK) as client:
        with pytest.raises(NeverConnected):
            await asyncio.wait_for(client.queue("orders").worker(ignore).run(), PATIENCE_S)


async def test_subscription_names_foreign_service(port):
    """The error said only that the answer was 200."""
    serving = served_late(port)
    async with AsyncMillstream(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(NotMillstream):
            async with client.queue("orders").subscribe():
                pass
    serving.join()
