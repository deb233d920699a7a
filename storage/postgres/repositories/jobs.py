"""Repository of jobs. The clock of leases and waits is Postgres's, so all workers agree."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, func, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import JobNotFound, JobRefused, NamespaceNotFound, StorageUnavailable
from storage.domain.jobs import (
    CALL_KINDS,
    Job,
    JobKind,
    JobLease,
    JobPart,
    JobState,
    JobStatus,
    LeaseLost,
    Outcome,
    RequestedState,
)
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import JobPartRow, JobRow

_LOST = "The worker was lost."

JobCursor = tuple[int, str]
"""End of a page of jobs: creation time and id of its last job."""


class JobRows(Repository):
    """Stored jobs. Every method raises StorageUnavailable or StorageBusy.

    All may be repeated when their outcome is unknown, so an unanswered commit is reported as a failed one.
    """

    async def insert(
        self,
        job_id: str,
        *,
        namespace: str,
        kind: JobKind,
        subject: str,
        spec: Mapping[str, Any],
        attempts_max: int,
        delay_ms: int,
    ) -> Job | None:
        """Insert a job.

        Returns None if its id is taken or another one of its kind, namespace and subject is open. Raises
        NamespaceNotFound.
        """
        values = {
            "job_id": job_id,
            "namespace": namespace,
            "kind": kind.value,
            "subject": subject,
            "spec": _json(spec),
            "attempts_max": attempts_max,
            "delay_ms": delay_ms,
        }
        try:
            async with self._database.autocommitting() as session:
                row = (await session.execute(query("submit_job"), values)).one_or_none()
                return None if row is None else _job(row)
        except IntegrityError as error:
            raise NamespaceNotFound(f"Namespace '{namespace}' does not exist.") from error

    async def find(self, job_id: str) -> Job | None:
        """Return the job, or None."""
        jobs = await self._select(col(JobRow.job_id) == job_id, limit=1)
        return jobs[0] if jobs else None

    async def open(self, namespace: str, kind: JobKind, subject: str) -> Job | None:
        """Return the open job of a subject, or None."""
        jobs = await self._select(
            col(JobRow.namespace) == namespace,
            col(JobRow.kind) == kind.value,
            col(JobRow.subject) == subject,
            col(JobRow.state).in_([state.value for state in JobState if not state.is_over]),
            limit=1,
        )
        return jobs[0] if jobs else None

    async def page(
        self,
        namespace: str | None,
        kind: JobKind | None,
        state: JobState | None,
        after: JobCursor | None,
        limit: int,
        *,
        subject: str | None = None,
    ) -> list[Job]:
        """Return jobs, the newest first, strictly after `after`; None disables a filter."""
        filters = {"namespace": namespace, "kind": kind, "state": state, "subject": subject}
        conditions = [
            col(getattr(JobRow, name)) == value for name, value in filters.items() if value
        ]
        if after is not None:
            conditions.append(tuple_(col(JobRow.created_at_ms), col(JobRow.job_id)) < after)
        return await self._select(*conditions, limit=limit)

    async def failed(self, namespace: str, limit: int) -> list[Job]:
        """Return failed jobs of a namespace that no call has waited for, the newest first."""
        is_failed = col(JobRow.state) == JobState.FAILED
        no_call = col(JobRow.kind).not_in(CALL_KINDS)
        own = col(JobRow.namespace) == namespace
        return await self._select(own, is_failed, no_call, limit=limit)

    async def count(self, kind: JobKind) -> list[tuple[str, int]]:
        """Return the number of jobs of a kind by state."""
        statement = select(col(JobRow.state), func.count()).where(col(JobRow.kind) == kind.value)
        async with self._database.reading() as session:
            rows = await session.execute(statement.group_by(col(JobRow.state)))
            return [(state, count) for state, count in rows]

    async def claim(
        self,
        worker: str,
        kinds: Sequence[JobKind],
        *,
        lease_ms: int,
        orphaned_ms: int | None,
        holds_lock: bool,
    ) -> Job | None:
        """Lease the job that has been due longest to the worker, or return None.

        Jobs that must not be started again are ended first. Before that, leases of workers end that do not hold their locks any more
        and have not renewed them for `orphaned_ms`, unless that is None. `holds_lock`: this worker holds its own.
        """
        ending = {"kinds": [kind.value for kind in kinds], "failure": _LOST}
        parameters = ending | {"worker": worker, "lease_ms": lease_ms, "holds_lock": holds_lock}
        async with self._database.writing(unknown=StorageUnavailable) as session:
            if orphaned_ms is not None:
                orphaned = {"orphaned_ms": orphaned_ms, "lease_ms": lease_ms}
                await session.execute(query("end_orphaned_leases"), ending | orphaned)
            await session.execute(query("end_abandoned"), ending)
            row = (await session.execute(query("claim_job"), parameters)).one_or_none()
            return None if row is None else _job(row)

    async def heartbeat(
        self, claim: JobLease, progress: Mapping[str, Any] | None, lease_ms: int
    ) -> RequestedState:
        """Renew the lease, store the job's progress, and return the requested action.

        Raises LeaseLost.
        """
        values = msgspec.structs.asdict(claim) | {
            "lease_ms": lease_ms,
            "progress": None if progress is None else _json(progress),
        }
        async with self._database.autocommitting() as session:
            requested = await session.scalar(query("renew_lease"), values)
        if requested is None:
            raise LeaseLost
        return RequestedState(requested)

    async def save_progress(self, claim: JobLease, progress: Mapping[str, Any]) -> None:
        """Store the progress of an attempt that has advanced. Raises LeaseLost."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await continue_attempt(session, claim, progress, advanced=True)

    async def change(self, job_id: str, decide: Callable[[Job, bool], JobStatus]) -> Job:
        """Change a job's state as `decide` returns, under a lock on its row.

        `decide` is given the job and whether a worker holds it. Raises JobNotFound, errors of `decide`, and JobRefused where
        another job of its subject is open.
        """
        try:
            async with self._database.writing(unknown=StorageUnavailable) as session:
                row = await _hold(session, job_id)
                if row is None:
                    raise JobNotFound
                job = _job(row)
                return await _put(session, row, _status_values(row, decide(job, row.held)))
        except IntegrityError as error:
            raise JobRefused(
                "Another job of this type and subject is open.", reason="open"
            ) from error

    async def end_attempt(
        self, claim: JobLease, progress: Mapping[str, Any] | None, decide: Callable[[Job], Outcome]
    ) -> JobState:
        """End an attempt as `decide` returns; return the job's state.

        A repetition changes nothing. Raises LeaseLost.
        """
        async with self._database.writing(unknown=StorageUnavailable) as session:
            return await end_attempt(session, claim, progress, decide)

    async def parts(self, job_id: str) -> list[JobPart]:
        """Return a job's parts, by name."""
        statement = (
            rows_of(JobPartRow)
            .where(col(JobPartRow.job_id) == job_id)
            .order_by(col(JobPartRow.part))
        )
        async with self._database.reading() as session:
            return [struct_of(JobPart, row) for row in await session.execute(statement)]

    async def save_parts(self, claim: JobLease, parts: Sequence[JobPart]) -> None:
        """Store the progress of parts, all or none. Raises LeaseLost."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await hold_claim(session, claim)
            values = {
                "job_id": claim.job_id,
                "parts": [part.part for part in parts],
                "positions": [part.position for part in parts],
                "dones": [part.done for part in parts],
                "counts": [_json(part.counts) for part in parts],
            }
            await session.execute(query("save_parts"), values)

    async def delete_ended(self, retention_ms: int, result_retention_ms: int, limit: int) -> int:
        """Delete jobs that ended more than `retention_ms` ago, at most `limit`; return how many.

        Kinds of calls have a retention of their own: their results are deleted with them.
        """
        async with self._database.autocommitting() as session:
            values = {
                "kept_ms": retention_ms,
                "result_kept_ms": result_retention_ms,
                "call_kinds": [*CALL_KINDS],
                "limit": limit,
            }
            deleted = await session.execute(query("forget_jobs"), values)
            return int(deleted.rowcount)  # type: ignore[attr-defined]

    async def _select(self, *conditions: Any, limit: int) -> list[Job]:
        newest_first = (col(JobRow.created_at_ms).desc(), col(JobRow.job_id).desc())
        statement = rows_of(JobRow).where(*conditions).order_by(*newest_first).limit(limit)
        async with self._database.reading() as session:
            return [_job(row) for row in await session.execute(statement)]


async def hold_claim(session: AsyncSession, claim: JobLease) -> None:
    """Keep an attempt the job's holder until the caller's transaction ends. Raises LeaseLost."""
    if await session.scalar(query("hold_claim"), msgspec.structs.asdict(claim)) is None:
        raise LeaseLost


async def share_claim(session: AsyncSession, claim: JobLease) -> None:
    """Keep an attempt the job's holder as `hold_claim` does, beside its other transactions."""
    if await session.scalar(query("share_claim"), msgspec.structs.asdict(claim)) is None:
        raise LeaseLost


