"""Time limit of Spark jobs, which are cancelled until they have ended.

One cancellation is not enough. It misses a job that is submitted after it, and where it covers later jobs of a group, Spark 4 still runs the
stages that adaptive execution submits one by one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from storage.domain import limits


@contextmanager
def time_limit(limit_ms: int, cancel: Callable[[], object]) -> Iterator[Event]:
    """Call `cancel` after a time, and again until the block ends; yield whether it was called."""
    is_over, has_ended = Event(), Event()

    def watch() -> None:
        wait_ms = limit_ms
        while not has_ended.wait(wait_ms / limits.SECOND_MS):
            is_over.set()
            cancel()
            wait_ms = limits.SPARK_CANCEL_MS

    Thread(target=watch, name="spark time limit", daemon=True).start()
    try:
        yield is_over
    finally:
        has_ended.set()
