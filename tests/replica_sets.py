"""Stores of a replica set on free loopback ports, each with a directory of its own."""

import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import redis

from storage.embedded.processes import stop
from storage.embedded.servers import start
from storage.embedded.valkey import Setting
from storage.redis.keys import STORE_KEY
from tests.redis_server import NamedServer, tested_program

FOLLOW_S_MAX = 20.0
PASSWORD = secrets.token_urlsafe(12)


def free_ports(count: int) -> list[int]:
    """Return ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for candidate in sockets:
        candidate.bind(("127.0.0.1", 0))
    ports = [candidate.getsockname()[1] for candidate in sockets]
    for candidate in sockets:
        candidate.close()
    return ports


class StoreServer(NamedServer):
    """A store that follows nobody when it starts, of the tested program."""

    def __init__(self, data: Path, port: int) -> None:
        super().__init__(data, tested_program())
        self.port = port
        self.options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        return [*super().command(), "--replicaof", "127.0.0.1", "1", *self.options]

    def _settings(self) -> dict[str, Setting]:
        return super()._settings() | {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "requirepass": PASSWORD,
            "masterauth": PASSWORD,
            "repl-ping-replica-period": "1",
            "repl-timeout": "5",
            "repl-backlog-size": "16mb",
            "client-output-buffer-limit": ("replica", "0", "0", "0"),
        }

    def _is_ready(self, client: "redis.Redis") -> bool:
        try:
            return bool(client.ping())
        except (redis.AuthenticationError, redis.ConnectionError, redis.BusyLoadingError):
            return False


class Store:
    """One store, which may be killed, paused, started again and emptied."""

    def __init__(self, data: Path, port: int) -> None:
        data.mkdir()
        self.address = f"127.0.0.1:{port}"
        self._server = StoreServer(data, port)
        self._server._password = PASSWORD
        self._server.prepare()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, waits: bool = True) -> None:
        """Start it with more options; wait until it answers."""
        self._server.options = options
        process = self._process = start(self._server)
        if waits:
            self._server.wait_ready(alive=lambda: process.poll() is None)

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """End it, whatever its state."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGCONT)
            stop(self._process, signal.SIGKILL)

    def revive(self) -> None:
        """Have it run, with the memory limit of its start."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.start()
        self.signal(signal.SIGCONT)
        self.run("CONFIG", "SET", "maxmemory", 0)

    def empty(self) -> None:
        """Delete its data and its promise; it follows nobody."""
        self.run("REPLICAOF", "NO", "ONE")
        self.run("FLUSHALL")
        self.run("REPLICAOF", "127.0.0.1", 1)

    def wipe(self) -> None:
        """Delete the data of a store that does not run."""
        for path in sorted(self._server.directory.rglob("*"), reverse=True):
            if path.name != "valkey.conf":
                path.rmdir() if path.is_dir() else path.unlink()

    def client(self) -> "redis.Redis":
        """Return a client of its own."""
        return redis.Redis(host="127.0.0.1", port=self._server.port, password=PASSWORD)

    def run(self, *command: Any) -> Any:
        """Run one command."""
        with self.client() as client:
            return client.execute_command(*command)


@contextmanager
def running_stores(data: Path, count: int) -> Iterator[list[Store]]:
    """Run stores while the block runs."""
    stores = [Store(data / str(nth), port) for nth, port in enumerate(free_ports(count))]
    try:
        for store in stores:
            store.start()
        yield stores
    finally:
        for store in stores:
            store.stop()


def url_of(stores: Sequence[Store]) -> str:
    """Return the URL of a replica set of these stores."""
    return f"redis://:{PASSWORD}@{','.join(store.address for store in stores)}/0"


def follow(primary: Store, replicas: Sequence[Store], epoch: int) -> None:
    """Make a store the primary of an epoch, and the others its replicas; wait until they are in sync."""
    with primary.client() as client:
        client.replicaof("NO", "ONE")
        client.hset(STORE_KEY, mapping={"epoch": epoch})
        client.hdel(STORE_KEY, "min_insync")
        for replica in replicas:
            with replica.client() as follower:
                host, _, port = primary.address.rpartition(":")
                if follower.info("replication").get("master_port") != int(port):
                    follower.replicaof(host, port)
        deadline = monotonic() + FOLLOW_S_MAX
        while not _are_insync(client, len(replicas)) and monotonic() < deadline:
            sleep(0.02)
        assert _are_insync(client, len(replicas)), "the replicas do not follow"


def _are_insync(client: Any, replicas: int) -> bool:
    client.hincrby(STORE_KEY, "position", 1)
    client.execute_command("WAIT", replicas, 100)
    return bool(client.execute_command("WAITAOF", 1, replicas, 100)[1] == replicas)
