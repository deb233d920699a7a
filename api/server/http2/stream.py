"""One request of an HTTP/2 connection and its response.

    HEADERS ─▶ a hot route? ─ yes ─▶ its answer ─▶ HEADERS, DATA
                  └ no ─▶ ASGI: scope, receive, send

A small body is collected before its request is processed; a larger one is read by the processing, which first authenticates
the caller. What it has not read yet fills the stream's window, and the client waits.
"""

import asyncio
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import unquote

from h2.errors import ErrorCodes
from starlette.types import ASGIApp, Message, Scope
from uvicorn.config import Config
from uvicorn.server import ServerState

from api.http.request import FastRequest
from api.http.responses import Response, RouteMatch, log_failure
from api.server.http2.frame_writer import FrameWriter
from api.server.http2.request_head import RequestHead
from api.server.http2.response_fields import (
    Fields,
    asgi_fields,
    response_fields,
)
from storage.domain import limits

_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class ConnectionContext(NamedTuple):
    """Addresses of a connection, and the server's configuration, for its requests."""

    config: Config
    server_state: ServerState
    app_state: dict[str, Any]
    client: tuple[str, int] | None
    server: tuple[str, int | None] | None
    scheme: str

    @property
    def server_fields(self) -> Fields:
        """Header fields of every response."""
        return self.server_state.default_headers


