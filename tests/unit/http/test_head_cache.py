"""The cache of parsed heads changes nothing that a client can see."""

import asyncio
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uvicorn import Config
from uvicorn.server import ServerState

from api.http.request import FastRequest
from api.http.responses import Response, RouteMatch
from api.server.head_cache import HeadCache, head_of
from api.server.http_protocol import FastPathProtocol
from storage.domain import limits

HOT = "/v1/queues/orders/messages"


class Connection(asyncio.Transport):
    """The server's side of a connection, which keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 80) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer the requests that are not hot."""
    await send(
        {"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


async def echo(request: FastRequest, _: Any) -> Response:
    """Answer with everything that the request has."""
    await asyncio.sleep(0)
    headers = b"|".join(name + b"=" + value for name, value in sorted(request.headers.items()))
    body = b"\n".join((request.query_string, headers, request.body))
    return Response(200, "text/plain", body, b"id", ())


def match_route(method: bytes, path: bytes) -> RouteMatch | None:
    if path == HOT.encode() and method in (b"POST", b"GET"):
        return RouteMatch(echo, method == b"POST", HOT.split("/"))
    return None


class Server:
    """A server's protocol, with or without a cache of heads; each connection is a new one."""

    def __init__(self, *, caches: bool) -> None:
        self.heads = HeadCache() if caches else None
        self._config = Config(app, log_config=None)
        self._config.load()

    async def answer(self, pieces: list[bytes]) -> tuple[bytes, bool]:
        """Return what is written to a connection on which these pieces arrive, and whether it is closed."""
        protocol = FastPathProtocol(self._config, ServerState(), {})
        protocol._find, protocol._heads = match_route, self.heads
        connection = Connection()
        protocol.connection_made(connection)
        for piece in pieces:
            if not connection.closed:
                protocol.data_received(piece)
            for _ in range(8):
                await asyncio.sleep(0)
        closed = connection.closed
        protocol.connection_lost(None)
        await asyncio.sleep(0)
        return _REQUEST_ID.sub(b"<id>", connection.written), closed


_REQUEST_ID = re.compile(rb"\b[0-9a-f]{20}\b")


def request(
    body: bytes = b"", method: str = "POST", path: str = HOT, *lines: str, length: int | None = None
) -> bytes:
    """Return the bytes of a request."""
    head = [f"{method} {path} HTTP/1.1", "Host: here", *lines]
    if method == "POST":
        head.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*head, "", ""]).encode() + body


PIECES = st.sampled_from(
    [
        request(b"one"),
        request(b"two"),
        request(b"four"),
        request(b"one", "POST", f"{HOT}?wait=1"),
        request(b"one", "POST", HOT, "Millstream-Group: a"),
        request(b"one", "POST", HOT, "Connection: close"),
        request(b"one", "POST", HOT, "Expect: 100-continue"),
        request(b"one", "POST", "/elsewhere"),
        request(method="GET"),
        request(method="GET").replace(b"1.1", b"1.0"),
        request(b"one").replace(b"Host: here\r\n", b""),
        request(b"one") + request(b"two"),
        request(b"one")[:-1],
        request(b"one", length=2),
        request(b"one", length=9),
        b"\r\n" + request(b"one"),
        b"\r\n\r\n" + request(b"one"),
        request(b"one").replace(b"\r\n", b"\n"),
        request(b"", "POST", HOT, "Transfer-Encoding: chunked"),
        request(b"\r\n\r\nx"),
        b"x",
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
    ]
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(connections=st.lists(st.lists(PIECES, max_size=4), min_size=1, max_size=5))
@example(connections=[[request(b"one")] * 3] * 3)
@example(connections=[[b"\r\n\r\n" + request(b"one")] * 3] * 3)
def test_answers_are_those_of_a_server_without_cache(connections: list[list[bytes]]) -> None:
    async def answers() -> list[tuple[tuple[bytes, bool], tuple[bytes, bool]]]:
        caching, parsing = Server(caches=True), Server(caches=False)
        return [
            (await caching.answer(pieces), await parsing.answer(pieces))
            for pieces in connections * 2
        ]

    for with_cache, without in asyncio.run(answers()):
        assert with_cache == without


async def test_head_is_cached_at_its_second_arrival() -> None:
    server = Server(caches=True)
    heads = server.heads
    assert heads is not None
    head = head_of(request(b"one"))

    await server.answer([request(b"one")])
    assert heads.find(head) is None
    await server.answer([request(b"two")])
    assert heads.find(head) is not None


async def test_cached_head_answers_with_each_requests_own_body() -> None:
    server = Server(caches=True)
    bodies = [f"{number:03}".encode() for number in range(5)]

    written, _ = await server.answer([request(body) for body in bodies])

    assert [written.count(body) for body in bodies] == [1] * 5


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\r\n" + request(b"one"), id="line-break-first"),
        pytest.param(b"\r\n\r\n" + request(b"one"), id="empty-head"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: here\r\n", id="unfinished"),
        pytest.param(
            request(b"", "POST", HOT, "X: " + "x" * limits.HEAD_CACHED_BYTES_MAX), id="long"
        ),
        pytest.param(b"", id="nothing"),
    ],
)
def test_data_without_cacheable_head_has_none(data: bytes) -> None:
    assert head_of(data) == b""


async def test_cache_is_bounded() -> None:
    server = Server(caches=True)
    assert server.heads is not None
    for number in range(2 * limits.HEADS_CACHED_MAX):
        line = f"X-Client: {number}"
        await server.answer([request(b"", "POST", HOT, line)] * 2)

    assert len(server.heads._heads) <= limits.HEADS_CACHED_MAX
    assert len(server.heads._seen) <= limits.HEADS_CACHED_MAX
