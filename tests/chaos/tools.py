"""What this machine has to break things with, and which faults go without."""

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
    """`disk`: whether a small disk can be mounted here without anybody else seeing it. `store`: the program that all is
    kept by; None: the bundled Valkey."""

    store: Path | None = None
    faketime: Path | None = None
    strace: str | None = None
    disk: bool = False

    def lacking(self) -> dict[str, str]:
        """The faults that are left out, and why."""
        reasons = {
            "clock_jump": ""
            if self.faketime
            else "libfaketime is not installed, or the store does not run with it",
            "fsync_error": "" if self.strace else "strace is not installed, or may not trace",
            "disk_full": "" if self.disk else "no small disk can be mounted",
        }
        return {fault: reason for fault, reason in reasons.items() if reason}


def found_tools(store: Path | None) -> Tools:
    """Of this machine, for that store. From now on this process has mounts of its own, where it may: they end with it."""
    return Tools(
        store=store,
        faketime=FAKETIME if FAKETIME.exists() and _runs_with_faketime(store) else None,
        strace=shutil.which("strace") if os.geteuid() == 0 else None,
        disk=_own_mounts(),
    )


def _runs_with_faketime(store: Path | None) -> bool:
    """The bundled one does. One with a jemalloc that asks for the time as it begins hangs, as Debian's Redis 7.0 does."""
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
    """A disk that can be filled to its last byte."""

    def __init__(self, place: Path) -> None:
        self._ballast = place / "ballast"
        self._place = place

    def fill(self) -> None:
        """Leave nothing free, though somebody writes meanwhile: then there is less than was free a moment ago."""
        with self._ballast.open("wb") as ballast:
            while size := self._free():
                with suppress(OSError):
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), size)

    def _free(self) -> int:
        """What nobody has, in bytes."""
        told = os.statvfs(self._place)
        return told.f_bavail * told.f_frsize

    def empty(self) -> None:
        """Free what was filled."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(place: Path, size: str = "512m") -> Iterator[SmallDisk]:
    """One of that size at that place."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "chaos", str(place)]
    subprocess.run(mount, check=True)
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


@contextmanager
def failing_fsync(strace: str, pid: int) -> Iterator[None]:
    """Every fdatasync of that process is answered with EIO."""
    words = ["-f", "-qq", "-o", "/dev/null", "-p", str(pid)]
    inject = ["-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO"]
    tracing = subprocess.Popen([strace, *words, *inject], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        tracing.terminate()
        tracing.wait()


class Clock:
    """What a program that was started with `environment` takes for the time."""

    def __init__(self, library: Path, place: Path) -> None:
        self._file = place / "clock"
        self._library = library
        self.jump(0)

    @property
    def environment(self) -> dict[str, str]:
        """Only the time of day is moved; it is looked up again each second."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: float) -> None:
        """So far from the true time, within a second."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.1f}\n")
        new.chmod(0o644)
        new.replace(self._file)
