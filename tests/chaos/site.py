"""A deployment whose every part can be broken: `millstream up` with two API processes, in front of stores of our own,
with a proxy before each store, and one before the deployment itself."""

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

from storage.embedded.postgres import POSTGRES_PORT, PostgresServer
from storage.embedded.processes import stop
from storage.embedded.servers import start
from storage.embedded.valkey import ValkeyServer
from storage.settings import Durability
from tests.acceptance.deployment import MARKS, Deployment, command_line, deployed, descendants
from tests.chaos.proxy import Proxy, Streams
from tests.chaos.tools import Clock, SmallDisk, Tools, small_disk
from tests.redis_server import NamedServer

API_PROCESSES = 2
GIVES_UP_S = 0.3  # a store that cannot write needs so long to end, at most
ARCHIVING = {"MILLSTREAM_SPARK_MASTER": "local[1]", "MILLSTREAM_SPARK_MEMORY_MB": "1024"}


class ClockedServer(NamedServer):
    """A store that takes its time from a clock of ours. It has no allocator of the machine's then: the two are not for one
    process, since that one asks for the time as it begins."""

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
    """A server under our own hand, reached through its unix socket."""

    def __init__(self, server: ValkeyServer | PostgresServer, socket: Path) -> None:
        self.socket = socket
        self.directory = server.directory
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None

    async def connect(self) -> Streams:
        """A connection to it. Raises OSError."""
        return await asyncio.open_unix_connection(str(self.socket))

    async def start(self) -> None:
        """Start it on its own data, and wait until it serves."""
        await self.begin()
        process = self._process
        assert process is not None
        await asyncio.to_thread(self._server.wait_ready, alive=lambda: process.poll() is None)

    async def begin(self) -> None:
        """Start it, and do not wait. The process is started by our own thread: it is to end with that."""
        await asyncio.to_thread(self._server.prepare)
        self._process = start(self._server)

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    async def revive(self) -> None:
        """Start it, if it has given up."""
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
        """Another server takes this one's place; this one is gone."""
        self.socket, self.directory = other.socket, other.directory
        self._server, self._process = other._server, other._process

    def stop(self) -> None:
        """In an orderly way, for the end."""
        if self._process is not None and self._process.poll() is None:
            stop(self._process, self._server.stop_signal)


class Site:
    """What the nemesis may break. `disk` and `clock` are the store's, where the machine can do that, and so is `version`."""

    def __init__(
        self,
        deployment: Deployment,
        stores: tuple[Store, Store],
        proxies: dict[str, Proxy],
        tools: Tools,
        *,
        place: Path,
        environment: dict[str, str],
        disk: SmallDisk | None,
        clock: Clock | None,
        archives: bool,
        version: str,
    ) -> None:
        self.version = version
        self.url = f"http://127.0.0.1:{proxies['clients'].port}"
        self.log = deployment.log
        self.valkey, self.postgres = stores
        self.proxies = proxies
        self.tools = tools
        self.disk = disk
        self.clock = clock
        self.archives = archives
        self.deployment = deployment
        self.place = place
        self.environment = environment
        self.replica: Store | None = None
        self.replication: Proxy | None = None

    def links(self) -> Counter[str]:
        """What happened to the links of all proxies."""
        return sum((proxy.counted for proxy in self.proxies.values()), Counter())

    def processes(self, name: str) -> list[int]:
        """The process ids of the children of that name, as `MARKS` has them."""
        children = descendants(self.deployment.process.pid, depth_max=1)
        return sorted(pid for pid in children if MARKS[name] in command_line(pid))

    async def missing(self, within_s: float) -> list[str]:
        """The programs that do not run within that time, though they should."""
        wanted = {"api": API_PROCESSES, "sweeper": 1, "deliverer": 1, "worker": int(self.archives)}
        for _ in range(int(within_s / 0.1)):
            lacking = [name for name, most in wanted.items() if len(self.processes(name)) < most]
            if not lacking:
                return []
            await asyncio.sleep(0.1)
        return lacking


def signalled(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _postgres_socket(server: PostgresServer) -> Path:
    """The socket that its URL is about."""
    [sockets] = parse_qs(urlsplit(server.url).query)["host"]
    return Path(sockets) / f".s.PGSQL.{POSTGRES_PORT}"


@asynccontextmanager
async def running_site(
    place: Path, seed: int, tools: Tools, *, archives: bool, durability: Durability = "always"
) -> AsyncIterator[Site]:
    """A whole deployment in that directory; `archives`: with an archive and a Spark worker."""
    with ExitStack() as ends:
        clock = Clock(tools.faketime, place) if tools.faketime else None
        valkey_server = ClockedServer(place, tools.store, durability, clock)
        postgres_server = PostgresServer(place)
        disk = ends.enter_context(small_disk(valkey_server.directory)) if tools.disk else None
        valkey = Store(valkey_server, valkey_server.socket)
        postgres = Store(postgres_server, _postgres_socket(postgres_server))
        ends.callback(postgres.stop)
        ends.callback(valkey.stop)
        await asyncio.gather(valkey.start(), postgres.start())
        async with (
            Proxy(valkey.connect, Random(f"{seed} valkey")) as valkey_proxy,
            Proxy(postgres.connect, Random(f"{seed} postgres")) as postgres_proxy,
        ):
            stores = {"valkey": valkey_proxy, "postgres": postgres_proxy}
            words = ["--workers", str(API_PROCESSES), "--data", str(place / "data")]
            environment = _environment(stores, archives=archives)
            running = deployed(place / "log", *words, environment=environment)
            # In threads: it waits for answers that come through proxies of this very loop.
            deployment = await asyncio.to_thread(running.__enter__)
            try:
                port = urlsplit(deployment.url).port
                assert port is not None
                async with Proxy(
                    partial(asyncio.open_connection, "127.0.0.1", port), Random(f"{seed} clients")
                ) as clients:
                    yield Site(
                        deployment,
                        (valkey, postgres),
                        {**stores, "clients": clients},
                        tools,
                        place=place,
                        environment=environment,
                        disk=disk,
                        clock=clock,
                        archives=archives,
                        version=valkey_server.version(),
                    )
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)


def _environment(stores: dict[str, Proxy], *, archives: bool) -> dict[str, str]:
    valkey, postgres = stores["valkey"].port, stores["postgres"].port
    return {
        "REDIS_URL": f"redis://127.0.0.1:{valkey}/0",
        "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{postgres}/millstream?sslmode=disable",
        "MILLSTREAM_WEBHOOK_ALLOW": "127.0.0.1",
        **(ARCHIVING if archives else {"MILLSTREAM_ARCHIVE_URL": "off"}),
    }
