"""Writer of a connection's frames: flow control, fairness, one write per turn."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from h2.errors import ErrorCodes

from api.server.http2.connection_state import ConnectionState
from api.server.http2.response_fields import Fields
from storage.domain import limits


class FrameWriter:
    """Writer of what the streams of a connection send, in one write per turn of the loop.

    Memory is bounded: a stream sends only what the client's windows allow, and while the client does not read, nothing.
    """

    def __init__(
        self,
        state: ConnectionState,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        on_blocked: Callable[[], None],
        on_drained: Callable[[], None],
    ) -> None:
        self.is_paused = False  # whether the transport has enough to write
        self.unsent_bytes = 0  # of responses that wait for the client
        self.blocked_at: dict[int, float] = {}  # streams that wait for their window, since when
        self._state = state
        self._transport = transport
        self._loop = loop
        self._on_blocked = on_blocked
        self._on_drained = on_drained
        self._windows: dict[int, asyncio.Future[None]] = {}
        self._turns: deque[asyncio.Future[None]] = deque()  # streams that wait to send more
        self._queued_bytes = 0  # of bodies, since the last write
        self._is_flushing = False

    # Frames

    def send_head(self, stream_id: int, fields: Fields, *, ends: bool = False) -> None:
        """Send the head of a response."""
        if self._is_open(stream_id):
            self._state.send_headers(stream_id, fields, end_stream=ends)
            self.schedule_flush()

    def send_data(self, stream_id: int, data: bytes | memoryview, *, ends: bool) -> int:
        """Send as much as the client's windows and a turn allow; returns the number of bytes.

        `ends`: whether the stream ends after the last of them.
        """
        if not self._is_open(stream_id):
            return 0
        window_bytes = self._state.local_flow_control_window(stream_id)
        size = min(len(data), window_bytes, limits.HTTP2_TURN_BYTES)
        if size <= 0 and data:
            return 0
        frame_bytes, sent = self._state.max_outbound_frame_size, 0
        while True:
            piece = data[sent : min(sent + frame_bytes, size)]
            sent += len(piece)
            self._state.send_data(stream_id, piece, end_stream=ends and sent == len(data))
            if sent == size:
                break
        self._queued_bytes += sent
        self.schedule_flush()
        return sent

    def reset(self, stream_id: int, code: ErrorCodes) -> None:
        """End a stream, if it is open."""
        if self._is_open(stream_id):
            self._state.reset_stream(stream_id, code)
            self.schedule_flush()

    def acknowledge(self, stream_id: int, flow_bytes: int) -> None:
        """Let the client send as many bytes more."""
        if flow_bytes and not self._transport.is_closing():
            self._state.acknowledge_received_data(flow_bytes, stream_id)
            self.schedule_flush()

    def end_connection(self, code: ErrorCodes) -> None:
        """Tell the client that streams it has not opened yet are not served."""
        self.flush()
        if not self._transport.is_closing():
            self._transport.write(self._state.goaway(code))

    def _is_open(self, stream_id: int) -> bool:
        if self._transport.is_closing():
            return False
        stream = self._state.streams.get(stream_id)
        return stream is not None and not stream.closed

    def schedule_flush(self) -> None:
        """Write all frames at the end of this turn of the loop."""
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write all frames since the last time."""
        self._is_flushing = False
        self._queued_bytes = 0
        data = self._state.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)
        if self._turns and not self.is_paused:
            self._start_turn()

    # Flow control

    @property
    def is_congested(self) -> bool:
        """Return whether a stream has to wait before it sends more."""
        return self.is_paused or self._queued_bytes >= limits.HTTP2_TURN_BYTES

    async def drain(self) -> None:
        """Wait until the connection can take more, after the streams that wait already."""
        if not self._transport.is_closing():
            turn = self._loop.create_future()
            self._turns.append(turn)
            self.schedule_flush()
            await turn

    def _start_turn(self) -> None:
        """Let one stream send, and the next one after what it has sent was written."""
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():  # its stream was not cancelled
                turn.set_result(None)
                self.schedule_flush()
                break

    def pause(self) -> None:
        """Let no stream send."""
        self.is_paused = True

    def resume(self) -> None:
        """Let streams send again, or see that the connection is closed."""
        self.is_paused = False
        self.schedule_flush()

    def window_bytes(self, stream_id: int) -> int:
        """Return how much a stream may send; a closed one may send nothing."""
        return self._state.local_flow_control_window(stream_id) if self._is_open(stream_id) else 0

    async def wait_for_window(self, stream_id: int) -> None:
        """Wait until the client lets a stream send, or is gone."""
        changed = self._windows[stream_id] = self._loop.create_future()
        self.blocked_at[stream_id] = self._loop.time()
        self._on_blocked()
        try:
            await changed
        finally:
            del self._windows[stream_id], self.blocked_at[stream_id]

    def wake(self, stream_id: int) -> None:
        """Let a stream look at its window again; 0 stands for all of them."""
        for waiting_id in [stream_id] if stream_id else [*self._windows]:
            changed = self._windows.get(waiting_id)
            if changed is not None and not changed.done():
                changed.set_result(None)

    @contextmanager
    def unsent(self, size: int) -> Iterator[None]:
        """Count bytes that wait for the client."""
        self.unsent_bytes += size
        try:
            yield
        finally:
            self.unsent_bytes -= size
            self._on_drained()
