"""Jobs: long work that is submitted here and done by a worker.

`storage.domain.jobs` has their state machine.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from storage.domain import jobs as rules
from storage.domain import limits
from storage.domain.errors import JobNotFound, JobRefused, ValidationFailed
from storage.domain.jobs import (
    Job,
    JobCommand,
    JobKind,
    JobLease,
    JobPart,
    JobState,
    JobStatus,
    Outcome,
    RequestedState,
)
from storage.domain.limits import Limits
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.jobs import JobCursor, JobRows

_SUBMIT_ATTEMPTS = 3  # the open job may have ended before it is read


class Jobs:
    """The jobs of a deployment.

    Every method raises StorageUnavailable or StorageBusy, and may then be repeated. A worker's calls need its claim:
    LeaseLost is raised where another attempt has begun, or the job was ended for lack of a worker, and nothing was written
    then.
    """

    def __init__(self, database: Database, limits: Limits, listener: Listener) -> None:
        self._rows = JobRows(database)
        self._limits = limits
        self._listener = listener

    # Owner's calls

    async def submit(
        self,
        namespace: str,
        kind: JobKind,
        subject: str,
        spec: Mapping[str, Any],
        *,
        attempts_max: int = limits.JOB_ATTEMPTS_MAX_DEFAULT,
        delay_ms: int = 0,
        job_id: str | None = None,
        take_open: bool = False,
    ) -> Job:
        """Create a job, to be started after `delay_ms`; `spec` is JSON.

        If one of this kind, namespace and subject is open, returns that one with `take_open`, and otherwise raises
        JobRefused with `reason` 'open' and its `job_id`. With a `job_id` from the caller, the call may be
        repeated: it returns the job of that id, also if that is over. Raises NamespaceNotFound.
        """
        new_id = job_id or secrets.token_hex(16)
        for _ in range(_SUBMIT_ATTEMPTS):
            made = await self._rows.insert(
                new_id,
                namespace=namespace,
                kind=kind,
                subject=subject,
                spec=spec,
                attempts_max=attempts_max,
                delay_ms=delay_ms,
            )
            if made is not None:
                return made
            if (same := await self._rows.find(new_id)) is not None:
                return _checked_same(same, namespace, kind, subject)
            if (other := await self._rows.open(namespace, kind, subject)) is not None:
                return _reuse(other, take_open)
        raise JobRefused("Jobs of this type start and end too quickly; try again.", reason="open")

    async def get(self, job_id: str) -> Job:
        """Return one job.

        Raises JobNotFound.
        """
        job = await self._rows.find(job_id)
        if job is None:
            raise JobNotFound
        return job

    async def open_of(self, namespace: str, kind: JobKind, subject: str) -> Job | None:
        """Return the job of this kind, namespace and subject that is not over, or None."""
        return await self._rows.open(namespace, kind, subject)

    async def list(
        self,
        *,
        namespace: str | None = None,
        kind: JobKind | None = None,
        state: JobState | None = None,
        subject: str | None = None,
        after: JobCursor | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[Job]:
        """Return jobs, the newest first, strictly after `after`.

        `after` is (created_at_ms, job_id) of the last one seen.
        """
        return await self._rows.page(namespace, kind, state, after, limit, subject=subject)

    async def count(self, kind: JobKind) -> dict[JobState, int]:
        """Count the jobs of a kind by state, without those that are forgotten."""
        return {JobState(state): count for state, count in await self._rows.count(kind)}

    async def pause(self, job_id: str) -> Job:
        """Pause a job at its current position; a worker's attempt stops at its next heartbeat.

        Raises JobNotFound; JobRefused where the job is over or being cancelled.
        """
        return await self._command(job_id, JobCommand.PAUSE)

    async def resume(self, job_id: str) -> Job:
        """Resume a paused job, or withdraw the pending request.

        Raises as `pause` does.
        """
        return await self._command(job_id, JobCommand.RESUME)

    async def cancel(self, job_id: str) -> Job:
        """Cancel a job; its results so far stay.

        Raises JobNotFound; JobRefused where it is done or has failed.
        """
        return await self._command(job_id, JobCommand.CANCEL)

    async def retry(self, job_id: str) -> Job:
        """Restart a failed job at its current position.

        Raises JobNotFound; JobRefused where it has not failed, or another of its kind, namespace and subject is open.
        """
        return await self._command(job_id, JobCommand.RETRY)

    async def _command(self, job_id: str, command: JobCommand) -> Job:
        def decide(job: Job, is_leased: bool) -> JobStatus:
            return rules.apply_command(
                command, JobStatus(job.state, job.requested_state), is_leased=is_leased
            )

        return await self._rows.change(job_id, decide)

    async def failed(self, namespace: str, limit: int) -> Sequence[Job]:
        """Return failed jobs that no call has waited for, the newest first."""
        return await self._rows.failed(namespace, limit)

    async def parts(self, job_id: str) -> dict[str, JobPart]:
        """Return the progress of a job's parts, by name."""
        return {part.part: part for part in await self._rows.parts(job_id)}

    async def delete_old(self) -> int:
        """Delete jobs that were over long ago, a bounded number; return how many."""
        return await self._rows.delete_ended(
            limits.JOB_RETENTION_MS, limits.JOB_RESULT_RETENTION_MS, limits.JOB_DELETIONS_PER_CALL
        )

    # Worker's calls

    async def claim(self, worker: str, kinds: Sequence[JobKind]) -> Job | None:
        """Claim the job of these kinds that is due longest; None if nothing is due.

        See `Job.claim`. Takes also a job of another worker whose lease has expired, or was not renewed for a shorter while if that
        worker has no connection to Postgres while others have theirs. `worker` names one process, permanently.
        """
        is_settled = self._listener.is_settled
        return await self._rows.claim(
            worker,
            kinds,
            lease_ms=self._limits.job_lease_ms,
            orphaned_ms=self._limits.job_orphaned_ms if is_settled else None,
            holds_lock=self._listener.holds_worker_lock(worker),
        )

    async def heartbeat(
        self, claim: JobLease, progress: Mapping[str, Any] | None = None
    ) -> RequestedState:
        """Renew the lease, and store the progress unless None; return the owner's request.

        Raises LeaseLost.
        """
        return await self._rows.heartbeat(claim, progress, self._limits.job_lease_ms)

    async def save_progress(self, claim: JobLease, progress: Mapping[str, Any]) -> None:
        """Store the progress of an attempt that has advanced: failures before it no longer count.

        Raises LeaseLost.
        """
        await self._rows.save_progress(claim, progress)

    async def finish(
        self,
        claim: JobLease,
        state: JobState = JobState.DONE,
        progress: Mapping[str, Any] | None = None,
        failure: str = "",
    ) -> JobState:
        """End the attempt, and return the job's state.

        It is another one if this attempt has ended before, so the call may be repeated. Raises LeaseLost.
        """
        return await self._rows.end_attempt(
            claim, progress, lambda _: Outcome(state=state, failure=failure)
        )

    async def release(
        self,
        claim: JobLease,
        progress: Mapping[str, Any] | None = None,
        wait_ms: int = 0,
        failure: str = "",
    ) -> JobState:
        """Stop before the end: the job is paused, cancelled, or queued again.

        Paused or cancelled if its owner requested that; otherwise it is started again after `wait_ms`. `failure` is why, if
        something failed that is not the job: it counts no attempt. Returns its state, as
        `finish` does. Raises LeaseLost.
        """
        return await self._rows.end_attempt(
            claim, progress, lambda job: rules.waiting(job, wait_ms, failure)
        )

    async def fail(
        self,
        claim: JobLease,
        failure: str,
        *,
        retry: bool = True,
        progress: Mapping[str, Any] | None = None,
    ) -> JobState:
        """End the attempt with an error, and return the job's state as `finish` does.

        With `retry` the job is restarted after a delay, which doubles each time, until it has failed `attempts_max` times in
        a row. Raises LeaseLost.
        """
        return await self._rows.end_attempt(
            claim, progress, lambda job: self.after_failure(job, failure, retry=retry)
        )

    def after_failure(self, job: Job, failure: str, *, retry: bool = True) -> Outcome:
        """Return the outcome for a job whose attempt ended in an error, by the rules of `fail`."""
        return rules.failed(job, failure, retry=retry, first_wait_ms=self._limits.job_backoff_ms)

    def requeue(self) -> Outcome:
        """Return the outcome for a job that did not fail, and runs again in case work is left."""
        return Outcome(state=JobState.QUEUED, wait_ms=self._limits.job_backoff_ms)

    async def save_parts(self, claim: JobLease, parts: Sequence[JobPart]) -> None:
        """Store the progress of parts of the job, all of them or none.

        Raises LeaseLost, ValidationFailed.
        """
        if len(parts) > limits.JOB_PARTS_PER_CALL:
            raise ValidationFailed(f"At most {limits.JOB_PARTS_PER_CALL} parts per call.")
        await self._rows.save_parts(claim, parts)


def _checked_same(job: Job, namespace: str, kind: JobKind, subject: str) -> Job:
    if (job.namespace, job.kind, job.subject) != (namespace, kind, subject):
        raise JobRefused(
            "A different job with this id exists.", reason="id_taken", job_id=job.job_id
        )
    return job


def _reuse(job: Job, take_open: bool) -> Job:
    if not take_open:
        raise JobRefused(
            f"Job {job.job_id} of this type is still open.", reason="open", job_id=job.job_id
        )
    return job
