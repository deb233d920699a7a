"""Errors of the hot store's client when a connection ends, on the production event loop."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from urllib.parse import urlsplit

import pytest
import uvloop
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError

from storage.redis.transport.client import make_connection, open_client, open_pool
from storage.redis.transport.connection_lane import packed
from tests.chaos.proxy import Fault, Proxy
from tests.conditions import eventually

MORE_THAN_SOCKETS_HOLD = 1 << 25


def on_uvloop(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def ended(connection: AbstractConnection) -> None:
    """Close the transport, as after a reset that redis-py has not noticed yet."""
    assert connection._writer is not None
    connection._writer.transport.abort()
    await asyncio.sleep(0)


async def connections_of(client: Redis) -> int:
    return len(await client.client_list())


def test_unix_socket_connection_has_larger_write_buffer(valkey_url):
    """A larger flush waited for the event loop repeatedly, and the store for the flush."""

    async def work() -> None:
        connection = make_connection(open_pool(valkey_url))
        await connection.connect()
        assert connection._writer is not None
        connected = connection._writer.get_extra_info("socket")
        with socket.socket(socket.AF_UNIX) as any_other:
            room, usual = (
                one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
                for one in (connected, any_other)
            )
        await connection.disconnect(nowait=True)

        assert room > usual

    on_uvloop(work)


def test_write_to_reset_connection_reports_loss(redis_url):
    """The error was a RuntimeError: callers got 500 instead of 503 or 504."""

    async def work() -> None:
        connection = make_connection(open_pool(redis_url))
        await connection.connect()
        await ended(connection)

        with pytest.raises(ConnectionError):
            await connection.send_packed_command([b"PING"], check_health=False)

    on_uvloop(work)


def test_client_with_reset_connection_fails_once_and_recovers(redis_url, monkeypatch):
    """The error was a RuntimeError, which ended the memory guard for the lifetime of the process."""

    async def work() -> None:
        async with open_client(redis_url) as client:
            await client.ping()
            connection = client.connection_pool._available_connections[0]
            send, times = connection._send_packed_command, iter((True,))

            async def reset_and_send(command: Iterable[bytes]) -> None:
                """Reset a connection after the pool has checked it, and send on it."""
                if next(times, False):
                    await ended(connection)
                await send(command)

            monkeypatch.setattr(connection, "_send_packed_command", reset_and_send)
            with pytest.raises(ConnectionError):
                await client.ping()

            assert await client.ping()

    on_uvloop(work)


async def test_abandoned_write_is_not_sent_to_hung_store_later(valkey_url):
    """The rest of a flush stayed buffered with its socket, and was executed later."""
    socket = urlsplit(valkey_url).path
    async with (
        open_client(valkey_url) as client,
        Proxy(lambda: asyncio.open_unix_connection(socket), Random(1)) as proxy,
    ):
        connection = make_connection(open_pool(f"redis://127.0.0.1:{proxy.port}"))
        await connection.connect()
        assert connection._writer is not None
        ours = connection._writer.transport.get_extra_info("socket")
        before = await connections_of(client)
        proxy.be(Fault.STALLED)
        command = packed([(b"SET", b"given up", b"x" * MORE_THAN_SOCKETS_HOLD)])

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await connection.send_packed_command(command, check_health=False)
        await asyncio.sleep(0)

        assert ours.fileno() == -1
        proxy.be(Fault.NONE)
        await eventually(lambda: connections_of(client), before - 1)
        assert not await client.exists("given up")


async def test_connections_have_client_library_name(valkey_url):
    connection = make_connection(open_pool(valkey_url))
    await connection.connect()

    async with open_client(valkey_url) as client:
        client_list = await client.client_list()
    await connection.disconnect()

    ours = [
        one
        for one in client_list
        if re.fullmatch(r"redis-py\(millstream_v[\d.]+\)", one["lib-name"])
    ]
    assert len(ours) >= 2
