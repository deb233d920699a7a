"""Unit tests of the time limit of queries: their Spark jobs are cancelled until they have ended."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from spark_worker.queries.job import _time_limit
from spark_worker.runtime.job_context import PermanentFailure
from storage.domain import limits
from tests.conditions import PATIENCE_S

GROUP = "job-1"


class Scheduler:
    """Scheduler of Spark, which notes the groups that it cancels."""

    def __init__(self, cancels: int = 0) -> None:
        self.groups: list[str] = []
        self.has_cancelled = Event()
        self._cancels = cancels

    def cancelJobGroupAndFutureJobs(self, group: str) -> None:
        self.groups.append(group)
        if len(self.groups) == self._cancels:
            self.has_cancelled.set()


def work(scheduler: Scheduler) -> Any:
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scheduler))
    spark = SimpleNamespace(sparkContext=context)
    return SimpleNamespace(spark=spark, group=GROUP, check=lambda: None)


def run_until_cancelled(scheduler: Scheduler) -> None:
    """Run a query whose stages go on until the last one of these calls."""
    with _time_limit(work(scheduler), 1_000):
        assert scheduler.has_cancelled.wait(PATIENCE_S)
        raise PySparkException("cancelled")


def test_jobs_are_cancelled_until_the_query_has_ended(monkeypatch):
    """A stage that is submitted between two calls goes on after the first one."""
    monkeypatch.setattr(limits, "QUERY_CANCEL_MS", 10)
    scheduler = Scheduler(cancels=3)

    with pytest.raises(PermanentFailure, match="longer than 1 seconds"):
        run_until_cancelled(scheduler)

    assert {*scheduler.groups} == {GROUP}


def test_jobs_within_the_time_limit_are_not_cancelled():
    scheduler = Scheduler()

    with _time_limit(work(scheduler), 60_000):
        pass

    assert scheduler.groups == []
