"""A child that cannot outlive its parent: started, ended, and what it said."""

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
            become(run_as)
        if sys.platform == "linux":
            _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return setup


def become(run_as: RunAs) -> None:
    """Become another user, or be seen as one. Raises OSError."""
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
    """End a child: by its own signal, and after `STOP_S` by SIGKILL."""
    process.send_signal(with_signal)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def open_log(path: Path) -> IO[bytes]:
    """A log opened at its end, in a directory that is made when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


def tail(log: Path) -> bytes:
    """The end of a log; nothing when it cannot be read."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        return file.read()
    return b""


def last_line(text: bytes) -> str:
    """What a program said last, for a message of one line: what it calls fatal, when it says so."""
    lines = text.decode(errors="replace").strip().splitlines()
    fatal = [line for line in lines if "FATAL: " in line]
    return (fatal or lines or ["it said nothing"])[-1].strip()
