"""Reasons why jobs wait, seen with the processes that run."""

from collections.abc import Iterable, Mapping

from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobState, WaitReason
from storage.domain.presence import ProcessRole, ProcessSeen
from storage.operations.presence import ProcessRegistry


async def wait_reasons(registry: ProcessRegistry, *jobs: Job) -> Mapping[str, WaitReason | None]:
    """Return what each job waits for, by its id; nothing while the hot store does not answer."""
    try:
        is_queued = any(job.state is JobState.QUEUED for job in jobs)
        processes = await registry.processes() if is_queued else ()
    except MillstreamError:
        return {}
    return reasons_among(processes, jobs, registry.clock.now_ms())


def reasons_among(
    processes: Iterable[ProcessSeen], jobs: Iterable[Job], now_ms: int
) -> Mapping[str, WaitReason | None]:
    """Return what each job waits for while these processes run, by its id."""
    has_worker = any(process.role is ProcessRole.WORKER for process in processes)
    return {job.job_id: job.waiting_for(now_ms, has_worker=has_worker) for job in jobs}
