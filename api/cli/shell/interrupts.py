"""Interruption by SIGTERM, or because the reader of the output is gone.

Both are raised inside the command, so that its resources are released on the way out.
"""

import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from api.cli.errors import PipeClosed, Terminated

POLL_MS = 200


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM raise Terminated while the block runs, if this is the main thread."""
    with _on_sigterm(Terminated):
        yield


@contextmanager
def exit_on_broken_pipe() -> Iterator[None]:
    """Raise PipeClosed in the block once the pipe behind standard output is closed.

    Code that waits for data to write would not notice. SIGTERM interrupts it; a SIGTERM with another cause raises Terminated as
    always.
    """
    reader_left, over = threading.Event(), threading.Event()
    main = threading.main_thread()
    if (descriptor := _stdout()) is None or threading.current_thread() is not main:
        yield
        return

    def watch() -> None:
        while not over.is_set():
            if _is_closed(descriptor, POLL_MS):
                reader_left.set()
                signal.pthread_kill(main.ident or 0, signal.SIGTERM)
                return

    def kind() -> BaseException:
        return PipeClosed() if reader_left.is_set() else Terminated()

    with _on_sigterm(kind):
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def check_reader() -> None:
    """Raise PipeClosed when the pipe behind standard output is closed."""
    descriptor = _stdout()
    if descriptor is not None and _is_closed(descriptor, 0):
        raise PipeClosed


def _is_closed(descriptor: int, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    return bool(poll.poll(timeout_ms))


def _stdout() -> int | None:
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):  # not a file of the system
        return None


@contextmanager
def _on_sigterm(make: Callable[[], BaseException]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends it twice
        raise make()

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