async def attempt_outcome(session: AsyncSession, claim: JobLease) -> JobState | None:
    """Return the state in which an attempt ended, None while it runs.

    The state is locked until the caller's transaction ends. For a caller whose commit was not answered: the attempt ends
    with that commit, or not at all. Raises LeaseLost.
    """
    row = await _hold_claimed(session, claim)
    return None if row.state == JobState.RUNNING else JobState(row.state)


async def end_attempt(
    session: AsyncSession,
    claim: JobLease,
    progress: Mapping[str, Any] | None,
    decide: Callable[[Job], Outcome],
) -> JobState:
    """End an attempt inside the caller's transaction: the job's state changes with it.

    Returns the job's resulting state; an attempt that has ended before changes nothing, and its state is returned. Raises
    LeaseLost.
    """
    row = await _hold_claimed(session, claim)
    if row.state != JobState.RUNNING:
        return JobState(row.state)
    outcome = decide(_job(row))
    values = _outcome(row, outcome)
    if progress is not None:
        values["progress"] = dict(progress)
    await _put(session, row, values)
    return outcome.state


async def continue_attempt(
    session: AsyncSession, claim: JobLease, progress: Mapping[str, Any], *, advanced: bool
) -> None:
    """Store an attempt's progress inside the caller's transaction.

    If it has `advanced`, the job's failures until then do not count any more. Raises LeaseLost.
    """
    row = await _hold_claimed(session, claim)
    values: dict[str, Any] = {"progress": dict(progress)}
    await _put(session, row, values | ({"failures": 0} if advanced else {}))


