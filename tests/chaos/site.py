"""A deployment with every part breakable, and proxies before each store and the API.

`millstream up` runs two API processes, with separately started stores.
"""

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from storage.embedded.postgres import POSTGRES_PORT, PostgresServer
from storage.embedded.processes import child_setup, stop
from storage.embedded.servers import start
from storage.embedded.valkey import ValkeyServer
from storage.settings import Durability
from tests.acceptance.deployment import (
    MARKS,
    PROGRAM,
    Deployment,
    command_line,
    deployed,
    descendants,
    without_settings,
)
from tests.chaos.network import Namespace, Network
from tests.chaos.proxy import Proxy, Streams
from tests.chaos.tools import Clock, SmallDisk, Tools, small_disk
from tests.clusters import Masters
from tests.redis_server import NamedServer

API_PROCESSES = 2
POSTGRES, CONTROLLER = "postgres", "controller"
"""Machines of a network, besides the stores: the second one runs a sweeper."""
GIVES_UP_S = 0.3  # maximum time in which a store that cannot write exits
ARCHIVING = {"MILLSTREAM_SPARK_MASTER": "local[1]", "MILLSTREAM_SPARK_MEMORY_MB": "1024"}


class ClockedServer(NamedServer):
    """A store with a manual clock.

    It does not use the preloaded allocator: the two are incompatible, because the allocator reads
    the time as it starts.
    """

    def __init__(
        self, data: Path, program: Path | None, durability: Durability, clock: Clock | None
    ) -> None:
        super().__init__(data, program, durability)
        self._clock = clock

    def _launcher(self) -> list[str]:
        if self._clock is None:
            return super()._launcher()
        return [
            "/usr/bin/env",
            *(f"{name}={word}" for name, word in self._clock.environment.items()),
        ]


class Store:
    """A directly controlled server, reached through its unix socket; it may run in a network namespace."""

    def __init__(
        self,
        server: ValkeyServer | PostgresServer,
        socket: Path,
        namespace: Namespace | None = None,
    ) -> None:
        self._namespace = namespace
        self.socket = socket
        self.directory = server.directory
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """URL for clients that no fault concerns."""
        return self._server.url

    async def connect(self) -> Streams:
        """Connect; raises OSError."""
        return await asyncio.open_unix_connection(str(self.socket))

    async def start(self) -> None:
        """Start it on its own data, and wait until it serves."""
        await self.begin()
        process = self._process
        assert process is not None
        await asyncio.to_thread(self._server.wait_ready, alive=lambda: process.poll() is None)

    async def begin(self) -> None:
        """Start it without waiting, from the main thread, with which it must end."""
        await asyncio.to_thread(self._server.prepare)
        starting = partial(start, self._server)
        self._process = self._namespace.call(starting) if self._namespace else starting()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def revive(self) -> None:
        """Start it again, if it has exited."""
        assert self._process is not None
        await asyncio.sleep(GIVES_UP_S)
        if self._process.poll() is not None:
            await self.start()

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def become(self, other: "Store") -> None:
        """Replace it by another server."""
        self.socket, self.directory = other.socket, other.directory
        self._server, self._process = other._server, other._process

    def stop(self) -> None:
        """Stop it cleanly, at the end."""
        if self._process is not None and self._process.poll() is None:
            stop(self._process, self._server.stop_signal)


class HotStore(NamedTuple):
    """A hot store, and how the service reaches it; `disk` and `clock` are the store's, if supported.

    `only`: the server, `members`: those of a replica set, or `cluster`.
    """

    version: str
    environment: dict[str, str]
    proxies: dict[str, Proxy]
    only: Store | None = None
    members: Sequence[Store] = ()
    disk: SmallDisk | None = None
    clock: Clock | None = None
    cluster: Masters | None = None


class Metadata(NamedTuple):
    """Postgres, and how the service reaches it."""

    store: Store
    address: str
    proxies: dict[str, Proxy]


class Site:
    """The breakable parts of a deployment."""

    def __init__(
        self,
        deployment: Deployment,
        stores: tuple[HotStore, Store],
        proxies: dict[str, Proxy],
        tools: Tools,
        *,
        place: Path,
        environment: dict[str, str],
        archives: bool,
        controller: subprocess.Popen[bytes] | None = None,
        network: Network | None = None,
    ) -> None:
        self.network = network
        self.controller = controller
        self.url = f"http://127.0.0.1:{proxies['clients'].port}"
        self.log = deployment.log
        self.hot, self.postgres = stores
        self.version, self.disk, self.clock = self.hot.version, self.hot.disk, self.hot.clock
        self.proxies = proxies
        self.tools = tools
        self.archives = archives
        self.deployment = deployment
        self.place = place
        self.environment = environment
        self.replica: Store | None = None
        self.replication: Proxy | None = None

    @property
    def valkey(self) -> Store:
        """The only store of a deployment without a replica set."""
        assert self.hot.only is not None
        return self.hot.only

    def links(self) -> Counter[str]:
        """Counters of all proxies."""
        return sum((proxy.counted for proxy in self.proxies.values()), Counter())

    def processes(self, name: str) -> list[int]:
        """Process ids of the children of that name, as in `MARKS`."""
        children = descendants(self.deployment.process.pid, depth_max=1)
        return sorted(pid for pid in children if MARKS[name] in command_line(pid))

    async def missing(self, within_s: float) -> list[str]:
        """Programs that should be running, but are not within that time."""
        if self.controller is not None and self.controller.poll() is not None:
            return [CONTROLLER]
        fields = {"api": API_PROCESSES, "background": 1, "worker": int(self.archives)}
        for _ in range(int(within_s / 0.1)):
            lacking = [name for name, most in fields.items() if len(self.processes(name)) < most]
            if not lacking:
                return []
            await asyncio.sleep(0.1)
        return lacking


