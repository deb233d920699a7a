"""Private servers: the interface for their supervisor, and running one during a block."""

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
    """Return True: the `alive` of a process that is not watched."""
    return True


class EmbeddedServer(Protocol):
    """Private server, as seen by its supervisor."""

    name: str
    stop_signal: signal.Signals
    log: Path

    @property
    def url(self) -> str:
        """URL for clients."""
        ...

    @property
    def run_as(self) -> RunAs | None:
        """User that it must run as, or None for our own."""
        ...

    def prepare(self) -> None:
        """Prepare the data directory; cheap when that is done. Raises EmbeddedServerError."""
        ...

    def command(self) -> list[str]:
        """Return the program and its arguments."""
        ...

    def wait_ready(self, timeout_s: float = READY_S, alive: Alive = always) -> None:
        """Wait until it is ready. Raises ServerNotReady, with the last line of its log.

        `alive` returns whether its process still runs; when it does not, waiting ends immediately.
        """
        ...


@contextmanager
def running(server: EmbeddedServer) -> Iterator[str]:
    """Prepare and start the server, wait until it is ready, yield its URL, and stop it."""
    server.prepare()
    process = start(server)
    try:
        server.wait_ready(alive=lambda: process.poll() is None)
        yield server.url
    finally:
        stop(process, server.stop_signal)


def start(server: EmbeddedServer, *, keep_open: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a prepared server; its output goes to its log.

    `keep_open` are descriptors it inherits. It has a separate session, so that Ctrl-C reaches the supervisor only.
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
    """Wait until `is_ready` returns True.

    Raises ServerNotReady, with the last line of the server's log.
    """
    deadline = time.monotonic() + timeout_s
    while not is_ready():
        if not alive() or time.monotonic() > deadline:
            why = f"was not ready after {timeout_s:.0f} s" if alive() else "exited during startup"
            last = last_line(tail(server.log))
            raise ServerNotReady(f"{server.name} {why}: {last} (see {server.log})")
        time.sleep(READY_POLL_S)
