"""Reasons why queued jobs wait, seen with the processes that run."""

from collections.abc import Mapping

from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobState, WaitReason
from storage.domain.presence import ProcessRole
from storage.operations.presence import ProcessRegistry


async def wait_reasons(registry: ProcessRegistry, *jobs: Job) -> Mapping[str, WaitReason | None]:
    """Return what each job waits for, by its id; nothing while the hot store does not answer."""
    if not any(job.state is JobState.QUEUED for job in jobs):
        return {}
    try:
        processes = await registry.processes()
    except MillstreamError:
        return {}
    has_worker = any(process.role is ProcessRole.WORKER for process in processes)
    now_ms = registry.clock.now_ms()
    return {job.job_id: job.waiting_for(now_ms, has_worker=has_worker) for job in jobs}
