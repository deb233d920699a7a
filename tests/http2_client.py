"""An HTTP/2 client that sends what a test wants, well-formed or not."""

import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from hyperframe.frame import Frame, GoAwayFrame

from tests.conditions import PATIENCE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
Field = tuple[bytes, bytes]


class ClientState(H2Connection):
    """A client's side of a connection, which outlives GOAWAY: h2 would accept no response after it."""

    def __init__(self) -> None:
        super().__init__(
            H2Configuration(
                client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False
            )
        )
        self.initiate_connection()

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        state = self.state_machine.state
        answer = super()._receive_goaway_frame(frame)
        self.state_machine.state = state
        return answer


STREAM_EVENTS = (
    InformationalResponseReceived,
    ResponseReceived,
    DataReceived,
    StreamEnded,
    StreamReset,
)
"""Events that belong to the answer of a stream."""


class Answer:
    """The part of a response that has arrived."""

    def __init__(self) -> None:
        self.informational: list[int] = []
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.has_ended = False
        self.reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers[b":status"])

    @property
    def is_over(self) -> bool:
        return self.has_ended or self.reset is not None

    def note(self, event: Any) -> None:
        """Add what an event of STREAM_EVENTS says."""
        match event:
            case InformationalResponseReceived():
                self.informational.append(int(dict(event.headers)[b":status"]))
            case ResponseReceived():
                self.headers = dict(event.headers)
            case DataReceived():
                self.body += event.data
            case StreamEnded():
                self.has_ended = True
            case StreamReset():
                self.reset = event.error_code
            case _:
                raise TypeError(event)


class Http2Client:
    """A connection to the server at `url`, with an answer for each stream.

    Without `reads`, the server's windows are not opened again.
    """

    def __init__(
        self, url: str, *, context: ssl.SSLContext | None = None, reads: bool = True
    ) -> None:
        where = urlsplit(url)
        self.authority = where.netloc.encode()
        self.socket = socket.create_connection(
            (where.hostname, where.port or 0), timeout=PATIENCE_S
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=where.hostname)
        self.reads = reads
        self.state = ClientState()
        self.answers: dict[int, Answer] = {}
        self.goaway: ConnectionTerminated | None = None
        self.is_closed = False

    def close(self) -> None:
        self.socket.close()

    def begin(
        self,
        method: bytes,
        path: bytes,
        headers: Iterable[Field] = (),
        *,
        body: bytes | None = None,
        ends: bool = True,
        scheme: bytes = b"http",
    ) -> int:
        """Queue a request; returns its stream. A body must fit the windows."""
        stream_id = self.state.get_next_available_stream_id()
        pseudo = [
            (b":method", method),
            (b":scheme", scheme),
            (b":authority", self.authority),
            (b":path", path),
        ]
        self.answers[stream_id] = Answer()
        self.state.send_headers(stream_id, [*pseudo, *headers], end_stream=ends and body is None)
        if body is not None:
            self.send_body(stream_id, body, ends=ends)
        return stream_id

    def send_body(self, stream_id: int, body: bytes, *, ends: bool = True) -> None:
        """Send a body as the server's windows allow."""
        while True:
            window = self.state.local_flow_control_window(stream_id)
            size = min(window, len(body), self.state.max_outbound_frame_size)
            if size or not body:
                piece, body = body[:size], body[size:]
                self.state.send_data(stream_id, piece, end_stream=ends and not body)
            if not body:
                return
            if not size:
                self.receive()

    def flush(self) -> None:
        """Send what is queued."""
        if queued := self.state.data_to_send():
            self.socket.sendall(queued)

    def send_frames(self, *frames: Frame) -> None:
        """Send frames as they are."""
        self.flush()
        self.socket.sendall(b"".join(frame.serialize() for frame in frames))

    def receive(self) -> list[Event]:
        """Send what is queued, and receive once."""
        self.flush()
        try:
            data = self.socket.recv(65_536)
        except ConnectionResetError:
            data = b""
        if not data:
            self.is_closed = True
            return []
        events = self.state.receive_data(data)
        for event in events:
            self._note(event)
        self.flush()
        return events

    def _note(self, event: Any) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaway = event
        elif isinstance(event, STREAM_EVENTS):
            self.answers[event.stream_id].note(event)
            if isinstance(event, DataReceived) and self.reads:
                self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def answer(self, stream_id: int) -> Answer:
        """Return the complete answer of a stream."""
        while not (self.answers[stream_id].is_over or self.is_closed):
            self.receive()
        return self.answers[stream_id]

    def ask(self, method: bytes, path: bytes, headers: Iterable[Field] = (), **how: Any) -> Answer:
        """Send a request and return its answer."""
        return self.answer(self.begin(method, path, headers, **how))

    def until_closed(self) -> int | None:
        """Receive until the server closes the connection; returns the code of its GOAWAY."""
        while not self.is_closed:
            self.receive()
        return None if self.goaway is None else self.goaway.error_code

    def ping(self) -> None:
        """Wait until the server has processed everything sent so far."""
        self.state.ping(b"finished")
        while not any("PingAckReceived" in type(event).__name__ for event in self.receive()):
            assert not self.is_closed


@contextmanager
def http2(url: str, **how: Any) -> Iterator[Http2Client]:
    """Connect to a server by prior knowledge, or by ALPN with a context."""
    with closing(Http2Client(url, **how)) as client:
        yield client


__all__ = ["PREFACE", "Answer", "ErrorCodes", "Http2Client", "http2"]
