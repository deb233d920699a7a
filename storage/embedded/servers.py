"""What every private server is to its supervisor, and one for as long as a block runs."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from storage.embedded.errors import ServerNotReady
from storage.embedded.processes import RunAs, child_setup, last_line, open_log, stop, tail

READY_POLL_S = 0.02
READY_S = 30.0

Alive = Callable[[], bool]


def always() -> bool:
    """The `alive` of a process that nobody watches."""
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

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = always) -> None:
        """Return when it serves. Raises ServerNotReady, with the last line of its log.

        `alive` says whether its process still runs; when it does not, waiting ends at once.
        """
        ...


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


def wait_until(
    is_ready: Callable[[], bool], server: EmbeddedServer, timeout_s: float, alive: Alive
) -> None:
    """Return when `is_ready` says so. Raises ServerNotReady, with the last line of the server's log."""
    deadline = time.monotonic() + timeout_s
    while not is_ready():
        if not alive() or time.monotonic() > deadline:
            why = f"was not ready after {timeout_s:.0f} s" if alive() else "ended while starting"
            said = last_line(tail(server.log))
            raise ServerNotReady(f"{server.name} {why}: {said} (see {server.log})")
        time.sleep(READY_POLL_S)
