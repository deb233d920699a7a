"""Fault injection tools of this machine, and the faults that must be omitted."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HANGS_S = 2.0
_CLONE_NEWNS = 0x20000
_MS_PRIVATE, _MS_REC = 1 << 18, 1 << 14
_libc = ctypes.CDLL(None, use_errno=True)


class Tools(msgspec.Struct, frozen=True):
    """Available tools.

    `disk`: whether a private disk can be mounted. `store`: the store's program, None for the
    bundled Valkey.
    """

    store: Path | None = None
    faketime: Path | None = None
    strace: str | None = None
    disk: bool = False

    def lacking(self, of_store: str = "") -> dict[str, str]:
        """Omitted faults, with reasons. `of_store`: what follows the names of those of a disk."""
        reasons = {
            "clock_jump": ""
            if self.faketime or of_store
            else "libfaketime is not installed, or the store does not run with it",
            f"fsync_error{of_store}": ""
            if self.strace
            else "strace is not installed, or may not trace",
            f"disk_full{of_store}": "" if self.disk else "no small disk can be mounted",
        }
        return {fault: reason for fault, reason in reasons.items() if reason}


def found_tools(store: Path | None) -> Tools:
    """Detect the tools for that store, and unshare the mount namespace if allowed."""
    return Tools(
        store=store,
        faketime=FAKETIME if FAKETIME.exists() and _runs_with_faketime(store) else None,
        strace=shutil.which("strace") if os.geteuid() == 0 else None,
        disk=_own_mounts(),
    )


def _runs_with_faketime(store: Path | None) -> bool:
    """Return whether the store runs with faketime.

    A jemalloc that reads the time as it starts hangs, as that of Debian's Redis 7.0.
    """
    if store is None:
        return True
    environment = {**os.environ, "LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1d"}
    asked = [str(store), "--version"]
    try:
        tried = subprocess.run(
            asked, env=environment, capture_output=True, check=False, timeout=HANGS_S
        )
    except subprocess.TimeoutExpired:
        return False
    return tried.returncode == 0


def _own_mounts() -> bool:
    if os.geteuid() != 0 or _libc.unshare(_CLONE_NEWNS) != 0:
        return False
    return int(_libc.mount(b"none", b"/", None, _MS_PRIVATE | _MS_REC, None)) == 0


class SmallDisk:
    """A disk that can be filled completely."""

    def __init__(self, place: Path) -> None:
        self._ballast = place / "ballast"
        self._place = place

    def fill(self) -> None:
        """Fill it, also during concurrent writes, which reduce the free space meanwhile."""
        with self._ballast.open("wb") as ballast:
            while size := self._free():
                with suppress(OSError):
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), size)

    def _free(self) -> int:
        """Free bytes."""
        told = os.statvfs(self._place)
        return told.f_bavail * told.f_frsize

    def empty(self) -> None:
        """Free the filled space."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(place: Path, size: str = "512m") -> Iterator[SmallDisk]:
    """Mount a disk of this size."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "chaos", str(place)]
    subprocess.run(mount, check=True)
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


@contextmanager
def failing_fsync(strace: str, pid: int) -> Iterator[None]:
    """Let every fdatasync of that process fail with EIO."""
    words = ["-f", "-qq", "-o", "/dev/null", "-p", str(pid)]
    inject = ["-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO"]
    tracing = subprocess.Popen([strace, *words, *inject], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        tracing.terminate()
        tracing.wait()


class Clock:
    """The clock of a program that was started with `environment`."""

    def __init__(self, library: Path, place: Path) -> None:
        self._file = place / "clock"
        self._library = library
        self.jump(0)

    @property
    def environment(self) -> dict[str, str]:
        """Environment that shifts only wall-clock time, which is read again each second."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: float) -> None:
        """Shift the clock by this much, effective within a second."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.1f}\n")
        new.chmod(0o644)
        new.replace(self._file)
