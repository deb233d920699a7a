"""Limits of unparsed requests: size of the head, and minimum transfer rate."""

import json
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from api.server.http_protocol import FastPathProtocol
from api.server.slow_requests import SlowRequestMonitor, deadline_s
from storage.domain import limits

HEAD_S = limits.HEAD_MS_MAX / 1_000
BODY_S = limits.BODY_MS_MAX / 1_000


class Loop:
    """A manual clock, and the pending check for slow requests."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: Any = None

    def time(self) -> float:
        return self.now

    def call_later(self, _: float, call: Any) -> Any:
        self.due = call
        return object()

    def create_task(self, coroutine: Any) -> Any:
        coroutine.close()
        return Task()

    def look(self, at_s: float) -> None:
        self.now = at_s
        self.due()


class Task:
    """A task that never starts."""

    def add_done_callback(self, _: Any) -> None:
        """Ignore the callback."""


class Transport:
    """A connection that records what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """Do nothing: no data arrives by itself."""

    resume_reading = pause_reading

    def write(self, data: bytes) -> None:
        self.written += data

    @property
    def status(self) -> int:
        return int(self.written.split()[1]) if self.written else 0

    @property
    def code(self) -> str:
        return str(json.loads(self.written.partition(b"\r\n\r\n")[2])["code"])


async def nobody(scope: Any, receive: Any, send: Any) -> None:
    """An application that does nothing."""


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def transport():
    return Transport()


@pytest.fixture
def connection(loop, transport):
    config = Config(app=nobody, log_config=None)
    config.load()
    protocol = FastPathProtocol(config, ServerState(), {}, loop)
    protocol.connection_made(transport)
    return protocol


def test_complete_request_is_not_timed_out(connection, transport, loop):
    connection.data_received(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")

    loop.look(10 * HEAD_S)

    assert not transport.closed


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (b"GET /" + b"a" * limits.URL_BYTES_MAX + b" HTTP/1.1\r\n\r\n", 414, "url_too_long"),
        (
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (limits.HEAD_HEADERS_MAX + 1) + b"\r\n",
            431,
            "headers_too_large",
        ),
        (
            b"GET / HTTP/1.1\r\na: " + b"b" * limits.HEAD_BYTES_MAX + b"\r\n\r\n",
            431,
            "headers_too_large",
        ),
        (b"GET / HTTP/1.1\r\na: " + b"b" * limits.HEAD_BYTES_MAX, 431, "headers_too_large"),
        (b"\x16\x03\x01\x02\x00\x01", 400, "bad_request"),
    ],
)
def test_oversized_or_malformed_head_closes_the_connection(
    connection, transport, head, status, code
):
    connection.data_received(head)

    assert (transport.status, transport.code, transport.closed) == (status, code, True)


def test_head_sent_in_pieces_is_measured_in_total(connection, transport):
    piece = b"a: " + b"b" * 1_000 + b"\r\n"
    connection.data_received(b"GET / HTTP/1.1\r\n")
    for _ in range(limits.HEAD_BYTES_MAX // len(piece) + 1):
        connection.data_received(piece)

    assert transport.status == 431


def test_largest_allowed_head_is_accepted(connection, transport):
    connection.data_received(b"GET /livez HTTP/1.1\r\n")
    connection.data_received(b"a: b\r\n" * limits.HEAD_HEADERS_MAX + b"\r\n")

    assert not transport.closed


def test_body_in_same_packet_does_not_count_as_head(connection, transport):
    body = b"x" * (2 * limits.HEAD_BYTES_MAX)
    connection.data_received(
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    )

    assert not transport.closed


def test_idle_new_connection_is_closed(connection, transport, loop):
    loop.look(HEAD_S)
    assert not transport.closed

    loop.look(HEAD_S + 1)

    assert (transport.closed, transport.written) == (True, b"")


def test_slow_head_is_answered_with_408(connection, transport, loop):
    for second in range(int(HEAD_S) + 1):
        loop.now = float(second)
        connection.data_received(b"GET /" if second == 0 else b"a")

    loop.look(HEAD_S + 2)

    assert (transport.status, transport.code, transport.closed) == (408, "request_too_slow", True)


def test_timeout_restarts_per_request(connection, transport, loop):
    connection.data_received(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")
    connection.cycle.response_complete = True
    loop.now = 1_000.0
    connection.data_received(b"GET /livez HT")

    loop.look(1_000.0 + HEAD_S)
    assert not transport.closed

    loop.look(1_000.0 + HEAD_S + 1)
    assert transport.status == 408


def test_body_timeout_grows_with_received_bytes(connection, transport, loop):
    connection.data_received(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999\r\n\r\n")
    loop.look(HEAD_S + BODY_S)
    connection.data_received(b"x" * (60 * limits.BODY_BYTES_PER_SECOND_MIN))
    connection.flow.resume_reading()

    loop.look(HEAD_S + BODY_S + 60)
    assert not transport.closed

    loop.look(HEAD_S + BODY_S + 63)
    assert transport.closed


def test_pipelined_request_is_not_timed_out(connection, transport, loop):
    connection.flow.read_paused = True
    connection.data_received(b"GET /li")

    loop.look(10 * HEAD_S)

    assert not transport.closed


def test_closed_connection_is_no_longer_monitored(connection, loop):
    connection.data_received(b"GET /li")

    connection.connection_lost(OSError())

    assert len(connection._unfinished) == 0
    loop.look(1_000.0)
    assert loop.due is not None


def test_monitor_is_idle_without_unfinished_requests(loop):
    unfinished = SlowRequestMonitor()

    assert loop.due is None
    unfinished.discard(object())  # type: ignore[arg-type]
    assert loop.due is None


def test_allowed_time_follows_the_limits():
    assert deadline_s(0, has_head=False) == HEAD_S
    assert deadline_s(0, has_head=True) == HEAD_S + BODY_S
    assert deadline_s(limits.REQUEST_BYTES_MAX, has_head=True) > 1_000
