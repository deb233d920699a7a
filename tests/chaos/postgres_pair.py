"""Postgres with a synchronous standby, and its fail-over as a fault.

    DATABASE_URL ──▶ proxy 1 ──▶ Postgres 1, the primary
    of two hosts  └▶ proxy 2 ──▶ Postgres 2, its standby

A commit is acknowledged once the standby has it on disk. With a network each is a machine of its own, and the standby reaches
the primary as everyone else does. The primary's machine is lost, the standby is promoted, and another
standby takes the place of the lost machine, so that it can happen again.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic

import httpx
import psycopg

from storage.embedded.errors import EmbeddedServerError
from storage.embedded.postgres import POSTGRES_PORT, PostgresServer
from storage.embedded.processes import last_line
from tests.chaos.network import Network
from tests.chaos.proxy import Fault, Proxy, Streams
from tests.chaos.site import Store, postgres_socket

ANSWER_S_MAX = 30.0
INSYNC_S_MAX = 30.0
POLL_S = 0.05
RETRY_MS = 500
"""Interval at which a standby tries to connect to its primary."""
SILENT_SHARE = 0.5
"""Probability that a lost machine answers nothing, instead of refusing connections."""
QUIET_SHARE = 0.5
"""Probability that no definition changes right before."""
ANNOUNCED_S = 1.0
_INSYNC = "select count(*) from pg_stat_replication where sync_state = 'sync'"


def postgres_machine(number: int) -> str:
    """Return the name of a node's machine."""
    return f"postgres {number}"


class StandbyServer(PostgresServer):
    """A Postgres that begins as a copy of `primary`, if it has no data."""

    primary: "StandbyServer | None" = None
    primary_address = ""
    """Host and port of the primary, if it is not reached through its socket."""

    def command(self) -> list[str]:
        if not self.primary_address:
            return super().command()
        host, _, port = self.primary_address.partition(":")
        settings = (
            f"primary_conninfo=host={host} port={port} user=postgres sslmode=disable",
            f"wal_retrieve_retry_interval={RETRY_MS}",
        )
        return [*super().command(), *(word for one in settings for word in ("-c", one))]

    def prepare(self) -> None:
        if self.primary is not None and not self.directory.exists():
            self._copy(self.primary)
        super().prepare()

    def _copy(self, primary: "StandbyServer") -> None:
        source = f"host={primary.sockets} port={POSTGRES_PORT} user=postgres"
        new = self.directory.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700, parents=True)
        self.call("pg_basebackup", "-D", str(new), "-d", source, "-X", "stream", "-c", "fast", "-R")
        new.rename(self.directory)

    @property
    def sockets(self) -> Path:
        """The directory of its socket."""
        return postgres_socket(self).parent

    def call(self, program: str, *arguments: str) -> None:
        """Run one of Postgres's programs as its user."""
        done = self._run(program, *arguments)
        if done.returncode != 0:
            raise EmbeddedServerError(f"{program} failed: {last_line(done.stderr)}")

    def promote(self) -> None:
        """Make it the primary, and wait until it is."""
        self.call("pg_ctl", "promote", "-D", str(self.directory), "-w")

    async def execute(self, statement: str) -> int:
        """Execute a statement past its proxy; return the number it selects, if any."""
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = await connection.execute(statement.encode())
            row = await cursor.fetchone() if cursor.description else None
            return int(row[0]) if row else 0


class Node:
    """A machine with a Postgres, and its proxy."""

    def __init__(self, place: Path, number: int, seed: int, network: Network | None = None) -> None:
        self.name = postgres_machine(number)
        self._network = network
        machine = network.machine(self.name) if network else None
        self.server = StandbyServer(place / f"postgres-{number}")
        self.store = Store(
            self.server, postgres_socket(self.server), machine.namespace if machine else None
        )
        self.proxy = Proxy(
            self._connect,
            Random(f"{seed} postgres {number}"),
            listener=machine.listener() if machine else None,
        )
        self._returned = asyncio.Event()
        self._returned.set()

    async def _connect(self) -> Streams:
        """Connect; a lost machine that is silent answers when it is back."""
        await self._returned.wait()
        return await self.store.connect()

    def lose(self, *, is_silent: bool) -> None:
        """Lose the machine, with its disk."""
        if is_silent:
            self._returned.clear()
            self._connect_machine(is_up=False)
        self.proxy.be(Fault.HALF_OPEN if is_silent else Fault.CUT)
        self.store.kill()
        shutil.rmtree(self.server.directory, ignore_errors=True)

    async def follow(self, primary: "Node") -> None:
        """Return with an empty disk, as the standby of a primary."""
        self.server.primary = primary.server
        if self._network is not None:
            self.server.primary_address = primary.proxy.address
        shutil.rmtree(self.server.directory, ignore_errors=True)
        await self.store.start()
        self.return_()

    def return_(self) -> None:
        """Answer on the network again."""
        self._connect_machine(is_up=True)
        self._returned.set()
        self.proxy.be(Fault.NONE)

    def _connect_machine(self, *, is_up: bool) -> None:
        if self._network is not None:
            self._network.connect(self.name, is_up=is_up)


