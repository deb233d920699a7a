"""Maintenance of sources: events whose process died on the way to their target."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _transfer_events(storage: Storage) -> int:
    return await storage.source_transfer.sweep()


TASK = MaintenanceTask(
    "sources",
    _transfer_events,
    store=LeaseStore.POSTGRES,
    period_ms=10 * limits.SECOND_MS,
    idle_ms=20 * limits.SECOND_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
