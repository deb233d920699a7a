"""uvicorn's HTTP protocol with a fast path for hot requests.

    bytes ─▶ httptools ─▶ a hot route, in the usual form? ─ yes ─▶ its answer ─▶ one write
       │                            └ no ─▶ uvicorn's own cycle: ASGI           ▲
       └─▶ a complete request with a head of the cache ─────────────────────────┘

ASGI costs a request its scope, an event, a message for each part, and two writes; for a small answer that is more than
the work itself. So a request for a hot route that arrives as nearly all do (HTTP/1.1, with a declared length, no other
request in progress on its connection) is collected here and passed to the same code that ASGI leads to. Any other request
takes uvicorn's path. A request that arrives in one piece with a head that was parsed before is not parsed again
(`api.server.head_cache`).

Limits apply before a request is parsed. A request beyond a limit gets a response, and the connection ends: its remaining
bytes cannot be distinguished from a next request.

    head    limited bytes, number of headers and URL length     431, 431, 414
    time    a head and a body arrive at a minimum rate          408, or the connection ends

uvicorn promises nothing about these parts of its protocol, on which the class relies; `tests/unit/http/test_http_protocol.py`
names each of them:

    read or replaced        access_log app client connections cycle expect_100_continue flow headers limit_concurrency loop
                            parser pipeline root_path scheme scope server server_state tasks timeout_keep_alive
                            timeout_keep_alive_task transport url
    called                  _start_asgi_task
    called by uvicorn       _unset_keepalive_if_required handle_websocket_upgrade on_response_complete send_400_response
                            shutdown timeout_keep_alive_handler
    of the flow control     drain read_paused resume_reading write_paused
    of the server's state   default_headers total_requests
    of a cycle              chunked_encoding disconnected expected_content_length keep_alive message_event
                            response_complete response_started scope send
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.errors import HttpError, HttpErrorCode
from api.http.body import HALF_CLOSED
from api.http.request import FastRequest
from api.http.responses import FindRoute, Response, RouteMatch
from api.server.close_delimited import end_with_close
from api.server.gateway import Gateway
from api.server.head_cache import HeadCache, ParsedHead, head_of
from api.server.refusals import HEAD_TOO_LARGE, MALFORMED, TOO_SLOW, URL_TOO_LONG
from api.server.response_encoder import encode_head, encode_refusal
from api.server.slow_requests import SlowRequestMonitor, deadline_s
from api.types import RequestHeaders
from storage.domain import limits

_NOTHING, _HEAD, _BODY = range(3)  # part of a request that has begun to arrive, and not ended

_PATH_BYTES_MAX = 512  # longer ones take the slow path, so that the route cache stays small

_HALF_CLOSED = HttpError(
    HttpErrorCode.BAD_REQUEST,
    "Nothing was received: keep the connection open for sending until the response has arrived.",
)

_RELEASED: list[Any] = []  # replaces a consumed list; nothing is added to it

_VERSIONS = ("1.1", "1.0")


class _NullEvent:
    """Replacement of the event that uvicorn sets when data arrives; nothing waits for it here."""

    def set(self) -> None:
        """Do nothing."""


class FastCycle:
    """One hot request and its response, with the attributes uvicorn expects of a cycle."""

    __slots__ = (
        "chunks",
        "disconnected",
        "half_closed",
        "is_chunked",
        "keep_alive",
        "match",
        "request",
        "response_complete",
    )
    message_event = _NullEvent()

    def __init__(
        self,
        match: RouteMatch,
        headers: RequestHeaders,
        query: bytes,
        keep_alive: bool,
        client: tuple[str, int] | None = None,
        *,
        is_chunked: bool = True,
    ) -> None:
        self.match = match
        self.is_chunked = is_chunked
        self.request: FastRequest | None = FastRequest(
            match.segments, headers, query, self.is_open, client=client
        )
        self.chunks: list[bytes] = []
        self.keep_alive = keep_alive
        self.disconnected = False
        self.half_closed = False
        self.response_complete = False

    def is_open(self) -> bool:
        """Return whether the connection is open in both directions, as far as is known."""
        return not (self.disconnected or self.half_closed)


class FastPathProtocol(HttpToolsProtocol):
    """HTTP protocol class for `uvicorn --http api.server.http_protocol:FastPathProtocol`."""

    # Slots, because with more names Python would no longer share the keys of the instances' dicts.
    __slots__ = (
        "_begun_at",
        "_busy_at",
        "_drains",
        "_find",
        "_has_cors",
        "_head",
        "_heads",
        "_hot",
        "_is_monitored",
        "_lasting",
        "_next",
        "_received",
        "_refusal",
        "_server",
        "_stage",
        "_unfinished",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_monitored = False
        self._stage = _NOTHING
        self._received = 0  # at least the bytes since the request began
        self._busy_at = self._begun_at = 0.0
        self._refusal = MALFORMED
        self._hot: FastCycle | None = None  # the request being received or answered
        self._server: asyncio.Task[None]  # the task that answers hot requests, once there was one
        self._next: asyncio.Future[FastCycle] | None = (
            None  # the future that it waits for, or has waited for
        )
        self._lasting: asyncio.Task[None] | None = None  # the task that writes a streaming response
        self._drains = False  # whether that task ends by itself at shutdown
        self._find: FindRoute | None = None
        self._heads: HeadCache | None = None
        self._head = b""  # that of the request being received, if it may be cached
        self._has_cors = False
        gateway = self.app if isinstance(self.app, Gateway) else None
        self._unfinished = SlowRequestMonitor() if gateway is None else gateway.unfinished
        plain = self.limit_concurrency is None and not self.access_log and not self.root_path
        if plain and gateway is not None:
            self._find = gateway.match_route
            self._heads = gateway.heads
            self._has_cors = gateway.cors is not None

    # Events of the connection

    def connection_made(self, transport: Any) -> None:
        """Expect a request from the new connection."""
        super().connection_made(transport)
        self._begun_at = self.loop.time()
        self._monitor()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop monitoring the connection, cancel the timer, and end a streaming response."""
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        self._stop_monitoring()
        super().connection_lost(exc)
        if self._lasting is not None:
            self._lasting.cancel()
        self._stop_serving()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for the answer to a client that sends nothing more.

        The client may as well have gone. So waits count it as disconnected, and a streaming response ends.
        TLS connections cannot be half closed.
        """
        if self._stage != _NOTHING or not self._is_answering() or self._is_streaming():
            return False
        cycle = cast(Any, self.cycle)
        cycle.keep_alive = False
        if isinstance(cycle, FastCycle):
            cycle.half_closed = True
        else:
            cycle.scope[HALF_CLOSED] = True
        return self.scheme == "http"

    def data_received(self, data: bytes) -> None:
        """Parse the data, and monitor the connection while the request is incomplete."""
        if self._stage == _NOTHING:
            if self._heads is not None and self._take_parsed(data, self._heads):
                return
            self._received = 0
        self._received += len(data)
        super().data_received(data)
        if self._stage == _NOTHING:
            if self._is_monitored:
                self._stop_monitoring()
        elif self._stage == _HEAD and self._received > limits.HEAD_BYTES_MAX:
            self._refuse(HEAD_TOO_LARGE)
        elif not self._is_monitored and not self.transport.is_closing():
            self._monitor()

    def _take_parsed(self, data: bytes, heads: HeadCache) -> bool:
        """Process a complete request with a head of the cache; return whether it is one."""
        self._head = head_of(data)
        parsed = heads.find(self._head)
        if parsed is None or len(self._head) + parsed.body_bytes != len(data):
            return False
        if self._is_answering():
            return False
        self._busy_at = self.loop.time()
        if self._is_monitored:
            self._stop_monitoring()
        self.url = parsed.url
        self._hot = self.cycle = FastCycle(  # type: ignore[assignment]
            parsed.match,
            parsed.headers,
            parsed.query,
            parsed.keep_alive,
            self.client,
            is_chunked=parsed.is_chunked,
        )
        self._hot.chunks.append(data[len(self._head) :])
        self._start_serving(self._hot)
        return True

    def release(self) -> None:
        """Give up the connection, on which nothing has arrived: another protocol takes over."""
        self._stop_monitoring()
        self.connections.discard(self)

    def handle_websocket_upgrade(self) -> None:
        """Stop monitoring and serving: another protocol takes over the connection."""
        self._stop_serving()
        self._stage = _NOTHING
        self._stop_monitoring()
        super().handle_websocket_upgrade()

    def shutdown(self) -> None:
        """Drain or end a streaming response; let other responses finish."""
        if isinstance(self.app, Gateway):
            self.app.drain()
        if self._lasting is None or self._drains:
            super().shutdown()
        else:
            self.transport.close()

    # Callbacks of httptools

    def on_message_begin(self) -> None:
        """Record the first byte of a request, and defer the scope to requests that need one."""
        self._stage, self._begun_at = _HEAD, self._busy_at
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Take the fast path if the request qualifies. Raises HttpError."""
        self._stage = _BODY
        self._check_head()
        if self._find is not None and (hot := self._hot_request(self._find)) is not None:
            self._hot = self.cycle = hot  # type: ignore[assignment]
            return
        self._hot = None
        if not any(name == b"host" for name, _ in self.headers):
            self.headers.append((b"host", self._own_host()))
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.scope["headers"] = self.headers = headers
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0" and self.cycle is not None:
            end_with_close(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Collect a piece of the body."""
        if self._hot is None:
            super().on_body(body)
        else:
            self._hot.chunks.append(body)

    def on_message_complete(self) -> None:
        """Start processing the complete request."""
        self._stage = _NOTHING
        if self._hot is None:
            super().on_message_complete()
        else:
            self._start_serving(self._hot)

    def _start_serving(self, hot: FastCycle) -> None:
        if self._next is None or self._next.done():
            self._server = self.loop.create_task(self._serve(hot))
            self._server.add_done_callback(self.tasks.discard)
        else:
            self._next.set_result(hot)
        self.tasks.add(self._server)

    def _hot_request(self, find: FindRoute) -> FastCycle | None:
        """Return the request as a hot one, if it has a hot route and the usual form."""
        if self._is_answering():
            return None
        parser = self.parser
        path, _, query = self.url.partition(b"?")
        if len(path) > _PATH_BYTES_MAX:
            return None
        match = find(parser.get_method(), path)
        if match is None or self.expect_100_continue:
            return None
        version = parser.get_http_version()
        if version not in _VERSIONS or parser.should_upgrade():
            return None
        headers = dict(self.headers)
        if b"host" not in headers:
            self._head = b""
            headers[b"host"] = self._own_host()
        if not _is_bounded(headers, match) or (self._has_cors and b"origin" in headers):
            return None
        keep_alive, is_chunked = parser.should_keep_alive(), version != "1.0"
        if self._head and self._heads is not None:
            body_bytes = int(headers.get(b"content-length", 0))
            if len(self._head) + body_bytes == self._received:  # one whole request
                self._heads.add(
                    self._head,
                    ParsedHead(match, self.url, headers, query, keep_alive, is_chunked, body_bytes),
                )
            self._head = b""
        return FastCycle(match, headers, query, keep_alive, self.client, is_chunked=is_chunked)

    def _own_host(self) -> bytes:
        """Return the address that the client reached, for a request without Host (HTTP/1.0)."""
        host, port = self.server or ("localhost", None)
        name = f"[{host}]" if ":" in host else host
        return (name if port is None else f"{name}:{port}").encode()

    def _is_answering(self) -> bool:
        before: Any = self.cycle
        return before is not None and not before.response_complete

    def _is_streaming(self) -> bool:
        return self._lasting is not None or getattr(self.cycle, "response_started", False)

    # Limits of a request

    def _check_head(self) -> None:
        """Check the complete headers. Raises HttpError."""
        if len(self.url) > limits.URL_BYTES_MAX:
            raise self._refused(URL_TOO_LONG)
        too_many = len(self.headers) > limits.HEAD_HEADERS_MAX
        if too_many or (self._received > limits.HEAD_BYTES_MAX and self._is_head_large()):
            raise self._refused(HEAD_TOO_LARGE)

    def _is_head_large(self) -> bool:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        return size > limits.HEAD_BYTES_MAX

    def _refused(self, refusal: HttpError) -> HttpError:
        """Record the refusal, which httptools reports as a malformed request."""
        self._refusal = refusal
        return refusal

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, or one whose head is beyond a limit."""
        self._refuse(self._refusal)

    def check_deadline(self, now_s: float) -> None:
        """Close the connection if its request is too slow.

        A request that waits for this server, as behind one being answered, is not slow.
        """
        if self.flow.read_paused or self.pipeline:
            return
        has_head = self._stage == _BODY
        if now_s - self._begun_at <= deadline_s(self._received, has_head=has_head):
            return
        if self._stage == _HEAD and not self._is_answering():
            self._refuse(TOO_SLOW)
        else:
            self._stop_monitoring()
            self.transport.close()

    def _refuse(self, refusal: HttpError) -> None:
        """Send the problem response and close the connection."""
        self._stage = _NOTHING
        self._stop_monitoring()
        if not self.transport.is_closing():
            self._write_refusal(refusal, dict(self.headers or ()))
            self.transport.close()

    def _write_refusal(self, refusal: HttpError, headers: RequestHeaders) -> None:
        server_headers = self.server_state.default_headers
        self.transport.write(encode_refusal(refusal, server_headers, self.url or b"", headers))

    def _monitor(self) -> None:
        self._is_monitored = True
        self._unfinished.add(self, self.loop)

    def _stop_monitoring(self) -> None:
        if self._is_monitored:
            self._is_monitored = False
            self._unfinished.discard(self)

    # Responses

    async def _serve(self, cycle: FastCycle) -> None:
        """Answer hot requests one after another.

        A task for each would cost a twentieth of what a small request does.
        """
        answering = True
        try:
            while await self._answer(cycle):
                self.tasks.discard(self._server)  # shutdown need not wait for it
                answering = False
                self._next = self.loop.create_future()
                cycle = await self._next
                answering = True
        finally:
            if answering:
                self.transport.close()

    async def _answer(self, cycle: FastCycle) -> bool:
        """Answer a request, and return whether the connection stays open afterwards."""
        request, chunks = cycle.request, cycle.chunks
        assert request is not None
        # An idle wait holds as little as it can. The request references the cycle: with a reference back, its body would
        # stay until a garbage collection.
        cycle.request, cycle.chunks = None, _RELEASED
        self.headers = _RELEASED
        request.body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        answer = await cycle.match.answer(request, None)
        while self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if answer is not None and answer.pieces is not None:
            if cycle.is_open():
                await self._write_pieces(answer, answer.pieces, cycle)
            else:
                await answer.pieces.aclose()
        if answer is None and cycle.half_closed:
            self._write_refusal(_HALF_CLOSED, request.headers)
        if answer is None or cycle.disconnected:
            return False
        if answer.pieces is None:
            head = encode_head(answer, self.server_state.default_headers, cycle.keep_alive)
            if len(answer.body) > limits.COPIED_BYTES_MAX:
                self.transport.writelines((head, answer.body))
            else:
                self.transport.write(head + answer.body)
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return not self.transport.is_closing()

    async def _write_pieces(
        self, answer: Response, pieces: AsyncGenerator[bytes], cycle: FastCycle
    ) -> None:
        """Write a streaming response: in chunks, or to HTTP/1.0 until the connection closes.

        Its task ends when the connection does.
        """
        self._lasting, self._drains = asyncio.current_task(), answer.drains
        is_chunked = cycle.is_chunked
        cycle.keep_alive &= is_chunked
        try:
            server_headers = self.server_state.default_headers
            head = encode_head(answer, server_headers, cycle.keep_alive, is_chunked=is_chunked)
            self.transport.write(head)
            async for piece in pieces:
                self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
                await self.flow.drain()
            if is_chunked:
                self.transport.write(b"0\r\n\r\n")
        except asyncio.CancelledError:
            if not cycle.disconnected:
                self.transport.close()
                raise
        except BaseException:
            self.transport.close()
            raise
        finally:
            self._lasting = None
            await pieces.aclose()

    # Idle connections: one timer checks again, rather than one for each request

    def _unset_keepalive_if_required(self) -> None:
        """Record activity on the connection; uvicorn calls this whenever data arrives."""
        self._busy_at = self.loop.time()

    def on_response_complete(self) -> None:
        """Start the next pipelined request after a response, or ensure that the idle timer runs."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._busy_at = self.loop.time()
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.timeout_keep_alive_task is None:
            self._schedule_idle_check(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle for the keep-alive timeout."""
        idle_s = self.loop.time() - self._busy_at
        answering = self._is_answering()
        if answering or idle_s < self.timeout_keep_alive:
            left_s = self.timeout_keep_alive - (0 if answering else idle_s)
            self._schedule_idle_check(left_s)
        else:
            super().timeout_keep_alive_handler()

    def _stop_serving(self) -> None:
        """Cancel the wait for another hot request, if any."""
        if self._next is not None:
            self._next.cancel()

    def _schedule_idle_check(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )


def _is_bounded(headers: RequestHeaders, match: RouteMatch) -> bool:
    """Return whether the body is absent, or of a declared length that may be buffered."""
    if b"transfer-encoding" in headers:
        return False
    length = headers.get(b"content-length")
    if length is None:
        return not match.takes_body
    return length.isdigit() and int(length) <= limits.REQUEST_BYTES_MAX
