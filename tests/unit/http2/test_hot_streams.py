"""Hot requests over HTTP/2: collected or read bodies, streaming responses, and their ends."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from h2.errors import ErrorCodes

from api.http.body import read_body
from api.http.request import FastRequest
from api.http.responses import Response, RouteMatch
from storage.domain import limits
from tests.unit.http2.peer import App, Peer, turns


class Gateway:
    """The parts of the gateway that a connection uses; `/hot` and `/feed` are hot routes."""

    def __init__(self, *, drains: bool = False, cors: object = None) -> None:
        self.cors = cors
        self.requests: list[FastRequest] = []
        self.was_read: list[bool] = []
        self.more = asyncio.Event()
        self.is_draining = False
        self.ended = 0
        self._drains = drains

    def match_route(self, method: bytes, path: bytes) -> RouteMatch | None:
        if path == b"/hot" and method in (b"GET", b"POST"):
            return RouteMatch(self._answer, method == b"POST", ["", "hot"])
        return RouteMatch(self._feed, False, ["", "feed"]) if path == b"/feed" else None

    async def _answer(self, request: FastRequest, receive: Any) -> Response:
        self.was_read.append(receive is not None)
        if receive is not None:
            request.body = await read_body(receive, request.headers)
        self.requests.append(request)
        return Response(200, "text/x", request.body, b"id", ((b"extra", b"1"),))

    async def _feed(self, _: FastRequest, __: Any) -> Response:
        return Response(200, "text/x", b"", b"id", (), self._pieces(), drains=self._drains)

    async def _pieces(self) -> AsyncGenerator[bytes]:
        try:
            yield b"one"
            yield b""
            await self.more.wait()
            yield b"last"
        finally:
            self.ended += 1

    def drain(self) -> None:
        self.is_draining = True


def with_gateway(peer: Peer, **how: Any) -> Gateway:
    gateway = Gateway(**how)
    peer.protocol._gateway = gateway  # type: ignore[assignment]
    return gateway


@pytest.fixture
async def gateway(peer: Peer) -> Gateway:
    return with_gateway(peer)


async def test_hot_request_bypasses_asgi(peer, app: App, gateway):
    answer = await peer.ask(
        b"/hot?a=b", [(b"content-length", b"5"), (b"x", b"y")], method=b"POST", body=b"hello"
    )

    [request] = gateway.requests
    assert app.scopes == []
    assert (request.query_string, request.client) == (b"a=b", ("127.0.0.1", 80))
    assert request.headers == {b"content-length": b"5", b"x": b"y", b"host": b"localhost"}
    assert answer.headers == {
        b":status": b"200",
        b"date": b"now",
        b"cache-control": b"no-store",
        b"content-type": b"text/x",
        b"content-length": b"5",
        b"x-request-id": b"id",
        b"extra": b"1",
    }
    assert answer.body == b"hello"


@pytest.mark.parametrize(
    ("headers", "is_read"),
    [
        ([(b"content-length", b"5")], False),
        ([], True),
        ([(b"content-length", b"5"), (b"expect", b"100-continue")], True),
        ([(b"content-length", b"%d" % (limits.HTTP2_COLLECTED_BYTES_MAX + 1))], True),
    ],
    ids=["small", "no length", "expect", "large"],
)
async def test_only_a_small_body_is_collected_in_advance(peer, gateway, headers, is_read):
    length = int(dict(headers).get(b"content-length", 5))
    stream_id = peer.begin(b"/hot", headers, method=b"POST", ends=False)
    await peer.exchange()
    began = bool(gateway.was_read)
    body = b"x" * length
    for place in range(0, length, 16_000):
        peer.client.send_data(
            stream_id, body[place : place + 16_000], end_stream=place + 16_000 >= length
        )
    await peer.exchange()

    assert began is is_read
    assert gateway.was_read == [is_read]
    assert peer.answers[stream_id].body == body


async def test_request_of_another_site_goes_through_cors(peer, app):
    gateway = with_gateway(peer, cors=object())
    await peer.ask(b"/hot", [(b"origin", b"https://a.example")])
    await peer.ask(b"/hot")

    assert [scope["path"] for scope in app.scopes] == ["/hot"]
    assert len(gateway.requests) == 1


async def test_reset_ends_a_streaming_response(peer, gateway):
    feeds = [peer.begin(b"/feed") for _ in range(3)]
    await peer.exchange()
    begun = [peer.answers[feed].body for feed in feeds]
    peer.client.reset_stream(feeds[0], ErrorCodes.CANCEL)
    await peer.exchange()
    ended = gateway.ended
    gateway.more.set()
    await peer.exchange()

    assert begun == [b"one"] * 3
    assert ended == 1
    assert [peer.answers[feed].body for feed in feeds[1:]] == [b"onelast"] * 2
    assert gateway.ended == 3


async def test_lost_connection_ends_streaming_responses(peer, gateway):
    peer.begin(b"/feed")
    await peer.exchange()
    peer.transport.close()
    await turns()

    assert gateway.ended == 1
    assert peer.open_count == 0


async def test_shutdown_ends_a_streaming_response(peer, gateway):
    feed = peer.begin(b"/feed")
    await peer.exchange()
    peer.protocol.shutdown()
    await peer.exchange()

    assert gateway.is_draining
    assert (peer.answers[feed].reset, gateway.ended) == (ErrorCodes.CANCEL, 1)
    assert peer.transport.closed


async def test_shutdown_waits_for_one_that_drains(peer):
    gateway = with_gateway(peer, drains=True)
    feed = peer.begin(b"/feed")
    await peer.exchange()
    peer.protocol.shutdown()
    await turns()
    still_open = not peer.transport.closed
    gateway.more.set()
    await turns()
    data = bytes(peer.transport.buffer)

    assert still_open
    assert b"last" in data
    assert data.endswith(b"\x00\x00\x00\x00\x01\x00\x00\x00" + bytes([feed]))  # END_STREAM
    assert peer.transport.closed


async def test_header_injection_is_rejected(peer, gateway):
    async def answer(_: FastRequest, __: Any) -> Response:
        return Response(200, "text/x", b"", b"id", ((b"a", b"b\r\nc: d"),))

    gateway.match_route = lambda method, path: RouteMatch(answer, False, ["", ""])
    failed = await peer.ask(b"/hot")

    assert failed.reset == ErrorCodes.INTERNAL_ERROR
