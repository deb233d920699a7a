"""uvicorn's HTTP protocol with a fast path for hot requests.

    bytes ─▶ httptools ─▶ a hot route, in the usual form? ─ yes ─▶ its answer ─▶ one write
                                    └ no ─▶ uvicorn's own cycle: ASGI

ASGI costs a request its scope, an event, a message for each part, and two writes; for a small answer that is more than
the work itself. So a request for a hot route that arrives as nearly all do (HTTP/1.1, with a declared length, no other
request in progress on its connection) is collected here and passed to the same code that ASGI leads to. Any other request
takes uvicorn's path.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from http import HTTPStatus
from typing import Any

from api.http.request import FastRequest
from api.http.responses import FindRoute, Response, RouteMatch
from api.server.gateway import Gateway
from api.server.paced_protocol import PacedProtocol
from api.types import RequestHeaders
from storage.domain import limits

_PATH_BYTES_MAX = 512  # longer ones take the slow path, so that the route cache stays small
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}

_RELEASED: list[Any] = []  # replaces a consumed list; nothing is added to it

Headers = list[tuple[bytes, bytes]]


class _NullEvent:
    """Replacement of the event that uvicorn sets when data arrives; nothing waits for it here."""

    def set(self) -> None:
        """Do nothing."""


class FastCycle:
    """One hot request and its response, with the attributes uvicorn expects of a cycle."""

    __slots__ = ("chunks", "disconnected", "keep_alive", "place", "request", "response_complete")
    message_event = _NullEvent()

    def __init__(
        self,
        place: RouteMatch,
        headers: RequestHeaders,
        query: bytes,
        keep_alive: bool,
        client: tuple[str, int] | None = None,
    ) -> None:
        self.place = place
        self.request: FastRequest | None = FastRequest(
            place.segments, headers, query, self.is_open, client=client
        )
        self.chunks: list[bytes] = []
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False

    def is_open(self) -> bool:
        """Return whether the connection is open as far as is known."""
        return not self.disconnected


class FastPathProtocol(PacedProtocol):
    """HTTP protocol class for `uvicorn --http api.server.http_protocol:FastPathProtocol`."""

    # Slots, because with more names Python would no longer share the keys of the instances' dicts.
    __slots__ = ("_drains", "_find", "_has_cors", "_hot", "_lasting", "_next", "_server")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._hot: FastCycle | None = None  # the request being received or answered
        self._server: asyncio.Task[None]  # the task that answers hot requests, once there was one
        self._next: asyncio.Future[FastCycle] | None = (
            None  # the future that it waits for, or has waited for
        )
        self._lasting: asyncio.Task[None] | None = None  # the task that writes a streaming response
        self._drains = False  # whether that task ends by itself at shutdown
        self._find: FindRoute | None = None
        self._has_cors = False
        plain = self.limit_concurrency is None and not self.access_log and not self.root_path
        if plain and isinstance(self.app, Gateway):
            self._find = self.app.match_route
            self._has_cors = self.app.cors is not None

    # Callbacks of httptools

    def on_message_begin(self) -> None:
        """Defer the scope to requests that need one."""
        super().on_message_begin()
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Take the fast path if the request qualifies. Raises HttpError."""
        self.check_head()
        if self._find is not None and (hot := self._hot_request()) is not None:
            self._hot = self.cycle = hot  # type: ignore[assignment]
            return
        self._hot = None
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        self.begin_scope()
        self.url, self.expect_100_continue = url, expects
        self.scope["headers"] = self.headers = headers
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Collect a piece of the body."""
        if self._hot is None:
            super().on_body(body)
        else:
            self._hot.chunks.append(body)

    def on_message_complete(self) -> None:
        """Start processing the complete request."""
        if self._hot is None:
            super().on_message_complete()
            return
        self.is_whole()
        if self._next is None or self._next.done():
            self._server = self.loop.create_task(self._serve(self._hot))
            self._server.add_done_callback(self.tasks.discard)
        else:
            self._next.set_result(self._hot)
        self.tasks.add(self._server)

    def _hot_request(self) -> FastCycle | None:
        """Return the request as a hot one, if it has a hot route and the usual form."""
        if self._is_answering():
            return None
        parser = self.parser
        path, _, query = self.url.partition(b"?")
        if len(path) > _PATH_BYTES_MAX or self._find is None:
            return None
        place = self._find(parser.get_method(), path)
        if place is None or self.expect_100_continue:
            return None
        if parser.get_http_version() != "1.1" or parser.should_upgrade():
            return None
        headers = dict(self.headers)
        if not _is_bounded(headers, place) or (self._has_cors and b"origin" in headers):
            return None
        return FastCycle(place, headers, query, parser.should_keep_alive(), self.client)

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
        answer = await cycle.place.answer(request, None)
        while self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if answer is not None and answer.pieces is not None:
            if cycle.disconnected:
                await answer.pieces.aclose()
            else:
                await self._write_pieces(answer, answer.pieces, cycle)
        if answer is None or cycle.disconnected:
            return False
        if answer.pieces is None:
            has_length = answer.status != HTTPStatus.NO_CONTENT
            length = b"content-length: %d\r\n" % len(answer.body) if has_length else b""
            head = self._head(answer, length, cycle)
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
        """Write a streaming response in chunks. Its task ends when the connection does."""
        self._lasting, self._drains = asyncio.current_task(), answer.drains
        try:
            self.transport.write(self._head(answer, b"transfer-encoding: chunked\r\n", cycle))
            async for piece in pieces:
                self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await self.flow.drain()
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

    def _head(self, answer: Response, length: bytes, cycle: FastCycle) -> bytes:
        """Return the status line and the headers."""
        return (
            b"%b%bcache-control: no-store\r\ncontent-type: %b\r\n%bx-request-id: %b\r\n%b%b\r\n"
            % (
                _STATUS_LINES[answer.status],
                _server_lines(self.server_state.default_headers),
                answer.kind.encode(),
                length,
                answer.request_id,
                _lines(answer.extra_headers) if answer.extra_headers else b"",
                b"" if cycle.keep_alive else b"connection: close\r\n",
            )
        )

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
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.timeout_keep_alive_task is None:
            self._look_again_in(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle for the keep-alive timeout."""
        idle_s = self.loop.time() - self._busy_at
        answering = self._is_answering()
        if answering or idle_s < self.timeout_keep_alive:
            left_s = self.timeout_keep_alive - (0 if answering else idle_s)
            self._look_again_in(left_s)
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Drain or end a streaming response; let other responses finish."""
        if isinstance(self.app, Gateway):
            self.app.drain()
        if self._lasting is None or self._drains:
            super().shutdown()
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer, and end a streaming response."""
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        super().connection_lost(exc)
        if self._lasting is not None:
            self._lasting.cancel()
        self._stop_serving()

    def handle_websocket_upgrade(self) -> None:
        """Stop serving hot requests on this connection."""
        self._stop_serving()
        super().handle_websocket_upgrade()

    def _stop_serving(self) -> None:
        """Cancel the wait for another hot request, if any."""
        if self._next is not None:
            self._next.cancel()

    def _look_again_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )


def _is_bounded(headers: RequestHeaders, place: RouteMatch) -> bool:
    """Return whether the body is absent, or of a declared length that may be buffered."""
    if b"transfer-encoding" in headers:
        return False
    length = headers.get(b"content-length")
    if length is None:
        return not place.takes_body
    return length.isdigit() and int(length) <= limits.REQUEST_BYTES_MAX


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return header lines. Raises ValueError for a value that would end its line."""
    lines = []
    for name, value in headers:
        if b"\r" in value or b"\n" in value:
            raise ValueError("a header value spans several lines")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


class _ServerLines:
    """Encoder of the headers that uvicorn adds to every response.

    uvicorn replaces their list each second.
    """

    def __init__(self) -> None:
        self._headers: Headers | None = None
        self._lines = b""

    def __call__(self, headers: Headers) -> bytes:
        if headers is not self._headers:
            self._headers, self._lines = headers, _lines(headers)
        return self._lines


_server_lines = _ServerLines()
