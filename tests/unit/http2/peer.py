"""An HTTP/2 connection in memory: the server's protocol, a client by h2, and a clock by hand."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
)
from hyperframe.frame import Frame
from uvicorn import Config
from uvicorn.server import ServerState

from api.http import responses
from api.server.http2.protocol import Http2Protocol
from tests.http2_client import STREAM_EVENTS, Answer, ClientState

KEEP_ALIVE_S = 5
Application = Callable[[Any, Any, Any], Any]


class _EventList:
    """Logger that keeps its events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def log(self, _: int, event: str, **fields: Any) -> None:
        """Keep an event."""
        self.events.append({"event": event, **fields})


@contextmanager
def captured_failures() -> Iterator[list[dict[str, Any]]]:
    """Capture the logged failures of responses.

    structlog's own capture misses a logger that was used before, as by another test of the process.
    """
    log = _EventList()
    with patch.object(responses, "_log", log):
        yield log.events


class Clock:
    """A loop whose time is advanced by the test; everything else is the running loop's."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due: list[tuple[float, asyncio.TimerHandle]] = []
        self.now = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any, *arguments: Any) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(self.now + seconds, call, arguments, self._loop)
        self._due.append((self.now + seconds, timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Run what is due meanwhile, in order."""
        end = self.now + seconds
        while due := [one for one in self._due if one[0] <= end and not one[1].cancelled()]:
            first = min(due, key=lambda one: one[0])
            self._due.remove(first)
            self.now = first[0]
            first[1]._run()
        self.now = end


class Transport(asyncio.Transport):
    """A connection that records what is written; with `reads` false, it stays in the buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = bytearray()
        self.writes: list[bytes] = []
        self.reads = True
        self.closed = False
        self.aborted = False
        self._is_lost = False
        self.protocol: Any

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 80) if name in ("peername", "sockname") else default

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_write_buffer_size(self) -> int:
        return 0 if self.reads else len(self.buffer)

    def write(self, data: Any) -> None:
        assert not self.closed
        self.writes.append(bytes(data))
        self.buffer += data
        if not self.reads and len(self.buffer) > 65_536:
            self.protocol.pause_writing()

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.reads:  # otherwise what is in the buffer would be sent first
                self._lose()

    def abort(self) -> None:
        self.aborted = self.closed = True
        self._lose()

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


async def turns(count: int = 20) -> None:
    """Let the loop run."""
    for _ in range(count):
        await asyncio.sleep(0)


class Peer:
    """A client of the application, and the server that it is connected to."""

    def __init__(self, application: Application) -> None:
        config = Config(application, timeout_keep_alive=KEEP_ALIVE_S, log_config=None)
        config.load()
        config.loaded_app = application
        self.clock = Clock()
        self.server_state = ServerState()
        self.server_state.default_headers = [(b"date", b"now")]
        self.protocol = Http2Protocol(config, self.server_state, {}, self.clock)  # type: ignore[arg-type]
        self.transport = Transport()
        self.transport.set_protocol(self.protocol)
        self.protocol.connection_made(self.transport)
        self.client = ClientState()
        self.answers: dict[int, Answer] = {}
        self.goaway: ConnectionTerminated | None = None
        self.opens_windows = True

    # Sending

    def begin(
        self,
        path: bytes,
        headers: Iterable[tuple[bytes, bytes]] = (),
        *,
        method: bytes = b"GET",
        body: bytes | None = None,
        ends: bool = True,
        priority: int | None = None,
    ) -> int:
        """Queue a request, and return its stream."""
        stream_id = self.client.get_next_available_stream_id()
        self.answers[stream_id] = Answer()
        fields = [
            (b":method", method),
            (b":scheme", b"http"),
            (b":authority", b"localhost"),
            (b":path", path),
            *headers,
        ]
        self.client.send_headers(
            stream_id, fields, end_stream=ends and body is None, priority_weight=priority
        )
        if body is not None:
            self.client.send_data(stream_id, body, end_stream=ends)
        return stream_id

    def send(self, *frames: Frame) -> None:
        """Deliver what is queued, and then frames as they are."""
        data = self.client.data_to_send() + b"".join(frame.serialize() for frame in frames)
        if data and not self.transport.closed:
            self.protocol.data_received(data)

    # Receiving

    def read(self) -> list[Event]:
        """Parse what the server has written."""
        data, self.transport.buffer = bytes(self.transport.buffer), bytearray()
        events = self.client.receive_data(data) if data else []
        for event in events:
            self._note(event)
        return events

    async def exchange(self, count: int = 20) -> None:
        """Deliver and read until nothing more happens."""
        while True:
            self.send()
            await turns(count)
            if not self.transport.reads or not self.read():
                return

    async def ask(self, path: bytes, headers: Any = (), **how: Any) -> Answer:
        """Send a request, and return its answer as far as it has arrived."""
        stream_id = self.begin(path, headers, **how)
        await self.exchange()
        return self.answers[stream_id]

    def _note(self, event: Any) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaway = event
        elif isinstance(event, STREAM_EVENTS):
            self.answers[event.stream_id].note(event)
            if isinstance(event, DataReceived) and self.opens_windows:
                self.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    @property
    def error(self) -> int | None:
        """The code of the server's GOAWAY."""
        return None if self.goaway is None else self.goaway.error_code

    @property
    def open_count(self) -> int:
        """Number of streams that the server still processes."""
        return len(self.protocol._streams)


class App:
    """An ASGI application whose paths name what it does."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.received: list[Any] = []
        self.more = asyncio.Event()
        self.running = 0
        self.running_max = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        self.running += 1
        self.running_max = max(self.running, self.running_max)
        try:
            await getattr(self, scope["path"].strip("/") or "empty")(scope, receive, send)
        finally:
            self.running -= 1

    async def empty(self, scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"")

    async def echo(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            self.received.append(message)
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        await respond(send, body)

    async def wait(self, scope: Any, receive: Any, send: Any) -> None:
        await self.more.wait()
        await respond(send, b"waited")

    async def watch(self, scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] != "http.disconnect":
            self.received.append(message)
        self.received.append(message)

    async def big(self, scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"x" * int(scope["query_string"]))

    async def unlimited(self, scope: Any, receive: Any, send: Any) -> None:
        """Stream until nobody reads."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not self.more.is_set():
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": b"x" * 1_000, "more_body": True})

    async def refuse(self, scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"no", status=413)

    async def nothing(self, scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"", status=204, headers=[])

    async def connects(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"Connection", b"close"), (b"Transfer-Encoding", b"chunked"), (b"X-Own", b"1")]
        await respond(send, b"one", headers=headers)

    async def fail(self, scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("failed on purpose")

    async def fail_late(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        raise RuntimeError("failed on purpose")

    async def short(self, scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"abc", headers=[(b"content-length", b"4")])


async def respond(
    send: Any, body: bytes, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a response, with its length unless other headers are given."""
    sized = [(b"content-length", b"%d" % len(body))] if headers is None else headers
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": body})
