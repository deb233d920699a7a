"""Private Postgres server: creation of its data, its user, and its readiness.

Postgres refuses to run as uid 0. Root runs it inside a separate user namespace, where root's files
belong to an ordinary user; where namespaces are refused, as the user `nobody`.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

import psycopg

from storage.embedded.binaries import find_postgres
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.processes import RunAs, become, child_setup, last_line
from storage.embedded.servers import READY_S, Alive, always, running, wait_until
from storage.embedded.sockets import socket_directory

POSTGRES_PORT = 5432  # part of the socket's file name; nothing listens on TCP
POSTGRES_CONNECTIONS_MAX = 100
DATABASE = "millstream"
PREDECESSOR_S = 10.0  # time for a Postgres that lost its supervisor or postmaster to end
_SOCKET = f".s.PGSQL.{POSTGRES_PORT}"
_POLL_S = 0.05
_PROCESSES = Path("/proc")


@contextmanager
def running_postgres(data: Path) -> Iterator[str]:
    """Run a private Postgres while the block runs; yield its URL.

    It does not sync to disk: its data is lost if the machine fails, which is acceptable for tests.
    """
    with running(PostgresServer(data, fsync=False)) as url:
        yield url


class PostgresServer:
    """Postgres on a unix socket that only its owner can reach, so it trusts all connections."""

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
        """URL of Millstream's database."""
        return self._url(DATABASE)

    def _url(self, database: str) -> str:
        host = quote(str(self._sockets()))
        return f"postgresql://postgres@/{database}?host={host}&port={POSTGRES_PORT}"

    def _sockets(self) -> Path:
        return socket_directory(self._data, "postgres", self._dropped_to())

    def _dropped_to(self) -> RunAs | None:
        return self.run_as if self.run_as and not self.run_as.namespace else None

    def command(self) -> list[str]:
        """Return the server's command line, with all settings that differ from the defaults."""
        settings = {
            "listen_addresses": "",
            "port": str(POSTGRES_PORT),
            "unix_socket_directories": str(self._sockets()),
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
        """Create the database cluster unless it exists, owned by the user Postgres runs as."""
        self._data.mkdir(parents=True, exist_ok=True)
        if self._dropped_to() is not None:
            self._make_traversable()
        if not self.directory.exists():
            self._initialise()
        _give(self.directory, self._dropped_to())
        if _predecessors_have_ended(self.directory):
            for left in (self.directory / "postmaster.pid", self._sockets() / f"{_SOCKET}.lock"):
                left.unlink(missing_ok=True)

    def _initialise(self) -> None:
        """Run initdb in a temporary directory and rename it: an existing cluster is complete."""
        new = self.directory.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        _give(new, self._dropped_to())
        done = self._run("initdb", *self._initdb_options(), "-D", str(new))
        if done.returncode != 0:
            raise EmbeddedServerError(f"initdb failed: {last_line(done.stderr)}")
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

    def _make_traversable(self) -> None:
        """Let `nobody` traverse our directory. Raises EmbeddedServerError when it still cannot."""
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
                f"Postgres cannot run as root, this machine does not allow user namespaces, and the user nobody cannot access {self._data} or {self._binaries}: choose another --data directory or run as an ordinary user"
            )

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = always) -> None:
        """Wait until it accepts connections and Millstream's database exists."""
        wait_until(self._is_ready, self, timeout_s, alive)

    def _is_ready(self) -> bool:
        with suppress(psycopg.OperationalError):
            _create_database(self._url("postgres"), DATABASE)
            return True
        return False


def _create_database(server_url: str, name: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        cursor = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if cursor.fetchone() is None:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())


def _may_run_postgres() -> bool:
    """Return whether our user can run Postgres, which requires a user with a name, not root."""
    return os.geteuid() != 0 and _has_name(os.geteuid())


def _has_name(uid: int) -> bool:
    with suppress(KeyError):
        pwd.getpwuid(uid)
        return True
    return False


def _another_user() -> RunAs:
    """Return an ordinary user with a name: mapped inside a user namespace, or switched to."""
    nobody = pwd.getpwnam("nobody")
    inside = RunAs(nobody.pw_uid, nobody.pw_gid, namespace=True)
    try:
        subprocess.run(["/usr/bin/env", "true"], check=True, preexec_fn=lambda: become(inside))
    except (subprocess.SubprocessError, OSError):
        return RunAs(nobody.pw_uid, nobody.pw_gid, namespace=False)
    return inside


def _give(directory: Path, dropped_to: RunAs | None) -> None:
    """Change the owner of `directory` and its contents to the user that Postgres runs as.

    No effect if that is the owner already.
    """
    uid = dropped_to.uid if dropped_to else os.geteuid()
    gid = dropped_to.gid if dropped_to else os.getegid()
    if directory.stat().st_uid == uid:
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, uid, gid, follow_symlinks=False)


def _predecessors_have_ended(directory: Path) -> bool:
    """Wait some seconds for an ending Postgres; return whether certainly none is left.

    A killed postmaster's sessions notice its end a moment later, and until then its shared memory is in use. The process id
    in its lock files is not reliable: Postgres mistakes another program with that id for itself, as happens in containers,
    and also an ended process that was not waited for yet.
    """
    give_up_at = monotonic() + PREDECESSOR_S
    while any(_serves(directory, process) for process in _PROCESSES.glob("[0-9]*")):
        if monotonic() > give_up_at:
            return False
        sleep(_POLL_S)
    return _PROCESSES.exists()


def _serves(directory: Path, process: Path) -> bool:
    """Return whether a process is a Postgres of this cluster, by its working directory.

    Each process of the cluster works in its directory.
    """
    with suppress(OSError):  # it has ended, or we may not read it
        return (process / "comm").read_text() == "postgres\n" and (
            (process / "cwd").readlink() == directory
        )
    return False
