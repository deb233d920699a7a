"""Staged writes of Spark: those that were committed are finished, and old ones deleted."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task("writes", LeaseStore.POSTGRES, period_ms=limits.MINUTE_MS)
async def finish_writes(storage: Storage) -> int:
    """Finish and delete writes; return their number."""
    return await storage.staged_writes.finish() + await storage.staged_writes.delete_old()
