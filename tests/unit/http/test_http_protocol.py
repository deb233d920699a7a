"""The keep-alive timer of the protocol; everything else is in contract/http/test_http.py."""

import asyncio
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from api.server.http_protocol import FastPathProtocol, _lines

KEEP_ALIVE_S = 5


class Loop:
    """A manual clock, and the calls scheduled on it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.later: list[float] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, _: Any) -> asyncio.TimerHandle:
        self.later.append(seconds)
        return object()  # type: ignore[return-value]


class Transport:
    """A connection that is open until it is closed."""

    def __init__(self) -> None:
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Cycle:
    """A request in progress or answered."""

    def __init__(self, *, response_complete: bool) -> None:
        self.response_complete = response_complete


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def transport() -> Transport:
    return Transport()


@pytest.fixture
def protocol(loop: Loop, transport: Transport) -> FastPathProtocol:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    config = Config(app, timeout_keep_alive=KEEP_ALIVE_S, log_config=None)
    config.load()
    made = FastPathProtocol(config, ServerState(), {}, loop)
    made.connection_made(transport)
    loop.later.clear()  # the slow-request check is tested elsewhere
    return made


def test_idle_connection_is_closed_after_timeout(protocol, loop, transport):
    protocol.on_response_complete()
    loop.now = KEEP_ALIVE_S
    protocol.timeout_keep_alive_handler()

    assert loop.later == [KEEP_ALIVE_S]
    assert transport.closed


def test_responses_share_one_keep_alive_timer(protocol, loop, transport):
    for loop.now in (0.0, 1.0, 2.0):
        protocol.on_response_complete()
    loop.now = KEEP_ALIVE_S
    protocol.timeout_keep_alive_handler()

    assert loop.later == [KEEP_ALIVE_S, KEEP_ALIVE_S - 3]
    assert not transport.closed


def test_connection_stays_open_while_response_is_pending(protocol, loop, transport):
    protocol.on_response_complete()
    protocol.cycle = Cycle(response_complete=False)
    loop.now = 10 * KEEP_ALIVE_S
    protocol.timeout_keep_alive_handler()

    assert loop.later == [KEEP_ALIVE_S, KEEP_ALIVE_S]
    assert not transport.closed


@pytest.mark.parametrize("value", [b"a\r\nx: y", b"a\nb", b"\r"])
def test_header_injection_is_rejected(value):
    with pytest.raises(ValueError, match="spans several lines"):
        _lines([(b"retry-after", value)])