class PostgresPair:
    """The primary and its standby."""

    def __init__(self, nodes: tuple[Node, Node]) -> None:
        self.proxies = {node.name: node.proxy for node in nodes}
        self.nodes = nodes
        self.primary, self._standby = nodes
        self.store = Store(self.primary.server, self.primary.store.socket)
        self.store.become(self.primary.store)
        self.address = ",".join(node.proxy.address for node in nodes)
        self._numbers = count(1)
        self.recovered_s: list[float] = []
        """Times from the promotions to the next change of a definition."""

    async def attach(self) -> None:
        """Start the standby; from then on every commit waits for it."""
        server = self.primary.server
        await server.execute(
            "checkpoint"
        )  # that of a promotion is spread, and the copy waits for it
        await self._standby.follow(self.primary)
        await self._require_standby(required=True)
        for _ in range(int(INSYNC_S_MAX / POLL_S)):
            if await self.is_insync():
                return
            await asyncio.sleep(POLL_S)
        raise TimeoutError("the standby is not in sync")

    async def _require_standby(self, *, required: bool) -> None:
        """Let commits of the primary wait for a standby, or not."""
        names = "*" if required else ""
        server = self.primary.server
        await server.execute(f"alter system set synchronous_standby_names = '{names}'")
        await server.execute("select pg_reload_conf()::int")

    async def is_insync(self) -> bool:
        """Return whether the standby confirms commits."""
        return await self.primary.server.execute(_INSYNC) > 0

    async def fail_over(self, url: str, seconds: float, luck: float) -> None:
        """Lose the primary and promote the standby after a while; then attach another standby.

        A queue that was created a moment before is there afterwards.
        """
        async with httpx.AsyncClient(base_url=url, timeout=ANSWER_S_MAX) as http:
            path = f"/v1/queues/failover-{next(self._numbers)}"
            is_created = (await _answer(lambda: http.put(path))) == httpx.codes.CREATED
            await asyncio.sleep(ANNOUNCED_S if 2 * luck % 1 < QUIET_SHARE else 0)
            lost = self.primary
            lost.lose(is_silent=luck < SILENT_SHARE)
            try:
                await asyncio.sleep(seconds)
                await asyncio.to_thread(self._standby.server.promote)
                self.primary, self._standby = self._standby, lost
                await self._require_standby(required=False)  # it copied this of the former primary
                self.store.become(self.primary.store)
                began = monotonic()
                status = await _answer(lambda: http.get(path))
                assert not is_created or status == httpx.codes.OK, f"{path}: {status}"
                await _answer(lambda: http.put(f"{path}-after"))
                self.recovered_s.append(monotonic() - began)
                await self.attach()
            finally:
                lost.return_()
            await _answer(lambda: http.delete(path))
            await _answer(lambda: http.delete(f"{path}-after"))


async def _answer(request: Callable[[], Awaitable[httpx.Response]]) -> int:
    """Repeat a request until it has an answer that is no refusal of a moment; return its status."""
    async with asyncio.timeout(ANSWER_S_MAX):
        while True:
            try:
                status = (await request()).status_code
            except httpx.TransportError:
                status = httpx.codes.SERVICE_UNAVAILABLE
            if status < httpx.codes.INTERNAL_SERVER_ERROR:
                return status
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def running_pair(
    place: Path, seed: int, network: Network | None = None
) -> AsyncGenerator[PostgresPair]:
    """Run a primary, a synchronous standby and their proxies."""
    async with AsyncExitStack() as ends:
        first, second = nodes = (Node(place, 1, seed, network), Node(place, 2, seed, network))
        for node in nodes:
            ends.callback(node.store.stop)
            await ends.enter_async_context(node.proxy)
        await first.store.start()
        pair = PostgresPair((first, second))
        await pair.attach()
        yield pair
