"""Back-tests of the in-memory service that run as jobs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream_client.testing.definitions import Clock, moment, seconds_of
from millstream_client.testing.problems import Problem
from millstream_client.testing.topics.back_tests import BackTest, back_test_of
from millstream_client.testing.topics.routed_log import RoutedLog

ATTEMPTS_MAX = 10
OPEN = "queued"


@dataclass
class BackTestJob:
    """A back-test that runs as a job. It is evaluated when it is first shown."""

    id: str
    test: BackTest
    created_at: float
    result: dict[str, Any]
    state: str = OPEN
    attempt: int = 0
    failure: str = ""
    started_at: float | None = None
    ended_at: float | None = None

    def shown(self) -> dict[str, Any]:
        """Return the job as a back-test."""
        test = self.test
        return {
            **self._status(),
            "topic": test.topic,
            "match": test.match,
            "compare_with": test.compare_with,
            "start_time": _moment_of(test.start_time),
            "end_time": _moment_of(test.end_time),
            "messages": len(test.messages),
            "result": self.result,
        }

    def as_job(self) -> dict[str, Any]:
        """Return the job as those of every kind are shown."""
        failures = int(self.state == "failed")
        return {
            **self._status(),
            "kind": "backtest",
            "subject": self.test.topic,
            "failures": failures,
            "attempts_max": ATTEMPTS_MAX,
            "progress": {**self.result, "messages": len(self.test.messages)},
            "run_after": moment(self.created_at),
        }

    def _status(self) -> dict[str, Any]:
        times = {"started_at": self.started_at, "ended_at": self.ended_at}
        return {
            "id": self.id,
            "state": self.state,
            "requested_state": "none",
            "waiting_for": None,
            "attempt": self.attempt,
            "failure": self.failure,
            "created_at": moment(self.created_at),
            **{name: None if at is None else moment(at) for name, at in times.items()},
        }


class BackTestJobs:
    """Back-tests that run as jobs. A topic has one open job, until that is shown."""

    def __init__(self, now: Clock, topic_of: Callable[[str], RoutedLog]) -> None:
        self._now = now
        self._topic_of = topic_of
        self._jobs: dict[str, BackTestJob] = {}

    def start(self, topic: RoutedLog, fields: dict[str, Any]) -> BackTestJob:
        """Start a job, or return the open one of the same back-test. Raises Problem."""
        test = back_test_of(topic, fields)
        if job := self._open(topic.name):
            if job.test == test:
                return job
            detail = f"Job {job.id}, another back-test of this topic, is still open."
            raise _refused(detail, reason="open", job_id=job.id)
        job = BackTestJob(uuid.uuid4().hex, test, self._now(), test.unevaluated())
        self._jobs[job.id] = job
        return job

    def of_topic(self, topic: str, job_id: str) -> BackTestJob:
        """Return a job of a topic, which is evaluated now. Raises Problem."""
        job = self._jobs.get(job_id)
        if job is None or job.test.topic != topic:
            raise _not_found()
        return self.get(job_id)

    def get(self, job_id: str) -> BackTestJob:
        """Return a job, which is evaluated now. Raises Problem."""
        job = self._find(job_id)
        if job.state == OPEN:
            self._run(job)
        return job

    def cancel(self, job_id: str) -> BackTestJob:
        """Cancel a job that was not shown yet. Raises Problem."""
        job = self._find(job_id)
        if job.state not in {OPEN, "cancelled"}:
            raise _not_possible("cancelled", job)
        if job.state == OPEN:
            job.state, job.ended_at = "cancelled", self._now()
        return job

    def retry(self, job_id: str) -> BackTestJob:
        """Retry a failed job. Raises Problem."""
        job = self._find(job_id)
        if job.state != "failed":
            raise _not_possible("retried", job)
        if self._open(job.test.topic):
            raise _refused("Another job of this type and subject is open.", reason="open")
        job.state, job.failure, job.ended_at = OPEN, "", None
        return job

    def _run(self, job: BackTestJob) -> None:
        job.attempt += 1
        job.started_at = job.started_at or self._now()
        try:
            topic = self._topic_of(job.test.topic)
            if topic.log.id != job.test.log_id:
                detail = (
                    "The position belongs to a deleted stream; another stream has its name now."
                )
                raise Problem("stream_recreated", detail)
            job.result, job.state = job.test.evaluate(topic), "done"
        except Problem as problem:
            job.state, job.failure = "failed", problem.detail
        job.ended_at = self._now()

    def _find(self, job_id: str) -> BackTestJob:
        if job_id not in self._jobs:
            raise _not_found()
        return self._jobs[job_id]

    def _open(self, topic: str) -> BackTestJob | None:
        jobs = self._jobs.values()
        return next((job for job in jobs if (job.test.topic, job.state) == (topic, OPEN)), None)


def _not_found() -> Problem:
    return Problem("job_not_found", "The job does not exist.")


def _not_possible(done: str, job: BackTestJob) -> Problem:
    return _refused(f"The job cannot be {done} because it is {job.state}.", reason=job.state)


def _refused(detail: str, **members: Any) -> Problem:
    return Problem("job_refused", detail, **members)


def _moment_of(text: str | None) -> str | None:
    return None if text is None else moment(seconds_of(text))
