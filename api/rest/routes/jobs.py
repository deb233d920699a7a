"""Spark jobs: status, cancellation and retry."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import Cursor, Limit, PrincipalDep, StorageDep, may_all
from api.native.examples import AT, LATER, Example, Repeat
from api.rest.schemas.job import JobDetail, JobOut, JobPage, JobPartOut
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import JobNotFound
from storage.domain.jobs import Job, JobKind, JobState
from storage.operations.job_waits import wait_reasons

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=AuditedRoute)

MANAGE = Depends(may_all(Action.JOB_MANAGE))
SEE = Depends(may_all(Action.JOB_LIST))
JobId = Annotated[str, Path(description="As returned by the list.")]


@router.get("", dependencies=[SEE])
async def list_jobs(
    storage: StorageDep,
    principal: PrincipalDep,
    kind: Annotated[JobKind | None, Query()] = None,
    state: Annotated[JobState | None, Query()] = None,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> JobPage:
    """List jobs, newest first. Finished jobs are listed for 30 days."""
    about = ("jobs", principal.namespace, kind or "", state or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    jobs = await storage.jobs.list(
        namespace=principal.namespace, kind=kind, state=state, after=after, limit=limit + 1
    )
    page = page_of(jobs, limit, about, lambda job: (job.created_at_ms, job.job_id))
    waits = await wait_reasons(storage.presence, *page.items)
    return JobPage(
        items=[JobOut.of(job, waits.get(job.job_id)) for job in page.items],
        next_cursor=page.next_cursor,
    )


@router.get("/{job}", dependencies=[SEE])
async def get_job(job: JobId, storage: StorageDep, principal: PrincipalDep) -> JobDetail:
    """Show the progress of a job."""
    stored = await _job_of(storage, principal, job)
    waits = await wait_reasons(storage.presence, stored)
    parts = await storage.jobs.parts(stored.job_id)
    return JobDetail.of(
        stored,
        waits.get(stored.job_id),
        parts=[JobPartOut.from_domain(part) for part in parts.values()],
    )


@router.post("/{job}/cancel", dependencies=[MANAGE])
async def cancel_job(job: JobId, storage: StorageDep, principal: PrincipalDep) -> JobOut:
    """Cancel a job; completed work is kept.

    A running job ends within seconds; until then its `requested_state` is 'cancel'.
    """
    stored = await _job_of(storage, principal, job)
    return await _answer(storage, await storage.jobs.cancel(stored.job_id))


@router.post("/{job}/retry", dependencies=[MANAGE])
async def retry_job(job: JobId, storage: StorageDep, principal: PrincipalDep) -> JobOut:
    """Retry a failed job from where it stopped."""
    stored = await _job_of(storage, principal, job)
    return await _answer(storage, await storage.jobs.retry(stored.job_id))


async def _answer(storage: StorageDep, job: Job) -> JobOut:
    return JobOut.of(job, (await wait_reasons(storage.presence, job)).get(job.job_id))


async def _job_of(storage: StorageDep, principal: Principal, job_id: str) -> Job:
    """Return the job of the caller's namespace. Raises JobNotFound."""
    job = await storage.jobs.get(job_id)
    if job.namespace != principal.namespace:
        raise JobNotFound
    return job


# Examples of the OpenAPI document

JOB_ID = "0b1c2d3e4f5061728394a5b6c7d8e9f0"
_JOB = {
    "id": JOB_ID,
    "kind": "archive",
    "subject": "logs",
    "state": "failed",
    "requested_state": "none",
    "waiting_for": None,
    "attempt": 10,
    "failures": 10,
    "attempts_max": 10,
    "progress": {"files": 12},
    "failure": "The archive's bucket rejected the request.",
    "created_at": AT,
    "run_after": AT,
    "started_at": AT,
    "ended_at": LATER,
}

EXAMPLES = {
    "list_jobs": Example(
        "/v1/jobs?kind=archive&limit=10", answer={"items": [_JOB], "next_cursor": None}
    ),
    "get_job": Example(
        f"/v1/jobs/{JOB_ID}",
        answer={
            **_JOB,
            "parts": [{"part": "0", "position": 5000, "done": False, "counts": {"records": 5000}}],
        },
    ),
    "retry_job": Example(
        f"/v1/jobs/{JOB_ID}/retry",
        answer={
            **_JOB,
            "state": "queued",
            "waiting_for": "worker",
            "failures": 0,
            "failure": "",
            "ended_at": None,
        },
        repeat=Repeat.SAFE,
    ),
    "cancel_job": Example(
        f"/v1/jobs/{JOB_ID}/cancel", answer={**_JOB, "state": "cancelled"}, repeat=Repeat.SAFE
    ),
}
