"""The rows of jobs. The clock of leases and waits is Postgres's own, so that all workers agree."""

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
    Claim,
    Job,
    JobKind,
    JobPart,
    JobState,
    LeaseLost,
    Outcome,
    Standing,
    Wish,
)
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import JobPartRow, JobRow

_LOST = "Its worker was lost."

Place = tuple[int, str]
"""Where a page of jobs ends: when its last was made, and its id."""


class JobRows:
    """Jobs as they are stored. Every method raises StorageUnavailable or StorageBusy.

    All may be repeated when it is unknown whether they were done, so an unanswered commit is told as none.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(
        self,
        job_id: str,
        namespace: str,
        kind: JobKind,
        subject: str,
        spec: Mapping[str, Any],
        attempts_max: int,
        delay_ms: int,
    ) -> Job | None:
        """A new job; None where its id is taken or another one of its kind, namespace and subject is open.

        Raises NamespaceNotFound.
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
            async with self._database.writing(unknown=StorageUnavailable) as session:
                made = (await session.execute(query("submit_job"), values)).one_or_none()
                return None if made is None else _job(made)
        except IntegrityError as error:
            raise NamespaceNotFound(f"There is no namespace '{namespace}'.") from error

    async def find(self, job_id: str) -> Job | None:
        """The job, or None."""
        found = await self._select(col(JobRow.job_id) == job_id, limit=1)
        return found[0] if found else None

    async def open(self, namespace: str, kind: JobKind, subject: str) -> Job | None:
        """The open job of a subject, or None."""
        found = await self._select(
            col(JobRow.namespace) == namespace,
            col(JobRow.kind) == kind.value,
            col(JobRow.subject) == subject,
            col(JobRow.state).in_([state.value for state in JobState if not state.is_over]),
            limit=1,
        )
        return found[0] if found else None

    async def page(
        self,
        namespace: str | None,
        kind: JobKind | None,
        state: JobState | None,
        after: Place | None,
        limit: int,
    ) -> list[Job]:
        """Jobs, the newest first, strictly after `after`; what is None is not looked at."""
        wanted = {"namespace": namespace, "kind": kind, "state": state}
        conditions = [col(getattr(JobRow, name)) == word for name, word in wanted.items() if word]
        if after is not None:
            conditions.append(tuple_(col(JobRow.created_at_ms), col(JobRow.job_id)) < after)
        return await self._select(*conditions, limit=limit)

    async def count(self, kind: JobKind) -> list[tuple[str, int]]:
        """(state, how many) of the jobs of a kind."""
        wanted = select(col(JobRow.state), func.count()).where(col(JobRow.kind) == kind.value)
        async with self._database.reading() as session:
            rows = await session.execute(wanted.group_by(col(JobRow.state)))
            return [(state, count) for state, count in rows]

    async def claim(self, worker: str, kinds: Sequence[JobKind], lease_ms: int) -> Job | None:
        """Give the worker the job that is due longest, or None; end what nobody should begin again."""
        words = {"kinds": [kind.value for kind in kinds], "failure": _LOST}
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("end_abandoned"), words)
            asked = words | {"worker": worker, "lease_ms": lease_ms}
            found = (await session.execute(query("claim_job"), asked)).one_or_none()
            return None if found is None else _job(found)

    async def heartbeat(
        self, claim: Claim, progress: Mapping[str, Any] | None, lease_ms: int
    ) -> Wish:
        """Renew the lease, and store how far the job is; what the owner wishes. Raises LeaseLost."""
        values = msgspec.structs.asdict(claim) | {
            "lease_ms": lease_ms,
            "progress": None if progress is None else _json(progress),
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            wish = await session.scalar(query("renew_lease"), values)
        if wish is None:
            raise LeaseLost
        return Wish(wish)

    async def change(self, job_id: str, decide: Callable[[Job, bool], Standing]) -> Job:
        """Put a job where `decide` says, which is told the job and whether a worker holds it, with nobody in
        between. Raises JobNotFound, what `decide` does, and JobRefused where another of its subject is open."""
        try:
            async with self._database.writing(unknown=StorageUnavailable) as session:
                row = await _hold(session, job_id)
                if row is None:
                    raise JobNotFound
                job = _job(row)
                return await _put(session, row, _standing(row, decide(job, row.held)))
        except IntegrityError as error:
            raise JobRefused(
                "Another job of this kind and subject is open.", reason="open"
            ) from error

    async def let_go(
        self, claim: Claim, progress: Mapping[str, Any] | None, decide: Callable[[Job], Outcome]
    ) -> JobState:
        """End an attempt as `decide` says; gives the job's state. Said again, it changes nothing.

        Raises LeaseLost.
        """
        async with self._database.writing(unknown=StorageUnavailable) as session:
            return await let_go(session, claim, progress, decide)

    async def parts(self, job_id: str) -> list[JobPart]:
        """A job's parts, by name."""
        wanted = (
            select(JobPartRow.__table__)  # type: ignore[attr-defined]
            .where(col(JobPartRow.job_id) == job_id)
            .order_by(col(JobPartRow.part))
        )
        async with self._database.reading() as session:
            return [
                JobPart(row.part, row.position, row.done, row.counts)
                for row in await session.execute(wanted)
            ]

    async def save_parts(self, claim: Claim, parts: Sequence[JobPart]) -> None:
        """Store how far parts are, all or none. Raises LeaseLost."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            held = await session.scalar(query("hold_claim"), msgspec.structs.asdict(claim))
            if held is None:
                raise LeaseLost
            values = {
                "job_id": claim.job_id,
                "parts": [part.part for part in parts],
                "positions": [part.position for part in parts],
                "dones": [part.done for part in parts],
                "counts": [_json(part.counts) for part in parts],
            }
            await session.execute(query("save_parts"), values)

    async def forget(self, kept_ms: int, limit: int) -> int:
        """Delete jobs that have been over for so long, at most `limit`; gives how many."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            values = {"kept_ms": kept_ms, "limit": limit}
            gone = await session.execute(query("forget_jobs"), values)
            return int(gone.rowcount)  # type: ignore[attr-defined]

    async def _select(self, *conditions: Any, limit: int) -> list[Job]:
        newest_first = (col(JobRow.created_at_ms).desc(), col(JobRow.job_id).desc())
        wanted = select(JobRow.__table__).where(*conditions).order_by(*newest_first).limit(limit)  # type: ignore[attr-defined]
        async with self._database.reading() as session:
            return [_job(row) for row in await session.execute(wanted)]


async def ended(session: AsyncSession, claim: Claim) -> JobState | None:
    """How an attempt ended, None while it runs; nobody changes that until the caller's transaction ends.

    For one whose commit was not answered: the attempt ends with that, or not at all. Raises LeaseLost.
    """
    row = await _hold_claimed(session, claim)
    return None if row.state == JobState.RUNNING else JobState(row.state)


async def let_go(
    session: AsyncSession,
    claim: Claim,
    progress: Mapping[str, Any] | None,
    decide: Callable[[Job], Outcome],
) -> JobState:
    """End an attempt inside the caller's transaction: the job's state changes with it, or not at all.

    Gives the state the job has then; an attempt that has ended before changes nothing, and hears how.
    Raises LeaseLost.
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


async def _hold_claimed(session: AsyncSession, claim: Claim) -> Row[Any]:
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


def _standing(row: Row[Any], standing: Standing) -> dict[str, Any]:
    """What an owner's word changes. A job that leaves its worker's hands so has no worker: no attempt can write."""
    values: dict[str, Any] = {"state": standing.state.value, "wish": standing.wish.value}
    if standing.state.value == row.state:
        return values
    values |= {"worker": None, "lease_until_ms": None}
    values["ended_at_ms"] = row.now_ms if standing.state.is_over else None
    if standing.state is JobState.QUEUED:
        values |= {"run_after_ms": row.now_ms}
    if row.state == JobState.FAILED:
        values |= {"failures": 0, "failure": ""}
    return values


def _outcome(row: Row[Any], outcome: Outcome) -> dict[str, Any]:
    """What an attempt's end changes. Its worker stays named, so that it may say the same again."""
    return {
        "state": outcome.state.value,
        "wish": Wish.NONE.value,
        "failures": outcome.failures,
        "failure": outcome.failure[: limits.JOB_FAILURE_CHARACTERS_MAX],
        "run_after_ms": row.now_ms + outcome.wait_ms,
        "lease_until_ms": None,
        "ended_at_ms": row.now_ms if outcome.state.is_over else None,
    }


def _job(row: Row[Any]) -> Job:
    return Job(
        job_id=row.job_id,
        namespace=row.namespace,
        kind=JobKind(row.kind),
        subject=row.subject,
        spec=row.spec,
        state=JobState(row.state),
        wish=Wish(row.wish),
        attempt=row.attempt,
        failures=row.failures,
        attempts_max=row.attempts_max,
        run_after_ms=row.run_after_ms,
        worker=row.worker,
        progress=row.progress,
        failure=row.failure,
        created_at_ms=row.created_at_ms,
        started_at_ms=row.started_at_ms,
        ended_at_ms=row.ended_at_ms,
    )


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
