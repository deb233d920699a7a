"""A client of `millstream.v1` that sends what a test specifies, and a server for it."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import count
from typing import Any

import msgspec
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from api.app import create_app
from api.config.settings import Settings
from api.server.uvicorn_server import WokenServer
from api.websocket.frames import JSON_PROTOCOL, MSGPACK_PROTOCOL
from storage.bootstrap import Storage
from storage.domain.limits import Limits
from tests.conditions import PATIENCE_S

Frame = dict[str, Any]


class Socket:
    """A connection; frames that were not awaited yet are kept in order."""

    def __init__(self, connection: ClientConnection, *, packed: bool = False) -> None:
        self.connection = connection
        self.packed = packed
        self.pending: list[Frame] = []
        self.welcome: Frame = {}
        self._ids = count(1)

    async def send_frame(self, type_: str, **fields: Any) -> None:
        """Send a frame."""
        frame = {"type": type_, **fields}
        if self.packed:
            await self.connection.send(msgspec.msgpack.encode(frame))
        else:
            await self.connection.send(json.dumps(frame))

    async def hello(self, **fields: Any) -> Frame:
        """Send `hello`, and return the welcome."""
        await self.send_frame("hello", **fields)
        self.welcome = await self.receive_frame("welcome")
        return self.welcome

    async def request(self, type_: str, **fields: Any) -> Frame:
        """Send a frame with an id, and return its answer."""
        id_ = f"r{next(self._ids)}"
        await self.send_frame(type_, id=id_, **fields)
        return await self.receive_frame("ok", "reply", "error", id=id_)

    async def subscribe(self, sub: str, source: str, **fields: Any) -> Frame:
        """Subscribe."""
        reply = await self.request("subscribe", sub=sub, source=source, **fields)
        assert reply["type"] == "ok", reply
        return reply

    async def receive_frame(self, *types: str, **fields: Any) -> Frame:
        """Return the next frame of one of these types with these fields."""
        for frame in self.pending:
            if _is(frame, types, fields):
                self.pending.remove(frame)
                return frame
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.next()
                if _is(frame, types, fields):
                    return frame
                self.pending.append(frame)

    async def next(self) -> Frame:
        """Return the next frame of any type."""
        payload = await self.connection.recv()
        if isinstance(payload, bytes):
            return dict(msgspec.msgpack.decode(payload))
        return dict(json.loads(payload))

    async def expect_nothing(self, *types: str, seconds: float = 0.3) -> None:
        """Check that no frame of these types arrives for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                frame = await self.receive_frame(*types)
                raise AssertionError(f"heard {frame}")

    async def messages(self, number: int) -> list[Frame]:
        """Return at least this many messages of a queue."""
        items: list[Frame] = []
        while len(items) < number:
            items += (await self.receive_frame("messages"))["messages"]
        return items

    async def records(self, number: int, **fields: Any) -> list[Frame]:
        """Return at least this many records of a stream."""
        items: list[Frame] = []
        while len(items) < number:
            items += (await self.receive_frame("records", **fields))["records"]
        return items

    async def close_code(self) -> int:
        """Return the code with which the server closes."""
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionClosed):
                while True:
                    self.pending.append(await self.next())
        assert self.connection.close_code is not None
        return self.connection.close_code

    def cut(self) -> None:
        """Abort the connection."""
        self.connection.transport.abort()


def _is(frame: Frame, types: tuple[str, ...], fields: Frame) -> bool:
    return frame["type"] in types and all(frame.get(name) == it for name, it in fields.items())


class Server:
    """A service in this process: its URL, and a way to stop it as a supervisor would."""

    def __init__(self, url: str, server: "_PromptServer") -> None:
        self.url = url
        self._server = server

    @asynccontextmanager
    async def socket(self, *, packed: bool = False, greet: bool = True) -> AsyncGenerator[Socket]:
        """Open a connection."""
        name = MSGPACK_PROTOCOL if packed else JSON_PROTOCOL
        address = self.url.replace("http", "ws") + "/v1/ws"
        async with connect(
            address,
            subprotocols=[Subprotocol(name)],
            compression=None,
            max_size=None,
            max_queue=None,
        ) as connection:
            socket = Socket(connection, packed=packed)
            if greet:
                await socket.hello()
            yield socket

    def stop(self) -> None:
        """Stop, as on SIGTERM."""
        self._server.stop()


class _PromptServer(WokenServer):
    """Server that ends at once if it has no connection: uvicorn pauses for a tenth of a second in each case."""

    def stop(self) -> None:
        """Ask the server to end."""
        self.handle_exit(signal.SIGTERM, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()
        await self.lifespan.shutdown()


@asynccontextmanager
async def running_server(
    storage: Storage, limits: Limits, settings: Settings | None = None, *, grace_s: int = 5
) -> AsyncGenerator[Server]:
    """Serve this storage on a free port; requests have `grace_s` to end once it is stopped."""
    config = uvicorn.Config(
        create_app(settings or Settings(), storage, limits),
        port=0,
        http="api.server.protocol_negotiator:ProtocolNegotiator",
        ws="api.websocket.uvicorn_protocol:PushProtocol",
        ws_per_message_deflate=False,
        lifespan="on",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace_s,
    )
    server = _PromptServer(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not task.done(), "the server did not start"
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Server(f"http://127.0.0.1:{port}", server)
    finally:
        server.stop()
        await task
