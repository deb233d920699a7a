"""Child processes that cannot outlive their parent: start, end, and output."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LOG_TAIL_BYTES = 4_096
STOP_S = 10.0

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class RunAs:
    """User of a child process.

    `namespace`: the user stays ours and is only mapped to `uid` inside a user namespace.
    """

    uid: int
    gid: int
    namespace: bool


def child_setup(death_signal: signal.Signals, run_as: RunAs | None = None) -> Callable[[], None]:
    """Return the setup of a child between fork and exec.

    It switches to `run_as`, and requests a signal at its parent's death. The signal is requested last, because a change of
    user clears it; a parent that died before the request is detected by its process id.
    """
    parent = os.getpid()

    def setup() -> None:
        if run_as is not None:
            become(run_as)
        if sys.platform == "linux":
            _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return setup


def become(run_as: RunAs) -> None:
    """Switch to another user, or map ours to it. Raises OSError."""
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


def stop(process: subprocess.Popen[bytes], with_signal: signal.Signals) -> None:
    """End a child by its own signal, and after `STOP_S` by SIGKILL."""
    process.send_signal(with_signal)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; its directory is created if missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


def tail(log: Path) -> bytes:
    """Return the end of a log; empty when it cannot be read."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        return file.read()
    return b""


def last_line(text: bytes) -> str:
    """Return a program's last line of output, or its last FATAL one, for a one-line message."""
    lines = text.decode(errors="replace").strip().splitlines()
    fatal = [line for line in lines if "FATAL: " in line]
    return (fatal or lines or ["no output"])[-1].strip()
