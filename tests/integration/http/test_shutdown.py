"""Requests that outlast the grace period of a server that ends, as while the stores are away."""

import asyncio
import itertools
import logging
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from api.websocket.frames import Close
from api.websocket.session_registry import Sessions
from storage.bootstrap import Storage
from storage.domain.limits import Limits
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamSpec
from tests.http2_client import http2
from tests.websocket_client import Server, running_server

pytestmark = pytest.mark.one_store

SHARDS = "/v1/streams/clicks/shards"


@pytest.fixture
async def hanging(storage, monkeypatch) -> asyncio.Semaphore:
    """Let a read and a change hang; released by each that began."""
    await storage.catalog.put_stream(StreamName("clicks"), StreamSpec(shards=1))
    began = asyncio.Semaphore(0)

    async def hang(*_: object, **__: object) -> None:
        began.release()
        await asyncio.Event().wait()

    monkeypatch.setattr(storage.record_reader, "shards", hang)
    monkeypatch.setattr(storage.catalog, "put_queue", hang)
    return began


@asynccontextmanager
async def server_without_exceptions(storage: Storage) -> AsyncGenerator[Server]:
    """Run a server with a short grace period, whose log has no exception."""
    records: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        records.append(record)
        return True

    log = logging.getLogger("uvicorn.error")
    async with running_server(storage, Limits(), grace_s=1) as server:
        log.addFilter(keep)
        yield server
    log.removeFilter(keep)
    assert [record for record in records if record.exc_info] == []


async def test_request_that_outlasts_the_grace_period_is_no_internal_error(storage, hanging):
    """A read was answered 500, and so was a change, which may have taken effect."""
    async with (
        server_without_exceptions(storage) as server,
        httpx.AsyncClient(base_url=server.url, timeout=20) as client,
    ):
        requests = [
            asyncio.create_task(client.get(SHARDS)),
            asyncio.create_task(client.put("/v1/queues/orders", json={})),
        ]
        for _ in requests:
            await hanging.acquire()
        server.stop()
        read, change = await asyncio.gather(*requests)

    assert (read.status_code, read.json()["code"]) == (503, "storage_busy")
    assert (change.status_code, change.json()["code"]) == (504, "storage_timeout")


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_change_of_departed_client_that_outlasts_the_grace_period_logs_no_exception(
    storage, hanging, reset
):
    """A reset connection is known to be lost; the response to a closed one is not read by anybody."""
    async with server_without_exceptions(storage) as server:
        url = httpx.URL(server.url)
        with socket.create_connection((url.host, url.port)) as client:
            client.sendall(
                b"PUT /v1/queues/orders HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
            )
            await hanging.acquire()
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.stop()


async def test_stream_that_outlasts_the_grace_period_is_no_internal_error(storage, hanging):
    async with server_without_exceptions(storage) as server:
        with http2(server.url) as connection:
            read = connection.begin(b"GET", SHARDS.encode())
            connection.flush()
            await hanging.acquire()
            server.stop()
            await asyncio.to_thread(connection.until_closed)
            status = connection.answers[read].status

    assert status == 503


async def test_socket_that_outlasts_the_grace_period_logs_no_exception(storage, monkeypatch):
    end = Sessions.end
    calls = itertools.count()

    async def hang_once(*arguments: Any, **options: Any) -> None:
        if next(calls) == 0:
            await asyncio.Event().wait()
        await end(*arguments, **options)

    monkeypatch.setattr(Sessions, "end", hang_once)
    async with server_without_exceptions(storage) as server, server.socket() as socket:
        server.stop()
        code = await socket.close_code()

    assert code == Close.RESTART
