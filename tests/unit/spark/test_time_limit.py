"""Unit tests of the time limit of Spark jobs: they are cancelled until they have ended."""

from threading import Event

from spark_worker.runtime.time_limit import time_limit
from storage.domain import limits
from tests.conditions import PATIENCE_S


class Cancellations:
    """Counts calls, and has an event for the last one of these."""

    def __init__(self, last: int = 0) -> None:
        self.count = 0
        self.is_last = Event()
        self._last = last

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._last:
            self.is_last.set()


def test_jobs_are_cancelled_until_the_block_has_ended(monkeypatch):
    """A stage that is submitted between two calls goes on after the first one."""
    monkeypatch.setattr(limits, "SPARK_CANCEL_MS", 10)
    cancel = Cancellations(last=3)

    with time_limit(10, cancel) as is_over:
        assert cancel.is_last.wait(PATIENCE_S)

    assert is_over.is_set()


def test_jobs_within_the_time_limit_are_not_cancelled():
    cancel = Cancellations()

    with time_limit(60_000, cancel) as is_over:
        pass

    assert (cancel.count, is_over.is_set()) == (0, False)
