"""A webhook receiver: a real HTTP server that records requests and responds as configured."""

import asyncio
import socket
import ssl
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import msgspec

from tests.conditions import PATIENCE_S


class ReceivedRequest(msgspec.Struct, frozen=True):
    """A request; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        """Its webhook-id."""
        return self.headers["webhook-id"]


async def read_request(reader: asyncio.StreamReader) -> ReceivedRequest:
    """Read the next request; raises IncompleteReadError at the end of the connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(head[0].split()[1], headers, body)


Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Handle a connection that has sent a request; it may close the connection."""


def respond_with(status: int = 204, body: bytes = b"", **headers: str) -> Behaviour:
    """Respond; underscores in header names become hyphens."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return respond


async def hang(writer: asyncio.StreamWriter) -> None:
    """Never respond."""
    await asyncio.sleep(3600)


async def respond_slowly(writer: asyncio.StreamWriter) -> None:
    """Respond byte by byte, each within the timeout."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.02)


async def reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def close(writer: asyncio.StreamWriter) -> None:
    """Close the connection without a response."""
    writer.close()


async def respond_with_garbage(writer: asyncio.StreamWriter) -> None:
    """Send something that is not HTTP."""
    writer.write(b"\x00\x01 what?\r\n\r\n")
    writer.close()


async def respond_endlessly(writer: asyncio.StreamWriter) -> None:
    """Respond with an endless body."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
    with suppress(ConnectionError):
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()


async def hang_in_body(writer: asyncio.StreamWriter) -> None:
    """Respond with a body that never completes."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab")
    await asyncio.sleep(3600)


class Connections(ABC):
    """A server whose subclass answers each request."""

    def __init__(self) -> None:
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def respond_to(self, request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        """Answer a request."""

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                await self.respond_to(await read_request(reader), writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def end(self) -> None:
        """Close every connection."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Receiver(Connections):
    """Apply `behaviours` in order, and then the `usual` one."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ReceivedRequest] = []
        self.behaviours: list[Behaviour] = []
        self.default_behaviour: Behaviour = respond_with()
        self.busy = 0
        self.busy_max = 0
        self.changed = asyncio.Condition()

    @property
    def url(self) -> str:
        """The URL of the receiver."""
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def bodies(self) -> list[bytes]:
        """Received bodies."""
        return [request.body for request in self.requests]

    async def until(self, count: int, within_s: float = PATIENCE_S) -> list[ReceivedRequest]:
        """Wait for this many requests."""
        async with asyncio.timeout(within_s), self.changed:
            await self.changed.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def respond_to(self, request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        """Apply the next behaviour."""
        respond = self.behaviours.pop(0) if self.behaviours else self.default_behaviour
        self.busy += 1
        self.busy_max = max(self.busy_max, self.busy)
        try:
            self.requests.append(request)
            async with self.changed:
                self.changed.notify_all()
            await respond(writer)
        finally:
            self.busy -= 1


@asynccontextmanager
async def running_listener(
    connections: Connections,
    tls: ssl.SSLContext | None = None,
    port: int = 0,
    host: str = "127.0.0.1",
) -> AsyncGenerator[None]:
    """Serve on this event loop, at `connections.port`."""
    server = await asyncio.start_server(connections.serve, host, port, ssl=tls)
    connections.port = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        server.close()
        await connections.end()


@asynccontextmanager
async def running_receiver(
    tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncGenerator[Receiver]:
    """Run a receiver on this event loop."""
    receiver = Receiver()
    async with running_listener(receiver, tls, port):
        yield receiver


@contextmanager
def receiver_in_thread() -> Iterator[Receiver]:
    """Run a receiver in its own thread, for tests that wait for processes."""
    ready, started = threading.Event(), list[tuple[Receiver, asyncio.AbstractEventLoop]]()
    over: list[asyncio.Event] = []

    async def serve() -> None:
        async with running_receiver() as receiver:
            over.append(asyncio.Event())
            started.append((receiver, asyncio.get_running_loop()))
            ready.set()
            await over[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait(PATIENCE_S)
    receiver, loop = started[0]
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(over[0].set)
        thread.join(10)
