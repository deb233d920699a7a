"""The WebSocket protocol class: how connections end when the server does."""

import asyncio
import logging
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from api.websocket.uvicorn_protocol import DRAIN, PushProtocol
from tests.conditions import PATIENCE_S

UPGRADE = (
    b"GET /v1/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Transport(asyncio.Transport):
    """A connection that records what is written, and is lost after it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.protocol: PushProtocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class Application:
    """A socket application that accepts the upgrade when it is let."""

    def __init__(self) -> None:
        self.admits = asyncio.Event()
        self.received: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.admits.wait()
        await receive()
        await send({"type": "websocket.accept"})
        self.received.append((await receive())["type"])


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
async def transport(application: Application) -> Transport:
    config = Config(application, log_config=None, interface="asgi3")
    config.load()
    transport = Transport()
    transport.protocol = PushProtocol(config, ServerState(), {})
    transport.protocol.connection_made(transport)
    transport.protocol.data_received(UPGRADE)
    return transport


async def finished(transport: Transport) -> None:
    """Wait until the application has returned."""
    await asyncio.wait_for(asyncio.gather(*transport.protocol.tasks), PATIENCE_S)


async def test_shutdown_drains_accepted_socket(transport, application):
    application.admits.set()
    await asyncio.sleep(0.01)

    transport.protocol.shutdown()
    await finished(transport)

    assert transport.written.startswith(b"HTTP/1.1 101 ")
    assert application.received == [DRAIN]


@pytest.mark.parametrize("is_lost", [False, True])
async def test_shutdown_refuses_upgrade_that_was_not_accepted(
    transport, application, caplog, is_lost
):
    transport.protocol.shutdown()
    if is_lost:
        await asyncio.sleep(0.01)
    application.admits.set()
    await finished(transport)

    assert transport.written.startswith(b"HTTP/1.1 503 ")
    assert transport.written.count(b"HTTP/1.1") == 1
    assert transport.closed
    assert all(record.levelno < logging.WARNING for record in caplog.records)
