"""Tombstones of deleted logs: missing ones are written, and old ones dropped."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _write_tombstones(storage: Storage) -> int:
    """Write tombstones; return the number of those that were dropped."""
    return await storage.maintenance.tombstone_deleted()


TASK = MaintenanceTask(
    "deleted",
    _write_tombstones,
    store=LeaseStore.POSTGRES,
    period_ms=limits.MINUTE_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
