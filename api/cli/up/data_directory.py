"""Data directory of one deployment: its owner, its version, and its lock.

DATA/version      the number of this layout
DATA/lock         flock'ed by `millstream up`; its children inherit the lock, so that it is free
                  only when the last of them has ended. Contains the supervisor's process id.
DATA/valkey  DATA/postgres  DATA/logs  DATA/run     see `storage.embedded`
DATA/stores.json  DATA/valkey-2 …   of a directory with replicated stores
DATA/secret.keys  keys that encrypt stored secrets: if it is lost, they cannot be read
DATA/run/metrics  counters of the API processes, wiped at every start
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.cli.errors import CliError, ExitCode
from storage.access.secret_box import new_key

LAYOUT_VERSION = 3
REPLICATED_LAYOUT_VERSION = 4
"""Layout of a directory with replicated stores: an earlier build would start the first of them alone."""

LAYOUT_VERSIONS = (LAYOUT_VERSION, REPLICATED_LAYOUT_VERSION)
LOCK_WAIT_S = 10.0  # the children of a killed predecessor end shortly after it
LOCK_POLL_S = 0.1

_NOT_OURS_TO_MIND = frozenset({"lock", "lost+found"})


@contextmanager
def data_directory(data: Path, *, ephemeral: bool) -> Iterator[Path]:
    """Yield DATA as an absolute path, created if missing.

    When `ephemeral`, a temporary directory that is removed at the end.
    """
    if ephemeral:
        with tempfile.TemporaryDirectory(
            prefix="millstream-", ignore_cleanup_errors=True
        ) as temporary:
            yield Path(temporary)
        return
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"cannot use {data} as data directory: {error.strerror}") from None
    yield data.resolve()


@contextmanager
def acquire_lock(data: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[int]:
    """Hold DATA/lock, and yield its descriptor for children to inherit.

    Waits for a predecessor that is ending. Raises CliError, naming the holder, when it does not end.
    """
    try:
        descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CliError(f"cannot use {data} as data directory: {error.strerror}") from None
    try:
        _take(descriptor, data, time.monotonic() + wait_s)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, data: Path, deadline: float) -> None:
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            holder = os.pread(descriptor, 32, 0).decode().strip() or "unknown"
            raise CliError(
                f"{data} is in use by another Millstream (process {holder} or a process that it left running)",
                ExitCode.UNAVAILABLE,
            )
        time.sleep(LOCK_POLL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def in_use(data: Path) -> bool:
    """Return whether a Millstream runs on this directory now."""
    try:
        descriptor = os.open(data / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def check_version(data: Path) -> None:
    """Mark a new directory with our version. Raises CliError for another version or content."""
    path = data / "version"
    if not path.exists():
        _write_version(data, path)
    elif (version := path.read_text().strip()) not in map(str, LAYOUT_VERSIONS):
        older = version.isdecimal() and int(version) < LAYOUT_VERSION
        raise CliError(
            f"{data} has layout version {version or 'unknown'}, but this version of Millstream supports {LAYOUT_VERSION} and {REPLICATED_LAYOUT_VERSION}: use the version that wrote it"
            + ("" if older else ", or a newer one")
        )


def _write_version(data: Path, path: Path) -> None:
    if {entry.name for entry in data.iterdir()} - _NOT_OURS_TO_MIND:
        raise CliError(
            f"{data} is not empty and was not created by Millstream: choose another --data directory"
        )
    _replace_version(path, LAYOUT_VERSION)


def mark_replicated(data: Path) -> None:
    """Mark a directory as one with replicated stores, before it has them."""
    _replace_version(data / "version", REPLICATED_LAYOUT_VERSION)


def mark_single(data: Path) -> None:
    """Mark a directory as one with a single store, after its others were forgotten."""
    _replace_version(data / "version", LAYOUT_VERSION)


def _replace_version(path: Path, version: int) -> None:
    new = path.with_suffix(".new")
    new.write_text(f"{version}\n")
    new.rename(path)


def wiped_metrics_directory(data: Path) -> Path:
    """Return the API processes' directory of shared counters, without those of the last run."""
    directory = data / "run" / "metrics"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def own_secret_keys(data: Path) -> Path:
    """Return DATA/secret.keys, created atomically if missing, readable only by us."""
    path = data / "secret.keys"
    if not path.exists():
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with open(new, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(f"{new_key()}\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    return path
