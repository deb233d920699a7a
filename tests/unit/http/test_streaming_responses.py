"""Streaming responses over both transports: completion, and client disconnects."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from api.http.request import FastRequest
from api.http.responses import Response, RouteMatch
from api.server.gateway import _send_pieces
from api.server.http_protocol import FastPathProtocol

REQUEST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"


class Pieces:
    """Two pieces, then nothing until `more` is set; `ended` is set when it is closed."""

    def __init__(self) -> None:
        self.more = asyncio.Event()
        self.ended = False

    async def __call__(self) -> AsyncGenerator[bytes]:
        try:
            yield b"one"
            yield b"three"
            await self.more.wait()
            yield b"last"
        finally:
            self.ended = True


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

    def write(self, data: bytes) -> None:
        self.written += data

    def resume_reading(self) -> None:
        """Do nothing."""


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def pieces() -> Pieces:
    return Pieces()


@pytest.fixture
async def transport() -> Transport:
    return Transport()


@pytest.fixture
async def protocol(pieces, transport):
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    async def answer(_: FastRequest, __: Any) -> Response:
        return Response(200, "text/x", b"", b"id", ((b"more", b"said"),), pieces())

    config = Config(app, log_config=None)
    config.load()
    made = FastPathProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    made.connection_made(transport)
    made._find = lambda method, path: RouteMatch(answer, True, ["", ""])
    yield made
    made.connection_lost(None)
    await turns()


async def test_pieces_are_written_as_chunks_until_the_end(protocol, pieces, transport):
    protocol.data_received(REQUEST)
    await turns()
    begun = transport.written
    pieces.more.set()
    await turns()

    head, _, body = transport.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\ntransfer-encoding: chunked\r\n" in head
    assert b"content-length" not in head
    assert head.endswith(b"\r\nmore: said")
    assert begun.endswith(b"3\r\none\r\n5\r\nthree\r\n")
    assert body == b"3\r\none\r\n5\r\nthree\r\n4\r\nlast\r\n0\r\n\r\n"
    assert pieces.ended


async def test_connection_is_reused_after_stream_end(protocol, pieces, transport):
    pieces.more.set()
    for _ in range(2):
        protocol.data_received(REQUEST)
        await turns()

    assert transport.written.count(b"HTTP/1.1 200 OK") == 2
    assert not transport.closed


async def test_stream_ends_when_connection_is_lost(protocol, pieces):
    protocol.data_received(REQUEST)
    await turns()
    assert not pieces.ended

    protocol.connection_lost(None)
    await turns()

    assert pieces.ended


async def test_nothing_is_written_after_client_disconnected(protocol, pieces, transport):
    left = asyncio.Event()

    async def answer_late(_: FastRequest, __: Any) -> Response:
        await left.wait()
        return Response(200, "text/x", b"", b"id", (), pieces())

    protocol._find = lambda method, path: RouteMatch(answer_late, True, ["", ""])
    protocol.data_received(REQUEST)
    await turns()
    protocol.connection_lost(None)
    left.set()
    await turns()

    assert transport.written == b""
    assert protocol._lasting is None


async def test_shutdown_closes_stream_immediately(protocol, transport):
    protocol.data_received(REQUEST)
    await turns()

    protocol.shutdown()

    assert transport.closed


async def test_asgi_stream_ends_when_client_disconnects(pieces):
    leaving, sent = asyncio.Event(), []

    async def receive() -> dict[str, Any]:
        await leaving.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    answer = Response(200, "text/x", b"", b"id", (), pieces())
    assert answer.pieces is not None
    sending = asyncio.create_task(_send_pieces(send, receive, answer, answer.pieces))
    await turns()
    leaving.set()
    await sending

    assert [message.get("body") for message in sent] == [None, b"one", b"three"]
    assert pieces.ended


async def test_asgi_stream_ends_with_empty_body(pieces):
    sent = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    pieces.more.set()
    answer = Response(200, "text/x", b"", b"id", (), pieces())
    assert answer.pieces is not None
    await _send_pieces(send, receive, answer, answer.pieces)

    assert [message.get("body") for message in sent] == [None, b"one", b"three", b"last", b""]
    assert [message.get("more_body", False) for message in sent[1:]] == [True] * 3 + [False]


async def test_draining_stream_continues_until_its_end_at_shutdown(pieces, transport):
    """Draining streams are notified separately; the connection closes after they end."""

    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    async def answer(_: FastRequest, __: Any) -> Response:
        return Response(200, "text/x", b"", b"id", (), pieces(), drains=True)

    config = Config(app, log_config=None)
    config.load()
    protocol = FastPathProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    protocol.connection_made(transport)
    protocol._find = lambda method, path: RouteMatch(answer, True, ["", ""])
    protocol.data_received(REQUEST)
    await turns()

    protocol.shutdown()
    still_open = not transport.closed
    pieces.more.set()
    await turns()

    assert still_open
    assert transport.written.endswith(b"4\r\nlast\r\n0\r\n\r\n")
    assert transport.closed
    protocol.connection_lost(None)
