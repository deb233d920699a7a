"""A deployment whose every part can be broken: `millstream up` with two API processes, in front of stores of our own,
with a proxy before each store."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

from storage.embedded.postgres import POSTGRES_PORT, PostgresServer
from storage.embedded.processes import stop
from storage.embedded.servers import EmbeddedServer, start
from storage.embedded.valkey import ValkeyServer
from tests.acceptance.deployment import MARKS, Deployment, command_line, deployed, descendants
from tests.chaos.proxy import Proxy, Streams

API_PROCESSES = 2


class Store:
    """A server under our own hand, reached through its unix socket."""

    def __init__(self, server: EmbeddedServer, socket: Path) -> None:
        self._server = server
        self._socket = socket
        self._process: subprocess.Popen[bytes] | None = None

    async def connect(self) -> Streams:
        """A connection to it. Raises OSError."""
        return await asyncio.open_unix_connection(str(self._socket))

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

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """In an orderly way, for the end."""
        if self._process is not None and self._process.poll() is None:
            stop(self._process, self._server.stop_signal)


class Site:
    """What the nemesis may break."""

    def __init__(
        self,
        deployment: Deployment,
        valkey: Store,
        postgres: Store,
        valkey_proxy: Proxy,
        postgres_proxy: Proxy,
    ) -> None:
        self.url = deployment.url
        self.log = deployment.log
        self.valkey = valkey
        self.postgres = postgres
        self.valkey_proxy = valkey_proxy
        self.postgres_proxy = postgres_proxy
        self._deployment = deployment

    def processes(self, name: str) -> list[int]:
        """The process ids of the children of that name, as `MARKS` has them."""
        children = descendants(self._deployment.process.pid, depth_max=1)
        return sorted(pid for pid in children if MARKS[name] in command_line(pid))

    async def missing(self, within_s: float) -> list[str]:
        """The programs that do not run within that time, though they should."""
        wanted = {"api": API_PROCESSES, "sweeper": 1, "deliverer": 1}
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
async def running_site(place: Path, seed: int) -> AsyncIterator[Site]:
    """A whole deployment in that directory."""
    valkey_server, postgres_server = ValkeyServer(place), PostgresServer(place)
    valkey = Store(valkey_server, valkey_server.socket)
    postgres = Store(postgres_server, _postgres_socket(postgres_server))
    try:
        await asyncio.gather(valkey.start(), postgres.start())
        async with (
            Proxy(valkey.connect, Random(f"{seed} valkey")) as valkey_proxy,
            Proxy(postgres.connect, Random(f"{seed} postgres")) as postgres_proxy,
        ):
            environment = {
                "REDIS_URL": f"redis://127.0.0.1:{valkey_proxy.port}/0",
                "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{postgres_proxy.port}/millstream?sslmode=disable",
                "MILLSTREAM_ARCHIVE_URL": "off",
            }
            running = deployed(
                place / "log",
                "--workers",
                str(API_PROCESSES),
                "--data",
                str(place / "data"),
                environment=environment,
            )
            # In threads: it waits for answers that come through proxies of this very loop.
            deployment = await asyncio.to_thread(running.__enter__)
            try:
                yield Site(deployment, valkey, postgres, valkey_proxy, postgres_proxy)
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)
    finally:
        valkey.stop()
        postgres.stop()
