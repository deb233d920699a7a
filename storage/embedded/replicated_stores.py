"""Replicated stores of one data directory: the members, and the file that remembers them.

    DATA/stores.json    ports and the password of the members, readable only by us
    DATA/valkey         the first member: the store of the directory before it was replicated
    DATA/valkey-2 …     the others

A member that starts follows nobody and accepts no write: the controller attaches or promotes it.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from storage.domain import limits
from storage.embedded.binaries import ServerChoice
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.valkey import Setting, ValkeyEndpoint, ValkeyServer, is_free

HOST = "127.0.0.1"
PORTS = range(20_000, 32_768)  # below the ports of outgoing connections on Linux
_RECORD_NAME = "stores.json"
_NO_PRIMARY = (HOST, "1")  # no server listens on this port
_PID_NAME = "valkey.pid"


class StoreRecord(msgspec.Struct, frozen=True):
    """Members of a data directory, in the order of their numbers, which begin with 1."""

    ports: tuple[int, ...]
    password: str

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the members."""
        return tuple(f"{HOST}:{port}" for port in self.ports)

    @property
    def url(self) -> str:
        """URL that names all members."""
        return f"redis://:{self.password}@{','.join(self.addresses)}/0"


def read_record(data: Path) -> StoreRecord | None:
    """Return the members of a data directory, or None for one without replicated stores.

    Raises EmbeddedServerError for a file that cannot be read.
    """
    path = data / _RECORD_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=StoreRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise EmbeddedServerError(f"cannot read {path}: {error}") from None


def create_record(data: Path, count: int) -> StoreRecord:
    """Choose ports and a password for `count` members, and remember them."""
    record = StoreRecord(free_ports(count), secrets.token_urlsafe(24))
    path = data / _RECORD_NAME
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with open(new, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    return record


def remove_record(data: Path, record: StoreRecord) -> None:
    """Delete the data of all members but the first, and then forget the members."""
    for number in range(2, len(record.ports) + 1):
        shutil.rmtree(data / _folder(number), ignore_errors=True)
    (data / _RECORD_NAME).unlink()


def free_ports(count: int) -> tuple[int, ...]:
    """Return different ports on which nothing listens."""
    ports: set[int] = set()
    while len(ports) < count:
        port = secrets.choice(PORTS)
        if is_free(port):
            ports.add(port)
    return tuple(sorted(ports))


class StoreMember(ValkeyServer):
    """Member of a replica set: Valkey on a loopback port, set up for replication."""

    def __init__(
        self,
        data: Path,
        record: StoreRecord,
        number: int,
        *,
        server: ServerChoice = "bundled",
        memory_bytes: int = 0,
    ) -> None:
        super().__init__(data, server=server, memory_bytes=memory_bytes)
        folder = _folder(number)
        self.name = f"valkey {number}"
        self.directory = data.resolve() / folder
        self.log = data.resolve() / "logs" / f"{folder}.log"
        self.port = record.ports[number - 1]
        self._password = record.password

    @property
    def url(self) -> str:
        """URL of this member alone."""
        return f"redis://:{self._password}@{HOST}:{self.port}/0"

    def _settings(self) -> dict[str, Setting]:
        settings = super()._settings()
        del settings["unixsocket"], settings["unixsocketperm"]
        return settings | {
            "port": str(self.port),
            "bind": HOST,
            "requirepass": self._password,
            "masterauth": self._password,
            "replicaof": _NO_PRIMARY,
            "pidfile": str(self.directory / _PID_NAME),
            "repl-ping-replica-period": "1",
            "repl-timeout": "5",
            "repl-backlog-size": str(_backlog_bytes(self._memory_bytes)),
            "repl-diskless-load": "disabled",  # the old data stays until the new is complete
            "client-output-buffer-limit": ("replica", "0", "0", "0"),
            "no-appendfsync-on-rewrite": "no",  # otherwise a rewrite suspends fsync
            "min-replicas-to-write": "0",
        }

    @property
    def _endpoint(self) -> ValkeyEndpoint:
        return {"host": HOST, "port": self.port}


def members(
    data: Path, record: StoreRecord, *, server: ServerChoice = "bundled", memory_bytes: int = 0
) -> list[StoreMember]:
    """Return the members of a data directory."""
    return [
        StoreMember(data, record, number, server=server, memory_bytes=memory_bytes)
        for number in range(1, len(record.ports) + 1)
    ]


def member_pids(data: Path) -> Mapping[str, int]:
    """Return the process ids of the members that run on a data directory, by address."""
    with suppress(EmbeddedServerError):
        if (record := read_record(data)) is not None:
            return {
                address: pid
                for number, address in enumerate(record.addresses, start=1)
                if (pid := _running_pid(data / _folder(number) / _PID_NAME))
            }
    return {}


def _running_pid(path: Path) -> int | None:
    """Return the process id in a file, if that process runs."""
    with suppress(OSError, ValueError):
        pid = int(path.read_text())
        os.kill(pid, 0)
        return pid
    return None


def _folder(number: int) -> str:
    return "valkey" if number == 1 else f"valkey-{number}"


def _backlog_bytes(memory_bytes: int) -> int:
    """Return the replication backlog: its full size, or an eighth of a small memory limit."""
    most = limits.REPLICATION_BACKLOG_BYTES
    return min(most, memory_bytes // 8) if memory_bytes else most
