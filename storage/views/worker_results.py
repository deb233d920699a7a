"""Results of jobs that a caller waits for: a worker computes them with Spark."""

from collections.abc import Mapping
from typing import Any

import attrs

from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobKind, JobState, WaitReason
from storage.jobs import Jobs
from storage.operations.job_waits import JobWaiter

_WAITS = {
    WaitReason.WORKER: "no worker runs; start one with `millstream worker`",
    WaitReason.CAPACITY: "the workers have no free place; try again in some seconds",
    WaitReason.SPARK: "Spark starts; try again in some seconds",
    WaitReason.EXECUTORS: "the Spark cluster runs no executors",
}


@attrs.define(eq=False, slots=False)
class WorkerResults:
    """Results of jobs of one kind. Concurrent callers with the same subject share a job.

    `pending`: error for a caller who has waited for VIEW_RESULT_WAIT_MS; `verb`: what the worker does, such as `planned`.
    """

    _jobs: Jobs
    _waiter: JobWaiter
    _kind: JobKind
    _pending: type[MillstreamError]
    _verb: str

    async def get(self, namespace: str, subject: str, spec: Mapping[str, Any]) -> Any:
        """Return the result of a job, as its worker stored it. Raises `pending`."""
        job = await self._jobs.submit(namespace, self._kind, subject, spec, take_open=True)
        return (await self._ended(job)).progress["result"]

    async def _ended(self, job: Job) -> Job:
        """Wait for the end of a job. Raises `pending`, soon if no worker runs."""
        job, waiting_for = await self._waiter.ended(job, limits.VIEW_RESULT_WAIT_MS)
        if not job.state.is_over:
            raise self._error(job, waiting_for)
        if job.state is not JobState.DONE:
            reason = job.failure or f"its job is {job.state.value}"
            raise self._pending(f"The query was not {self._verb}: {reason}. Nothing happened.")
        return job

    def _error(self, job: Job, reason: WaitReason | None) -> MillstreamError:
        what = _WAITS.get(reason) if reason else None
        detail = what or job.failure or "a worker works on it; try again in some seconds"
        return self._pending(f"The query is not {self._verb} yet: {detail}. Nothing happened.")
