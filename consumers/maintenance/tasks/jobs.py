"""Jobs: those that ended long ago are deleted."""

from consumers.maintenance.task import drain, maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "jobs", LeaseStore.POSTGRES, period_ms=limits.HOUR_MS, timeout_ms=limits.MINUTE_MS
)
async def delete_old_jobs(storage: Storage) -> int:
    """Delete old jobs; return their number."""
    return await drain(storage.jobs.delete_old)
