"""HTTP/2 protocol of a connection (RFC 9113), beside uvicorn's for HTTP/1.1.

    bytes ─▶ h2 ─▶ events ─▶ streams ─▶ the gateway
    responses of one turn of the loop ─▶ h2 ─▶ one write

Malformed frames get the error that the RFC names, by h2, and the connection ends. What is well-formed and harmful is limited
here; `storage/domain/limits/protocols/http.py` has the numbers:

    too many streams                      reset REFUSED_STREAM: nothing happened
    unfinished requests reset, refused    GOAWAY ENHANCE_YOUR_CALM, above a rate
    frames that carry nothing             the same
    a header block beyond the limit       431; far beyond it, GOAWAY ENHANCE_YOUR_CALM
    a slow head; a slow body              GOAWAY; reset CANCEL
    a response that is not read           reset CANCEL, or the end of the connection
    no request                            GOAWAY after the keep-alive timeout
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
    UnknownFrameReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from api.http.responses import RouteMatch
from api.server.gateway import Gateway
from api.server.http2.connection_state import ConnectionState
from api.server.http2.flood_guard import FloodGuard
from api.server.http2.frame_writer import FrameWriter
from api.server.http2.request_head import RequestHead, read_head
from api.server.http2.response_fields import refusal_response
from api.server.http2.stream import ConnectionContext, Http2Stream
from api.server.slow_requests import SlowRequestMonitor, deadline_s
from storage.domain import limits

_HEAD_S = limits.HEAD_MS_MAX / limits.SECOND_MS
_STALL_S = limits.HTTP2_STALL_MS_MAX / limits.SECOND_MS
_PATH_BYTES_MAX = 512  # longer ones are not looked up, so that the route cache stays small


class Http2Protocol(asyncio.Protocol):
    """Connection of a client that speaks HTTP/2."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._app_state = app_state
        self._app = cast(ASGIApp, config.loaded_app)
        self._gateway = self._app if isinstance(self._app, Gateway) else None
        self._loop = _loop or asyncio.get_running_loop()
        self._server_state = server_state
        self._connections = cast(set[Any], server_state.connections)
        self._state = ConnectionState()
        self._streams: dict[int, Http2Stream] = {}  # those that are received or processed
        self._deferred: deque[Http2Stream] = deque()  # those that wait for the client to read
        self._request_priority: PriorityUpdated | None = None  # of the last request
        self._is_ending = False  # whether new streams are refused
        now_s = self._loop.time()
        self._resets = FloodGuard(
            limits.HTTP2_RESETS_MAX, limits.HTTP2_RESETS_PER_SECOND_MAX, now_s
        )
        self._idle_frames = FloodGuard(
            limits.HTTP2_IDLE_FRAMES_MAX, limits.HTTP2_IDLE_FRAMES_PER_SECOND_MAX, now_s
        )
        self._monitor = SlowRequestMonitor() if self._gateway is None else self._gateway.unfinished
        self._is_monitored = False
        self._partial_at: float | None = None  # since when a frame has not arrived completely
        self._full_at: float | None = None  # since when the client reads nothing at all
        self._idle_at = now_s
        self._idle_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self._writer: FrameWriter
        self._context: ConnectionContext

    # Events of the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the settings, and expect a request."""
        self._transport = cast(asyncio.Transport, transport)
        self._writer = FrameWriter(
            self._state,
            self._transport,
            self._loop,
            on_blocked=self._start_monitoring,
            on_drained=self._process_deferred,
        )
        self._context = ConnectionContext(
            self._config,
            self._server_state,
            self._app_state,
            client=get_remote_addr(self._transport),
            server=get_local_addr(self._transport),
            scheme="https" if is_ssl(self._transport) else "http",
        )
        self._connections.add(self)
        self._writer.schedule_flush()
        self._schedule_idle_check(self._config.timeout_keep_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all streams: nobody waits for their responses."""
        self._connections.discard(self)
        for timer in (self._idle_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        self._stop_monitoring()
        self._deferred.clear()
        for stream in [*self._streams.values()]:
            self._abandon(stream)
        self._writer.resume()

    def data_received(self, data: bytes) -> None:
        """Parse the data, piece by piece, so that a flood is noticed early."""
        view = memoryview(data)
        for place in range(0, len(data), limits.HTTP2_READ_BYTES):
            if self._transport.is_closing():
                return
            self._receive(view[place : place + limits.HTTP2_READ_BYTES])
        if self._transport.get_write_buffer_size() > limits.HTTP2_BACKLOG_BYTES_MAX:
            self._transport.abort()
        elif not self._transport.is_closing():
            self._writer.schedule_flush()
            self._note_progress()

    def eof_received(self) -> bool:
        """Close: HTTP/2 has no use for a connection that is closed in one direction."""
        return False

    def pause_writing(self) -> None:
        """Note that the client reads more slowly than it is sent to."""
        self._writer.pause()
        self._full_at = self._loop.time()
        self._start_monitoring()

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._writer.resume()
        self._full_at = None

    def shutdown(self) -> None:
        """Accept no more requests; let the responses finish, and drain or end streaming ones."""
        if self._gateway is not None:
            self._gateway.drain()
        self._announce_end(ErrorCodes.NO_ERROR)
        for stream in [*self._streams.values()]:
            if stream.end_streaming():
                self._writer.reset(stream.id, ErrorCodes.CANCEL)
        self._close_if_done()

    # Frames that arrive

    def _receive(self, data: memoryview) -> None:
        try:
            events = self._state.receive_data(data)
        except ProtocolError:
            self._writer.flush()  # with the GOAWAY frame that h2 has added
            self._close()
            return
        if events:
            self._partial_at = None  # a frame is complete, and the next one begins
        for event in events:
            if (handle := _HANDLERS.get(type(event))) is not None:
                handle(self, event)
                if self._transport.is_closing():
                    return
        if self._state.header_block_bytes > limits.HTTP2_HEADER_BLOCK_BYTES_MAX:
            self._fail(ErrorCodes.ENHANCE_YOUR_CALM)

    def _begin(self, event: RequestReceived) -> None:
        """Begin a stream, unless there are too many."""
        stream_id, now_s = event.stream_id, self._loop.time()
        if self._is_ending or len(self._streams) >= limits.HTTP2_STREAMS_MAX:
            self._writer.reset(stream_id, ErrorCodes.REFUSED_STREAM)
            self._count(self._resets)
            return
        self._request_priority = event.priority_updated
        head = read_head(event.headers)
        stream = Http2Stream(self._writer, self._context, stream_id, head, now_s)
        self._streams[stream_id] = stream
        if event.stream_ended is not None:
            if head.length:
                self._abort(stream, ErrorCodes.PROTOCOL_ERROR)
                return
            stream.complete()
        else:
            self._start_monitoring()
        self._process(stream)

    def _receive_body(self, event: DataReceived) -> None:
        size = event.flow_controlled_length
        if not event.data and event.stream_ended is None:
            self._count(self._idle_frames)
        stream = self._streams.get(event.stream_id)
        if stream is None:
            self._writer.acknowledge(event.stream_id, size)
        else:
            stream.receive_data(event.data, size)

    def _complete(self, event: StreamEnded) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None and not stream.is_complete:
            stream.complete()
            if stream.task is None and stream not in self._deferred:
                self._process(stream)

    def _end_reset(self, event: StreamReset) -> None:
        """End a stream that the client has reset, or that h2 has because of an error."""
        stream = self._streams.get(event.stream_id)
        if stream is not None and not stream.is_disconnected:
            self._abandon(stream)
            self._count(self._resets)

    def _open_window(self, event: WindowUpdated) -> None:
        self._writer.wake(event.stream_id)

    def _change_settings(self, _: RemoteSettingsChanged) -> None:
        self._count(self._idle_frames)
        self._writer.wake(0)

    def _count_idle(self, event: Event) -> None:
        if event is not self._request_priority:  # part of a HEADERS frame
            self._count(self._idle_frames)

    def _leave(self, _: ConnectionTerminated) -> None:
        """Finish the responses of a client that opens no more streams."""
        self._is_ending = True
        self._close_if_done()

    def _count(self, guard: FloodGuard) -> None:
        if not guard.take(self._loop.time()):
            self._fail(ErrorCodes.ENHANCE_YOUR_CALM)

    # Streams

    def _process(self, stream: Http2Stream) -> None:
        """Start processing a request as soon as enough of it has arrived, and the client reads."""
        match = self._match(stream.head)
        is_collected = stream.is_complete or (match is not None and not match.takes_body)
        if match is not None and not is_collected and _is_small(stream.head):
            return  # until the body has arrived
        if self._writer.unsent_bytes > limits.HTTP2_UNSENT_BYTES_MAX:
            self._deferred.append(stream)
            return
        task = self._loop.create_task(self._serve(stream, match, is_collected=is_collected))
        stream.task = task
        self._server_state.tasks.add(task)

    def _process_deferred(self) -> None:
        while self._deferred and self._writer.unsent_bytes <= limits.HTTP2_UNSENT_BYTES_MAX:
            self._process(self._deferred.popleft())

    def _match(self, head: RequestHead) -> RouteMatch | None:
        """Return the hot route of a request, if it has one and the usual form."""
        gateway = self._gateway
        if gateway is None or head.refusal is not None or self._config.root_path:
            return None
        path = head.url.partition(b"?")[0]
        if len(path) > _PATH_BYTES_MAX:
            return None
        match = gateway.match_route(head.method, path)
        if match is None or gateway.cors is None:
            return match
        return None if any(name == b"origin" for name, _ in head.fields) else match

    async def _serve(
        self, stream: Http2Stream, match: RouteMatch | None, *, is_collected: bool
    ) -> None:
        try:
            head = stream.head
            if head.refusal is not None:
                headers, fields = dict(head.fields), self._context.server_fields
                await stream.respond(*refusal_response(head.refusal, head.url, headers, fields))
            elif match is not None:
                await stream.answer(match, is_collected=is_collected)
            else:
                await stream.run_asgi(self._app)
        finally:
            self._finish(stream)

    def _finish(self, stream: Http2Stream) -> None:
        """Forget a stream whose processing has ended."""
        if stream.task is not None:
            self._server_state.tasks.discard(stream.task)
            stream.task = None  # ends a cycle of references
        self._streams.pop(stream.id, None)
        self._idle_at = self._loop.time()
        self._server_state.total_requests += 1
        if self._transport.is_closing():
            return
        stream.release()
        code = stream.end()
        if code is not None:
            self._writer.reset(stream.id, code)
        self._close_if_done()

    def _abort(self, stream: Http2Stream, code: ErrorCodes) -> None:
        """Reset a stream of whose request or response nothing more is expected."""
        self._writer.reset(stream.id, code)
        self._abandon(stream)

    def _abandon(self, stream: Http2Stream) -> None:
        """End the processing of a request for whose response nobody waits."""
        stream.disconnect()
        self._writer.wake(stream.id)
        if stream.task is None:
            self._streams.pop(stream.id, None)
            if stream in self._deferred:
                self._deferred.remove(stream)
            if not self._transport.is_closing():
                stream.release()
                self._close_if_done()

    # The end of the connection

    def _announce_end(self, code: ErrorCodes) -> None:
        """Tell the client to send new requests elsewhere; its streams so far are served."""
        if self._is_ending or self._transport.is_closing():
            return
        self._is_ending = True
        self._writer.end_connection(code)

    def _fail(self, code: ErrorCodes) -> None:
        """End the connection because of an error of the client."""
        if not self._transport.is_closing():
            self._writer.end_connection(code)
            self._close()

    def _close_if_done(self) -> None:
        if self._is_ending and not self._streams and not self._transport.is_closing():
            self._writer.flush()
            self._close()

    def _close(self) -> None:
        """Close the connection, also if the client does not read what was written."""
        self._transport.close()
        self._linger_timer = self._loop.call_later(_HEAD_S, self._transport.abort)

    # Limits of time

    def check_deadline(self, now_s: float) -> None:
        """End what is too slow: the connection, or single streams."""
        if self._full_at is not None and now_s - self._full_at > _STALL_S:
            self._transport.abort()
            return
        if self._partial_at is not None and now_s - self._partial_at > _HEAD_S:
            self._fail(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        for stream in [*self._streams.values()]:
            if self._is_overdue(stream, now_s):
                self._abort(stream, ErrorCodes.CANCEL)
        if not self._has_deadline():
            self._stop_monitoring()

    def _is_overdue(self, stream: Http2Stream, now_s: float) -> bool:
        """Return whether a request does not arrive, or a response is not read, in its time."""
        if now_s - self._writer.blocked_at.get(stream.id, now_s) > _STALL_S:
            return True
        if stream.is_complete or stream.is_unread:
            return False
        return now_s - stream.started_at > deadline_s(stream.received_bytes, has_head=True)

    def _note_progress(self) -> None:
        if not self._state.has_partial_frame:
            self._partial_at = None
        elif self._partial_at is None:
            self._partial_at = self._loop.time()
            self._start_monitoring()

    def _has_deadline(self) -> bool:
        """Return whether anything has to happen in time."""
        if self._partial_at is not None or self._full_at is not None or self._writer.blocked_at:
            return True
        return any(not stream.is_complete for stream in self._streams.values())

    def _start_monitoring(self) -> None:
        if not self._is_monitored:
            self._is_monitored = True
            self._monitor.add(self, self._loop)

    def _stop_monitoring(self) -> None:
        if self._is_monitored:
            self._is_monitored = False
            self._monitor.discard(self)

    def _schedule_idle_check(self, seconds: float) -> None:
        self._idle_timer = self._loop.call_later(seconds, self._end_if_idle)

    def _end_if_idle(self) -> None:
        """Close the connection if it had no request for the keep-alive timeout."""
        allowed_s = self._config.timeout_keep_alive
        idle_s = 0.0 if self._streams else self._loop.time() - self._idle_at
        if idle_s < allowed_s:
            self._schedule_idle_check(allowed_s - idle_s)
        else:
            self._announce_end(ErrorCodes.NO_ERROR)
            self._close_if_done()


def _is_small(head: RequestHead) -> bool:
    """Return whether a body is collected before its request is processed."""
    return (
        head.length is not None
        and head.length <= limits.HTTP2_COLLECTED_BYTES_MAX
        and not head.expects_continue
    )


_HANDLERS: dict[type[Event], Callable[[Http2Protocol, Any], None]] = {
    ConnectionTerminated: Http2Protocol._leave,
    DataReceived: Http2Protocol._receive_body,
    PingAckReceived: Http2Protocol._count_idle,
    PingReceived: Http2Protocol._count_idle,
    PriorityUpdated: Http2Protocol._count_idle,
    RemoteSettingsChanged: Http2Protocol._change_settings,
    RequestReceived: Http2Protocol._begin,
    SettingsAcknowledged: Http2Protocol._count_idle,
    StreamEnded: Http2Protocol._complete,
    StreamReset: Http2Protocol._end_reset,
    UnknownFrameReceived: Http2Protocol._count_idle,
    WindowUpdated: Http2Protocol._open_window,
}
"""Methods for the events of h2; others, such as trailers, are ignored."""
