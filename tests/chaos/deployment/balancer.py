"""TCP load balancer of the API machines, with `/readyz` as its health check.

New connections go to the ready machines in turn, to any if none is ready. A machine that answers nothing loses its connections.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random
from weakref import WeakSet

import httpx

from tests.chaos.proxy import Proxy, Streams

CHECK_S = 0.5
ANSWER_S = 2.0
CONNECT_S = 1.0
FALL = 2
"""Checks without an answer after which a machine counts as gone."""
READY_PATH = "/readyz"


class Balancer:
    """Health and connections of the machines, by host and port."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._ready = set(addresses)
        self._silent: dict[str, int] = defaultdict(int)
        self._open: dict[str, WeakSet[asyncio.StreamWriter]] = defaultdict(WeakSet)
        self._turn = count()

    async def connect(self) -> Streams:
        """Connect to a machine. Raises OSError."""
        turn = next(self._turn)
        ready = [address for address in self._addresses if address in self._ready]
        others = [address for address in self._addresses if address not in self._ready]
        for address in (*_rotated(ready, turn), *_rotated(others, turn)):
            with suppress(OSError, TimeoutError):
                return await self._connect_to(address)
        raise ConnectionError("no machine accepts connections")

    async def _connect_to(self, address: str) -> Streams:
        host, _, port = address.partition(":")
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(host, int(port))
        self._open[address].add(writer)
        return reader, writer

    async def watch(self) -> None:
        """Check the machines until cancelled."""
        async with asyncio.TaskGroup() as group:
            for address in self._addresses:
                group.create_task(self._watch(address))

    async def _watch(self, address: str) -> None:
        while True:
            await self._check(address)
            await asyncio.sleep(CHECK_S)

    async def _check(self, address: str) -> None:
        status = await ready_status(address)
        self._silent[address] = 0 if status else self._silent[address] + 1
        if status == httpx.codes.OK:
            self._ready.add(address)
        elif status or self._silent[address] >= FALL:
            self._ready.discard(address)
        if self._silent[address] >= FALL:
            for writer in list(self._open[address]):
                writer.transport.abort()


async def ready_status(address: str) -> int:
    """Return the status of a machine's readiness, 0 without a response."""
    try:
        async with httpx.AsyncClient(timeout=ANSWER_S, trust_env=False) as http:
            return (await http.get(f"http://{address}{READY_PATH}")).status_code
    except httpx.HTTPError:
        return 0


def _rotated(addresses: list[str], turn: int) -> list[str]:
    at = turn % len(addresses) if addresses else 0
    return addresses[at:] + addresses[:at]


@asynccontextmanager
async def running_balancer(addresses: Sequence[str], seed: int) -> AsyncGenerator[Proxy]:
    """Run a load balancer on this machine."""
    balancer = Balancer(addresses)
    watching = asyncio.create_task(balancer.watch())
    try:
        async with Proxy(balancer.connect, Random(f"{seed} clients")) as proxy:
            yield proxy
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
