"""The choice of a connection's protocol by its first bytes, or by ALPN."""

from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from api.server.http2.protocol import Http2Protocol
from api.server.http_protocol import FastPathProtocol
from api.server.protocol_negotiator import ProtocolNegotiator
from storage.domain import limits
from tests.http2_client import PREFACE
from tests.unit.http2.peer import App, Clock, Transport, turns


class Handshake:
    """A TLS handshake that chose a protocol."""

    def __init__(self, chosen: str | None) -> None:
        self._chosen = chosen

    def selected_alpn_protocol(self) -> str | None:
        return self._chosen


class TlsTransport(Transport):
    """A connection with TLS."""

    def __init__(self, chosen: str | None) -> None:
        super().__init__()
        self._chosen = chosen

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        values = {"sslcontext": True, "ssl_object": Handshake(self._chosen)}
        return values.get(name) or super().get_extra_info(name, default)


@pytest.fixture
async def clock() -> Clock:
    return Clock()


@pytest.fixture
def state() -> ServerState:
    return ServerState()


@pytest.fixture
def connect(clock, state):
    def open_one(transport: Transport) -> Transport:
        config = Config(App(), log_config=None)
        config.load()
        negotiator = ProtocolNegotiator(config, state, {}, clock)
        transport.set_protocol(negotiator)
        negotiator.connection_made(transport)
        return transport

    return open_one


@pytest.mark.parametrize("step", [1, 7, 24, 100])
async def test_preface_starts_http2_however_it_arrives(connect, state, step):
    transport = connect(Transport())
    data = PREFACE + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    for place in range(0, len(data), step):
        transport.protocol.data_received(data[place : place + step])
    await turns()

    assert isinstance(transport.protocol, Http2Protocol)
    assert state.connections == {transport.protocol}
    assert transport.buffer.endswith(b"\x00\x00\x00\x04\x01\x00\x00\x00\x00")  # SETTINGS ACK
    transport.abort()
    await turns()


@pytest.mark.parametrize("step", [1, 3, 100])
@pytest.mark.parametrize("method", [b"GET", b"PUT", b"POST"])
async def test_other_bytes_are_http1(connect, state, step, method):
    transport = connect(Transport())
    data = method + b" /empty HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n"
    for place in range(0, len(data), step):
        transport.protocol.data_received(data[place : place + step])
    await turns()

    assert isinstance(transport.protocol, FastPathProtocol)
    assert state.connections == {transport.protocol}
    assert transport.buffer.startswith(b"HTTP/1.1 200 OK\r\n")
    transport.protocol.connection_lost(None)


async def test_almost_a_preface_is_a_malformed_request(connect):
    transport = connect(Transport())
    transport.protocol.data_received(b"PRI * HTTP/2.0\r\n\r\nMS\r\n\r\n")

    assert transport.buffer.startswith(b"HTTP/1.1 400 ")
    assert transport.closed


@pytest.mark.parametrize("data", [b"", b"PRI * HT"])
async def test_connection_without_a_choice_is_closed_in_time(connect, clock, state, data):
    transport = connect(Transport())
    if data:
        transport.protocol.data_received(data)
    clock.advance(limits.HEAD_MS_MAX / 1_000 - 1)
    before = transport.closed
    clock.advance(3)
    await turns()

    assert (before, transport.closed) == (False, True)
    assert not state.connections


async def test_connection_without_a_choice_ends_at_shutdown(connect, state):
    transport = connect(Transport())
    for connection in [*state.connections]:
        connection.shutdown()
    await turns()

    assert transport.closed
    assert not state.connections


@pytest.mark.parametrize(
    ("chosen", "protocol"),
    [("h2", Http2Protocol), ("http/1.1", FastPathProtocol), (None, FastPathProtocol)],
)
async def test_handshake_chooses_the_protocol(connect, chosen, protocol):
    transport = connect(TlsTransport(chosen))

    assert isinstance(transport.protocol, protocol)
    transport.abort()
    await turns()


async def test_half_closed_connection_without_a_choice_is_closed(connect):
    assert not connect(Transport()).protocol.eof_received()
