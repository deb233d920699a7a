"""What the proxy of the chaos runs does to a link, in front of a server that echoes."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from tests.chaos.proxy import Fault, Proxy, Slowness

SOON_S = 5.0
A_WHILE_S = 0.1
LINKED: list[asyncio.StreamWriter] = []
"""The clients' ends, to be closed."""


class Echo:
    """Answers with what it is told, and remembers it."""

    def __init__(self) -> None:
        self.heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(1000):
            self.heard += said
            writer.write(said)
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
    """A client's link through the proxy."""

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


async def test_a_whole_proxy_carries_both_ways(proxy):
    link = await linked(proxy)

    assert [await link.ask(b"one"), await link.ask(b"two")] == [b"one", b"two"]
    assert proxy.fault is Fault.NONE


async def test_a_cut_resets_what_is_there_and_what_comes(proxy):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.CUT)

    with pytest.raises(ConnectionResetError):
        await link.ask(b"two")
    with pytest.raises(ConnectionResetError):
        await (await linked(proxy)).ask(b"three")
    proxy.be(Fault.NONE)
    assert await (await linked(proxy)).ask(b"four") == b"four"


async def test_a_half_open_link_swallows_and_is_reset_afterwards(proxy, echo):
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


async def test_a_link_that_was_silent_while_half_open_goes_on(proxy):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.HALF_OPEN)
    proxy.be(Fault.NONE)

    assert await link.ask(b"two") == b"two"


async def test_what_was_stalled_arrives_late(proxy, echo):
    link = await linked(proxy)
    await link.ask(b"one")

    proxy.be(Fault.STALLED)
    link.writer.write(b"two")
    assert await link.hears_nothing()
    assert echo.heard == b"one"
    proxy.be(Fault.NONE)

    assert await link.ask(b"") == b"two"


async def test_a_lost_reply_was_delivered(proxy, echo):
    link = await linked(proxy)

    proxy.be(Fault.LOST_REPLY)

    with pytest.raises(ConnectionResetError):
        await link.ask(b"one")
    assert echo.heard == b"one"
    assert proxy.counted["replies_lost"] == 1


async def test_a_slow_link_takes_its_time(proxy):
    link = await linked(proxy)
    proxy.be(Fault.SLOW)
    clock = asyncio.get_running_loop().time
    began = clock()

    assert await link.ask(b"x" * 100) == b"x" * 100

    assert clock() - began >= 2 * (0.05 + 0.1)


async def test_nothing_behind_it_is_a_reset():
    async def refused() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise ConnectionRefusedError

    async with Proxy(refused, Random(1)) as proxy:
        link = await linked(proxy)
        with pytest.raises(ConnectionResetError):
            await link.ask(b"one")
        link.writer.close()