def signalled(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def postgres_socket(server: PostgresServer) -> Path:
    """Return the socket in its URL."""
    [sockets] = parse_qs(urlsplit(server.url).query)["host"]
    return Path(sockets) / f".s.PGSQL.{POSTGRES_PORT}"


@asynccontextmanager
async def single_store(
    place: Path, seed: int, tools: Tools, durability: Durability = "always"
) -> AsyncIterator[HotStore]:
    """Run one Valkey behind a proxy."""
    with ExitStack() as ends:
        clock = Clock(tools.faketime, place) if tools.faketime else None
        server = ClockedServer(place, tools.store, durability, clock)
        disk = ends.enter_context(small_disk(server.directory)) if tools.disk else None
        valkey = Store(server, server.socket)
        ends.callback(valkey.stop)
        await valkey.start()
        async with Proxy(valkey.connect, Random(f"{seed} valkey")) as proxy:
            environment = {"REDIS_URL": f"redis://127.0.0.1:{proxy.port}/0"}
            yield HotStore(
                server.version(), environment, {"valkey": proxy}, valkey, (), disk, clock
            )


@asynccontextmanager
async def single_postgres(
    place: Path, seed: int, network: Network | None = None
) -> AsyncIterator[Metadata]:
    """Run one Postgres behind a proxy, on a machine of its own with a network."""
    server = PostgresServer(place)
    store = Store(server, postgres_socket(server))
    listener = network.machine(POSTGRES).listener() if network else None
    with ExitStack() as ends:
        ends.callback(store.stop)
        await store.start()
        async with Proxy(store.connect, Random(f"{seed} postgres"), listener=listener) as proxy:
            yield Metadata(store, proxy.address, {"postgres": proxy})


@asynccontextmanager
async def running_site(
    place: Path,
    seed: int,
    tools: Tools,
    *,
    archives: bool,
    stores: AbstractAsyncContextManager[HotStore] | None = None,
    network: Network | None = None,
    postgres: AbstractAsyncContextManager[Metadata] | None = None,
) -> AsyncIterator[Site]:
    """Run a deployment in that directory, on one store and one Postgres by default.

    `archives`: with an archive and a Spark worker. `network`: with Postgres and a second sweeper on machines of their own.
    """
    async with AsyncExitStack() as ends:
        metadata = await ends.enter_async_context(postgres or single_postgres(place, seed, network))
        hot = await ends.enter_async_context(stores or single_store(place, seed, tools))
        words = ["--workers", str(API_PROCESSES), "--data", str(place / "data")]
        environment = _environment(metadata.address, archives=archives) | hot.environment
        running = deployed(place / "log", *words, environment=environment)
        # In threads: it waits for responses that pass through proxies on this loop.
        deployment = await asyncio.to_thread(running.__enter__)
        try:
            controller = None
            if network is not None:
                launcher = network.machine(CONTROLLER).launcher
                controller = ends.enter_context(_sweeping(place / "log", launcher, environment))
            port = urlsplit(deployment.url).port
            assert port is not None
            async with Proxy(
                partial(asyncio.open_connection, "127.0.0.1", port), Random(f"{seed} clients")
            ) as clients:
                yield Site(
                    deployment,
                    (hot, metadata.store),
                    {**hot.proxies, **metadata.proxies, "clients": clients},
                    tools,
                    place=place,
                    environment=environment,
                    archives=archives,
                    controller=controller,
                    network=network,
                )
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


@contextmanager
def _sweeping(
    log: Path, launcher: Sequence[str], environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a sweeper, and with it a controller, on another machine."""
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [*launcher, *PROGRAM, "sweep"],
            stdout=stderr,
            stderr=stderr,
            env={**without_settings(), **environment},
            preexec_fn=child_setup(signal.SIGKILL),
        )
    try:
        yield process
    finally:
        stop(process, signal.SIGTERM)


def _environment(postgres_address: str, *, archives: bool) -> dict[str, str]:
    return {
        "DATABASE_URL": f"postgresql://postgres@{postgres_address}/millstream?sslmode=disable"
        + ("&target_session_attrs=read-write" if "," in postgres_address else ""),
        "MILLSTREAM_WEBHOOK_ALLOW": "127.0.0.1",
        **(ARCHIVING if archives else {"MILLSTREAM_ARCHIVE_URL": "off"}),
    }
