"""A TCP proxy that injects faults, in front of a store.

    CUT         links are reset, new ones too
    HALF_OPEN   nothing is delivered in either direction, without an error; links that lost data are reset when
                the fault ends
    STALLED     nothing is delivered during the fault, and everything afterwards, as after retransmissions
    LOST_REPLY  a request is delivered, its response is dropped and the link reset, for a share of the responses
    SLOW        each piece is delayed by the latency and by the bandwidth

Randomness comes from the given `Random`.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from random import Random
from types import TracebackType
from typing import Self

import msgspec

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PIECE_BYTES = 16_384


class Fault(StrEnum):
    NONE = "none"
    CUT = "cut"
    HALF_OPEN = "half_open"
    STALLED = "stalled"
    LOST_REPLY = "lost_reply"
    SLOW = "slow"


class Slowness(msgspec.Struct, frozen=True):
    """Parameters of SLOW, and the share of responses that LOST_REPLY loses."""

    latency_s: float = 0.05
    bytes_per_second: int = 256_000
    lost_share: float = 0.3


class _Link:
    """A client's connection and its upstream connection."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near = near
        self.far = far
        peer = near.get_extra_info("peername")
        self.source = peer[0] if peer else ""
        self.swallowed = False
        self.was_reset = asyncio.Event()

    def reset(self) -> None:
        """Reset both sides with RST, not an orderly close."""
        self.was_reset.set()
        for side in (self.near, self.far):
            _reset(side)


class Proxy:
    """Listen on a free loopback port; `connect` opens an upstream connection.

    `listener`: a bound socket to listen on instead, which may be in another network namespace.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Streams]],
        chance: Random,
        slowness: Slowness | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self._listener = listener
        self.counted: Counter[str] = Counter()
        self._connect = connect
        self._chance = chance
        self._slowness = slowness or Slowness()
        self._fault = Fault.NONE
        self._of_sources: dict[str, Fault] = {}
        self._flows = asyncio.Event()
        self._flows.set()
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        if self._listener is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        else:
            self._server = await asyncio.start_server(self._serve, sock=self._listener)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.be(Fault.CUT)  # so that each link ends by itself
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        """The listening port."""
        return int(self._address()[1])

    @property
    def address(self) -> str:
        """Host and port of the listener."""
        host, port = self._address()
        return f"{host}:{port}"

    def _address(self) -> tuple[str, int]:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return host, port

    @property
    def fault(self) -> Fault:
        """The current fault."""
        return self._fault

    def be(self, fault: Fault, source: str = "") -> None:
        """Apply this fault to every link, or to those from one address; Fault.NONE ends it."""
        if source:
            self._of_sources[source] = fault
        else:
            self._be_to_all(fault)
        for link in list(self._links):
            now = self._fault_of(link)
            if now is Fault.CUT or (link.swallowed and now is not Fault.HALF_OPEN):
                self._reset(link)

    def _fault_of(self, link: _Link) -> Fault:
        own = self._of_sources.get(link.source, Fault.NONE)
        return self._fault if own is Fault.NONE else own

    def _be_to_all(self, fault: Fault) -> None:
        self._fault = fault
        if fault is Fault.STALLED:
            self._flows.clear()
        else:
            self._flows.set()

    def _reset(self, link: _Link) -> None:
        self.counted["links_reset"] += 1
        self._links.discard(link)
        link.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._carry(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._fault is Fault.CUT:
            self.counted["links_refused"] += 1
            _reset(writer)
            return
        try:
            far_reader, far_writer = await self._connect()
        except OSError:  # no upstream
            _reset(writer)
            return
        link = _Link(writer, far_writer)
        self._links.add(link)
        self.counted["links"] += 1
        pumps = [
            asyncio.create_task(self._pump(link, reader, far_writer, answers=False)),
            asyncio.create_task(self._pump(link, far_reader, writer, answers=True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links.discard(link)
            far_writer.close()

    async def _pump(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answers: bool,
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if await self._lets_pass(link, len(piece), answers=answers):
                    writer.write(piece)
                    await writer.drain()
            if link.swallowed or self._fault_of(link) is Fault.HALF_OPEN:
                link.swallowed = True  # the end is not delivered either
                await link.was_reset.wait()

    async def _lets_pass(self, link: _Link, size: int, *, answers: bool) -> bool:
        """Return whether to forward these bytes, possibly after a delay."""
        await self._flows.wait()
        fault = self._fault_of(link)
        if link.swallowed or fault is Fault.HALF_OPEN:
            link.swallowed = True
            self.counted["bytes_swallowed"] += size
            return False
        if fault is Fault.LOST_REPLY and answers and self._loses():
            self.counted["replies_lost"] += 1
            self._reset(link)
            return False
        if fault is Fault.SLOW:
            wait_s = self._slowness.latency_s + size / self._slowness.bytes_per_second
            await asyncio.sleep(wait_s)
        return True

    def _loses(self) -> bool:
        return self._chance.random() < self._slowness.lost_share


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, by zero linger time."""
    end = writer.get_extra_info("socket")
    if end is not None and end.family != socket.AF_UNIX:
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
