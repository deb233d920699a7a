"""Ending in the middle: told by SIGTERM, or because nobody reads what is written any more.

Both are raised where the command is, so that what it holds is given back on the way out.
"""

import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from api.cli.errors import PipeClosed, Terminated

LOOK_MS = 200


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Meanwhile SIGTERM raises Terminated, where this is the main thread."""
    with _on_sigterm(Terminated):
        yield


@contextmanager
def ended_without_reader() -> Iterator[None]:
    """Meanwhile PipeClosed is raised once the pipe behind standard output is closed: what waits for something to
    write would not notice. SIGTERM is what interrupts it, and nothing else than that means the same as ever."""
    reader_left, over = threading.Event(), threading.Event()
    main = threading.main_thread()
    if (descriptor := _stdout()) is None or threading.current_thread() is not main:
        yield
        return

    def watch() -> None:
        while not over.is_set():
            if _is_closed(descriptor, LOOK_MS):
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
    """Raises PipeClosed when the pipe behind standard output is closed."""
    descriptor = _stdout()
    if descriptor is not None and _is_closed(descriptor, 0):
        raise PipeClosed


def _is_closed(descriptor: int, patience_ms: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are told unasked
    return bool(poll.poll(patience_ms))


def _stdout() -> int | None:
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):  # it is none of the system's
        return None


@contextmanager
def _on_sigterm(make: Callable[[], BaseException]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` says it twice
        raise make()

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
