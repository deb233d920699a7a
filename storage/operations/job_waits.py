"""Reasons why jobs wait, seen with the processes that run, and the wait for a job's end."""

import asyncio
from collections.abc import Iterable, Mapping

import attrs

from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobState, WaitReason
from storage.domain.presence import ProcessRole, ProcessSeen
from storage.jobs import Jobs
from storage.operations.presence import ProcessRegistry

_POLL_S, _POLL_S_MAX = 0.05, 0.5
_NO_WORKER_S = 3.0  # a job that waits for a worker process for so long is not waited for


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


@attrs.define(eq=False, slots=False)
class JobWaiter:
    """Wait of callers for short jobs."""

    _jobs: Jobs
    _registry: ProcessRegistry

    async def ended(self, job: Job, within_ms: int) -> tuple[Job, WaitReason | None]:
        """Return a job when it is over, or as it is after a time, with what it waits for.

        Without a worker it returns soon.
        """
        pause_s, began_s, is_checked = _POLL_S, _now_s(), False
        while not job.state.is_over:
            waited_s = _now_s() - began_s
            if waited_s >= within_ms / limits.SECOND_MS:
                return job, await self.reason(job)
            if waited_s >= _NO_WORKER_S and not is_checked:
                is_checked = True
                if await self.reason(job) is WaitReason.WORKER:
                    return job, WaitReason.WORKER
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _POLL_S_MAX)
            job = await self._jobs.get(job.job_id)
        return job, None

    async def reason(self, job: Job) -> WaitReason | None:
        """Return what a job waits for."""
        return (await wait_reasons(self._registry, job)).get(job.job_id)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
