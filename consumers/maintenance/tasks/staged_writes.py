"""Staged writes of Spark: those that were committed are finished, and old ones deleted."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _finish_writes(storage: Storage) -> int:
    """Finish and delete writes; return their number."""
    return await storage.staged_writes.finish() + await storage.staged_writes.delete_old()


TASK = MaintenanceTask(
    "writes",
    _finish_writes,
    store=LeaseStore.POSTGRES,
    period_ms=limits.MINUTE_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