async def _hold_claimed(session: AsyncSession, claim: JobLease) -> Row[Any]:
    row = await _hold(session, claim.job_id)
    if row is None or (row.attempt, row.worker) != (claim.attempt, claim.worker):
        raise LeaseLost
    return row


async def _hold(session: AsyncSession, job_id: str) -> Row[Any] | None:
    return (await session.execute(query("hold_job"), {"job_id": job_id})).one_or_none()


async def _put(session: AsyncSession, row: Row[Any], values: dict[str, Any]) -> Job:
    changed = (
        update(JobRow)
        .where(col(JobRow.job_id) == row.job_id)
        .values(**values)
        .returning(JobRow.__table__)  # type: ignore[attr-defined]
    )
    return _job((await session.execute(changed)).one())


def _status_values(row: Row[Any], status: JobStatus) -> dict[str, Any]:
    """Return the columns that an owner's command changes.

    A job that leaves its worker this way has no worker: no attempt can write.
    """
    values: dict[str, Any] = {"state": status.state.value, "wish": status.requested_state.value}
    if status.state.value == row.state:
        return values
    values |= {"worker": None, "lease_until_ms": None}
    values["ended_at_ms"] = row.now_ms if status.state.is_over else None
    if status.state is JobState.QUEUED:
        values |= {"run_after_ms": row.now_ms}
    if row.state == JobState.FAILED:
        values |= {"failures": 0, "failure": ""}
    return values


def _outcome(row: Row[Any], outcome: Outcome) -> dict[str, Any]:
    """Return the columns that the end of an attempt changes.

    Its worker stays recorded, so that it may repeat the request.
    """
    return {
        "state": outcome.state.value,
        "wish": RequestedState.NONE.value,
        "failures": outcome.failures,
        "failure": outcome.failure[: limits.JOB_FAILURE_CHARACTERS_MAX],
        "run_after_ms": row.now_ms + outcome.wait_ms,
        "lease_until_ms": None,
        "ended_at_ms": row.now_ms if outcome.state.is_over else None,
    }


def _job(row: Row[Any]) -> Job:
    return struct_of(
        Job,
        row,
        kind=JobKind(row.kind),
        state=JobState(row.state),
        requested_state=RequestedState(row.wish),
    )


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
