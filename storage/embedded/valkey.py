"""Private Valkey server: its configuration, and its readiness."""

import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict, cast
from urllib.parse import quote

import redis

from storage.embedded.binaries import ServerChoice, find_allocator, find_valkey
from storage.embedded.processes import RunAs
from storage.embedded.servers import READY_S, Alive, always, running, wait_until
from storage.embedded.sockets import socket_directory
from storage.settings import Durability

CLUSTER_SLOT_LAST = 16_383
CLUSTER_BUS_PORT_STEP = 10_000  # Redis's own rule for the port of its cluster bus
CLUSTER_PORTS = range(20_000, 50_000)
_SNAPSHOT_NAME = "snapshot.rdb"

Setting = str | tuple[str, ...]
"""Value of a setting: one word, or several."""


class ValkeyEndpoint(TypedDict, total=False):
    """A unix socket, or a host and a port."""

    unix_socket_path: str
    host: str
    port: int


@contextmanager
def running_valkey(
    data: Path,
    *,
    durability: Durability = "always",
    cluster: bool = False,
    memory_bytes: int = 0,
) -> Iterator[str]:
    """Run a private Valkey while the block runs; yield its URL."""
    server = ValkeyServer(data, durability=durability, cluster=cluster, memory_bytes=memory_bytes)
    with running(server) as url:
        yield url


class ValkeyServer:
    """Valkey, or a Redis from PATH, on a unix socket in the data directory.

    `cluster`: one node that owns every slot. Cluster clients need an address, so it also listens on
    loopback, with a password generated for this start. `memory_bytes`: its memory limit, 0 for none.
    """

    name = "valkey"
    stop_signal = signal.SIGTERM
    run_as: RunAs | None = None

    def __init__(
        self,
        data: Path,
        *,
        durability: Durability = "always",
        server: ServerChoice = "bundled",
        cluster: bool = False,
        memory_bytes: int = 0,
    ) -> None:
        self.directory = data.resolve() / "valkey"
        self.log = data.resolve() / "logs" / "valkey.log"
        self._data = data.resolve()
        self._durability = durability
        self._memory_bytes = memory_bytes
        self._binary = find_valkey(server)
        self._allocator = find_allocator() if server == "bundled" else None
        self._cluster_port = _free_cluster_port() if cluster else 0
        self._password = secrets.token_urlsafe(24) if cluster else ""

    @property
    def socket(self) -> Path:
        """Path of its unix socket."""
        return socket_directory(self._data, "valkey") / "valkey.sock"

    @property
    def url(self) -> str:
        """`unix://…` for one server, `redis://…` for a cluster."""
        if self._cluster_port:
            return f"redis://:{self._password}@127.0.0.1:{self._cluster_port}/0"
        return f"unix://{quote(str(self.socket))}?db=0"

    def command(self) -> list[str]:
        """Return the server and its configuration file, behind a launcher that execs it."""
        return [
            *self._launcher(),
            str(self._binary),
            _literally(str(self.directory / "valkey.conf")),
        ]

    def _launcher(self) -> list[str]:
        return [] if self._allocator is None else ["/usr/bin/env", f"LD_PRELOAD={self._allocator}"]

    def prepare(self) -> None:
        """Write the configuration, readable only by us, as it may contain a password."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        path = self.directory / "valkey.conf"
        path.touch(mode=0o600)
        path.write_text(_configuration(self._settings()))

    def _settings(self) -> dict[str, Setting]:
        settings: dict[str, Setting] = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "logfile": str(self.log),
            "daemonize": "no",
            "save": "",  # the append-only file holds everything
            "appendonly": "yes",
            "appendfsync": self._durability,
            "aof-use-rdb-preamble": "yes",
            "repl-diskless-sync-delay": "0",  # a backup need not wait for other replicas
            "maxmemory": str(self._memory_bytes),
            "maxmemory-policy": "noeviction",  # an eviction would lose messages
        }
        if self._cluster_port:
            settings |= self._cluster_settings()
        return settings

    def _cluster_settings(self) -> dict[str, Setting]:
        return {
            "port": str(self._cluster_port),
            "bind": "127.0.0.1",
            "requirepass": self._password,
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-announce-ip": "127.0.0.1",
        }

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = always) -> None:
        """Wait until it answers, its file is loaded and, in a cluster, every slot is served."""
        with redis.Redis(**self._endpoint, password=self._password or None) as client:
            wait_until(lambda: self._is_ready(client), self, timeout_s, alive)

    @property
    def _endpoint(self) -> ValkeyEndpoint:
        """ValkeyEndpoint of the server, as the client's arguments."""
        return {"unix_socket_path": str(self.socket)}

    def _is_ready(self, client: "redis.Redis") -> bool:
        with suppress(redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError):
            client.ping()
            return not self._cluster_port or _owns_every_slot(client)
        return False


class SnapshotServer(ValkeyServer):
    """Valkey that serves a snapshot (an RDB file) for reading; it persists nothing."""

    def __init__(self, data: Path, snapshot: Path, *, server: ServerChoice = "bundled") -> None:
        super().__init__(data, server=server)
        self._snapshot = snapshot.resolve()

    def prepare(self) -> None:
        super().prepare()
        (self.directory / _SNAPSHOT_NAME).symlink_to(self._snapshot)

    def _settings(self) -> dict[str, Setting]:
        return super()._settings() | {"appendonly": "no", "dbfilename": _SNAPSHOT_NAME}


def _literally(path: str) -> str:
    """Escape a path for the server, which interprets wildcards in it as a pattern.

    A pattern need not match any file.
    """
    if not any(letter in path for letter in "*?["):
        return path
    return "".join(f"\\{letter}" if letter in "*?[\\" else letter for letter in path)


def _configuration(settings: Mapping[str, Setting]) -> str:
    return "".join(f"{name} {_quoted(value)}\n" for name, value in settings.items())


def _quoted(value: Setting) -> str:
    words = (value,) if isinstance(value, str) else value
    return " ".join(f'"{_escaped(word)}"' for word in words)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _owns_every_slot(client: "redis.Redis") -> bool:
    execute = cast(Callable[..., dict[str, str]], client.execute_command)
    info = execute("CLUSTER INFO")
    if info["cluster_slots_assigned"] == "0":
        execute("CLUSTER ADDSLOTSRANGE", 0, CLUSTER_SLOT_LAST)
    return info["cluster_state"] == "ok"


def _free_cluster_port() -> int:
    """Return a port that is free now, together with the one of its cluster bus."""
    while True:
        port = secrets.choice(CLUSTER_PORTS)
        if is_free(port) and is_free(port + CLUSTER_BUS_PORT_STEP):
            return port


def is_free(port: int) -> bool:
    """Return whether nothing listens on a loopback port."""
    with socket.socket() as candidate:
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
