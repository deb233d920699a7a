"""The faults that the chaos proxy injects, in front of an echo server."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from tests.chaos.proxy import Fault, Proxy, Slowness

SOON_S = 5.0
A_WHILE_S = 0.1
LINKED: list[asyncio.StreamWriter] = []
"""Client ends, closed by the fixture."""


class Echo:
    """Echo and record what is received."""

    def __init__(self) -> None:
        self.heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while read := await reader.read(1000):
            self.heard += read
            writer.write(read)
        writer.close()


@pytest.fixture
async def echo() -> Echo:
    return Echo()


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    slowness = Slowness(latency_s=0.05, bytes_per_second=1000, lost_share=1.0)
    async with Proxy(
        lambda: asyncio.open_connection("127.0.0.1", port), Random(1), slowness
    ) as proxy:
        yield proxy
    server.close()
    for writer in LINKED:
        writer.close()
    LINKED.clear()


class Link:
    """A client connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, said: bytes) -> bytes:
        self.writer.write(said)
        return await asyncio.wait_for(self.reader.read(1000), SOON_S)

    async def hears_nothing(self) -> bool:
        try:
            await asyncio.wait_for(self.reader.read(1000), A_WHILE_S)
        except TimeoutError:
            return True
        return False


async def linked(proxy: Proxy) -> Link:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    LINKED.append(writer)
    return Link(reader, writer)


async def test_proxy_without_fault_forwards_both_ways(proxy):
    link = await linked(proxy)

    assert [await link.ask(b"one"), await link.ask(b"two")] == [b"one", b"two"]
    assert proxy.fault is Fault.NONE


async def test_cut_resets_existing_and_new_connections(proxy):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.CUT)

    with pytest.raises(ConnectionResetError):
        await link.ask(b"two")
    with pytest.raises(ConnectionResetError):
        await (await linked(proxy)).ask(b"three")
    proxy.be(Fault.NONE)
    assert await (await linked(proxy)).ask(b"four") == b"four"


async def test_half_open_link_discards_data_and_is_reset_later(proxy, echo):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.HALF_OPEN)
    link.writer.write(b"two")
    assert await link.hears_nothing()
    proxy.be(Fault.NONE)

    with pytest.raises(ConnectionResetError):
        await link.ask(b"three")
    assert echo.heard == b"one"
    assert proxy.counted["bytes_swallowed"] == 3


async def test_idle_link_survives_half_open_fault(proxy):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.HALF_OPEN)
    proxy.be(Fault.NONE)

    assert await link.ask(b"two") == b"two"


async def test_stalled_data_arrives_late(proxy, echo):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.STALLED)
    link.writer.write(b"two")
    assert await link.hears_nothing()
    assert echo.heard == b"one"
    proxy.be(Fault.NONE)

    assert await link.ask(b"") == b"two"


async def test_request_is_delivered_when_reply_is_lost(proxy, echo):
    link = await linked(proxy)

    proxy.be(Fault.LOST_REPLY)

    with pytest.raises(ConnectionResetError):
        await link.ask(b"one")
    assert echo.heard == b"one"
    assert proxy.counted["replies_lost"] == 1


async def test_slow_link_delays_data(proxy):
    link = await linked(proxy)
    proxy.be(Fault.SLOW)
    clock = asyncio.get_running_loop().time
    began = clock()

    assert await link.ask(b"x" * 100) == b"x" * 100

    assert clock() - began >= 2 * (0.05 + 0.1)


async def test_connection_is_reset_when_upstream_refuses():
    async def refused() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise ConnectionRefusedError

    async with Proxy(refused, Random(1)) as proxy:
        link = await linked(proxy)
        with pytest.raises(ConnectionResetError):
            await link.ask(b"one")
        link.writer.close()
