"""Reasons why jobs wait, seen with the processes that run."""

from collections.abc import Mapping

from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobState, WaitReason
from storage.domain.presence import ProcessRole
from storage.operations.presence import ProcessRegistry


async def wait_reasons(registry: ProcessRegistry, *jobs: Job) -> Mapping[str, WaitReason | None]:
    """Return what each job waits for, by its id; nothing while the hot store does not answer."""
    is_queued = any(job.state is JobState.QUEUED for job in jobs)
    try:
        has_worker = not is_queued or await _has_worker(registry)
    except MillstreamError:
        return {}
    now_ms = registry.clock.now_ms()
    return {job.job_id: job.waiting_for(now_ms, has_worker=has_worker) for job in jobs}


async def _has_worker(registry: ProcessRegistry) -> bool:
    return any(process.role is ProcessRole.WORKER for process in await registry.processes())
