"""`millstream up` as a user runs it: a process, its URL, and its child processes."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conditions import PATIENCE_S

PROGRAM = (sys.executable, "-m", "api.cli")
READY_S = 120.0
MARKS = {
    "valkey": "valkey-server",
    "postgres": "/bin/postgres",
    "api": "uvicorn",
    "background": "api.cli background",
    "worker": "api.cli worker",
}
"""A part of the command line of each child."""


class Deployment:
    """A `millstream up` that has reported readiness."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self.announcement = self._read_announcement()
        self.url = self.announcement.partition("ready at ")[2].split()[0]

    def _read_announcement(self) -> str:
        """Read all output: a new deployment's key, the line with the URL, three curl lines."""
        assert self.process.stdout is not None
        pipe, said = self.process.stdout.fileno(), ""
        deadline = time.monotonic() + READY_S
        while "/receive" not in said:
            ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
            text = os.read(pipe, 4_096).decode() if ready else ""
            assert text, f"it did not become ready:\n{self.log.read_text()[-4_000:]}"
            said += text
        return said

    def children(self) -> dict[str, int]:
        """Return the process ids of its children, by name."""
        pids: dict[str, int] = {}
        for pid in descendants(self.process.pid, depth_max=1):
            words = command_line(pid)
            pids |= {name: pid for name, mark in MARKS.items() if mark in words}
        return pids

    def end(self, with_signal: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the exit, and return the exit code."""
        self.process.send_signal(with_signal)
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextmanager
def deployed(
    log: Path,
    *options: str,
    command: str = "up",
    program: Sequence[str] = PROGRAM,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Deployment]:
    """Run `millstream up --port 0` with these options, and terminate it afterwards.

    `program` is another installation of it, which is independent of this one's path.
    """
    own = {} if program is PROGRAM else {"PYTHONPATH": ""}
    process = _start(
        [*program, command, "--port", "0", *options], log, folder, {**own, **(environment or {})}
    )
    try:
        yield Deployment(process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


def _start(
    command: list[str], log: Path, folder: Path | None, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with log.open("a") as stderr:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**without_settings(), **environment},
        )


def refused(*options: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Return exit code and standard error of a `millstream up` that does not start."""
    done = command("up", *options, environment=environment)
    return done.returncode, done.stderr


def command(
    *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `millstream` with these arguments to its end."""
    return subprocess.run(
        [*PROGRAM, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**without_settings(), **(environment or {})},
    )


def without_settings() -> dict[str, str]:
    """Return the environment without any setting of Millstream."""
    ours = ("MILLSTREAM_", "REDIS_URL", "DATABASE_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def descendants(pid: int, depth_max: int = 100) -> set[int]:
    """Process ids of the direct and indirect children of `pid`."""
    parents = _parents()
    generations: set[int] = set()
    generation = {pid}
    for _ in range(depth_max):
        generation = {child for child, parent in parents.items() if parent in generation}
        if not generation:
            break
        generations |= generation
    return generations


def _parents() -> dict[int, int]:
    """Map every process on this machine to its parent."""
    found = {}
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            found[int(directory.name)] = int(
                (directory / "stat").read_text().rpartition(")")[2].split()[1]
            )
    return found


def command_line(pid: int) -> str:
    """Return the command line of a process, or nothing when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def all_gone(pids: set[int], within_s: float) -> bool:
    """Return whether all processes end within that time; a zombie counts as ended."""
    deadline = time.monotonic() + within_s
    while any(command_line(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