class Http2Stream:
    """A request being received, processed or answered."""

    __slots__ = (
        "_arrival",
        "_chunks",
        "_context",
        "_drains",
        "_is_reported",
        "_is_streaming",
        "_left_bytes",
        "_unread_bytes",
        "_writer",
        "head",
        "id",
        "is_complete",
        "is_disconnected",
        "is_finished",
        "is_started",
        "received_bytes",
        "started_at",
        "task",
    )

    def __init__(
        self,
        writer: FrameWriter,
        context: ConnectionContext,
        stream_id: int,
        head: RequestHead,
        now_s: float,
    ) -> None:
        self._writer = writer
        self._context = context
        self.id = stream_id
        self.head = head
        self.task: asyncio.Task[None] | None = None
        self.started_at = now_s
        self.received_bytes = 0
        self.is_complete = False  # whether the whole request has arrived
        self.is_disconnected = False  # whether the client has reset the stream, or is gone
        self.is_started = False  # whether the head of a response was sent
        self.is_finished = False  # whether the whole response was sent
        self._chunks: list[bytes] = []
        self._unread_bytes = 0  # as flow control counts them
        self._arrival: asyncio.Event | None = None  # set when something changes for `receive`
        self._is_reported = False  # whether `receive` has returned the end of the body
        self._is_streaming = False
        self._drains = False
        self._left_bytes: int | None = None  # of a response that has declared its length

    # Events of the connection

    def receive_data(self, data: bytes, flow_bytes: int) -> None:
        """Add a piece of the body."""
        self.received_bytes += len(data)
        if self.is_finished:
            self._writer.acknowledge(self.id, flow_bytes)
            return
        self._chunks.append(data)
        self._unread_bytes += flow_bytes
        self._wake()

    def complete(self) -> None:
        """Note the end of the request."""
        self.is_complete = True
        self._wake()

    def disconnect(self) -> None:
        """Note that nobody waits for the response."""
        self.is_disconnected = True
        self._wake()
        if self._is_streaming and self.task is not None:
            self.task.cancel()

    def end_streaming(self) -> bool:
        """End a streaming response that does not end by itself; return whether it was one."""
        if not self._is_streaming or self._drains:
            return False
        self.disconnect()
        return True

    def is_open(self) -> bool:
        """Return whether somebody waits for the response, as far as is known."""
        return not self.is_disconnected

    @property
    def is_unread(self) -> bool:
        """Return whether the client waits, because what it has sent is not read yet."""
        return self._unread_bytes >= limits.HTTP2_WINDOW_BYTES // 2

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()

    # The request

    async def receive(self) -> Message:
        """Return the next part of the body, or that the client is gone (ASGI)."""
        if self.head.expects_continue and not (self.is_started or self._chunks or self.is_complete):
            self._writer.send_head(self.id, [(b":status", b"100")])
        while not self._has_news():
            if self._arrival is None:
                self._arrival = asyncio.Event()
            await self._arrival.wait()
            self._arrival.clear()
        if self.is_disconnected or self.is_finished:
            return {"type": "http.disconnect"}
        body = self._take()
        self._is_reported = self.is_complete
        return {"type": "http.request", "body": body, "more_body": not self.is_complete}

    def _has_news(self) -> bool:
        if self.is_disconnected or self.is_finished or self._chunks:
            return True
        return self.is_complete and not self._is_reported

    def _take(self) -> bytes:
        """Return what has arrived of the body, and let the client send as much again."""
        chunks, self._chunks = self._chunks, []
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self.release()
        return body

    def release(self) -> None:
        """Give the unread part of the body back to the client's windows."""
        if self._unread_bytes:
            flow_bytes, self._unread_bytes = self._unread_bytes, 0
            self._writer.acknowledge(self.id, flow_bytes)

    # A hot request

    async def answer(self, match: RouteMatch, *, is_collected: bool) -> None:
        """Process a request for a hot route; its body is collected, or read meanwhile."""
        head = self.head
        headers, query = dict(head.fields), head.url.partition(b"?")[2]
        client = self._context.client
        request = FastRequest(match.segments, headers, query, self.is_open, client=client)
        if is_collected:
            request.body = self._take()
        answer = await match.answer(request, None if is_collected else self.receive)
        if answer is None:
            return
        if self.is_disconnected:
            if answer.pieces is not None:
                await answer.pieces.aclose()
        elif answer.pieces is not None:
            await self._write_pieces(answer, answer.pieces)
        else:
            await self.respond(response_fields(answer, self._context.server_fields), answer.body)

    async def respond(self, fields: Fields, body: bytes) -> None:
        """Send a whole response."""
        if self._writer.is_congested:
            with self._writer.unsent(len(body)):
                await self._writer.drain()
        if self.is_disconnected:
            return
        self._start(fields, ends=not body)
        if body:
            await self._write(body, ends=True)

    async def _write_pieces(self, answer: Response, pieces: AsyncGenerator[bytes]) -> None:
        """Send a streaming response; its task is cancelled when the client is gone."""
        self._is_streaming, self._drains = True, answer.drains
        try:
            self._start(response_fields(answer, self._context.server_fields), ends=False)
            async for piece in pieces:
                if piece:
                    await self._write(piece, ends=False)
            await self._write(b"", ends=True)
        except asyncio.CancelledError:
            if not self.is_disconnected:
                raise
        finally:
            self._is_streaming = False
            await pieces.aclose()

    def _start(self, fields: Fields, *, ends: bool) -> None:
        self.is_started = True
        self._writer.send_head(self.id, fields, ends=ends)
        if ends:
            self._finish()

    def _finish(self) -> None:
        self.is_finished = True
        self._wake()

    async def _write(self, data: bytes, *, ends: bool) -> None:
        """Send a part of the body as the client's windows allow."""
        sent = self._writer.send_data(self.id, data, ends=ends)
        if sent < len(data) or (self._writer.is_congested and not ends):
            with self._writer.unsent(len(data) - sent):
                sent = await self._write_rest(data, sent, ends=ends)
        if ends and not self.is_disconnected:
            self._finish()

    async def _write_rest(self, data: bytes, sent: int, *, ends: bool) -> int:
        writer, view = self._writer, memoryview(data)
        while True:
            await writer.drain()
            if sent == len(data) or self.is_disconnected:
                return sent
            if writer.window_bytes(self.id) > 0:
                sent += writer.send_data(self.id, view[sent:], ends=ends)
            else:
                await writer.wait_for_window(self.id)

    # A request by ASGI

    async def run_asgi(self, app: ASGIApp) -> None:
        """Process a request by an ASGI application."""
        try:
            await app(self._scope(), self.receive, self.send)
        except Exception as error:
            log_failure(error, self.head.url.partition(b"?")[0].decode(), 500, b"")
            if not self.is_started and not self.is_disconnected:
                await self.respond(
                    [
                        (b":status", b"500"),
                        *self._context.server_fields,
                        (b"content-type", b"text/plain; charset=utf-8"),
                        (b"content-length", b"21"),
                    ],
                    b"Internal Server Error",
                )

    def _scope(self) -> Scope:
        path, _, query = self.head.url.partition(b"?")
        context = self._context
        return {
            "type": "http",
            "asgi": {"version": context.config.asgi_version, "spec_version": "2.3"},
            "http_version": "2",
            "server": context.server,
            "client": context.client,
            "scheme": context.scheme,
            "root_path": context.config.root_path,
            "method": self.head.method.decode(),
            "path": context.config.root_path + unquote(path.decode()),
            "raw_path": context.config.root_path.encode() + path,
            "query_string": query,
            "headers": self.head.fields,
            "state": context.app_state.copy(),
        }

    async def send(self, message: Message) -> None:
        """Send a part of the response (ASGI)."""
        if self._writer.is_congested:
            await self._writer.drain()
        if self.is_disconnected:
            return
        if message["type"] == "http.response.start" and not self.is_started:
            self._send_start(message)
        elif message["type"] == "http.response.body" and self.is_started:
            await self._send_body(message)
        else:
            raise RuntimeError(f"Unexpected ASGI message '{message['type']}'.")

    def _send_start(self, message: Message) -> None:
        fields, self._left_bytes = asgi_fields(message.get("headers", ()))
        has_body = self.head.method != b"HEAD" and message["status"] not in _WITHOUT_BODY
        status = (b":status", b"%d" % message["status"])
        self._start([status, *self._context.server_fields, *fields], ends=not has_body)

    async def _send_body(self, message: dict[str, Any] | Message) -> None:
        if self.is_finished:  # a response without a body
            return
        body, has_more = message.get("body", b""), message.get("more_body", False)
        if self._left_bytes is not None:
            self._left_bytes -= len(body)
            if self._left_bytes < 0 or (self._left_bytes and not has_more):
                raise RuntimeError("The response is not as long as its Content-Length.")
        if body or not has_more:
            await self._write(body, ends=not has_more)

    # The end

    def end(self) -> ErrorCodes | None:
        """Return the code with which to reset the stream after its processing; None for no reset.

        A complete response to an incomplete request asks the client to send no more (RFC 9113, section 8.1).
        """
        if self.is_disconnected:
            return None
        if not self.is_finished:
            return ErrorCodes.INTERNAL_ERROR
        return None if self.is_complete else ErrorCodes.NO_ERROR
