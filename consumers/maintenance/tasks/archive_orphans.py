"""Archive: files that nothing refers to are deleted."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _collect_orphans(storage: Storage) -> int:
    """Delete orphans; return their number."""
    collector = storage.archive_garbage_collector
    return 0 if collector is None else await collector.collect_orphans()


TASK = MaintenanceTask(
    "orphans",
    _collect_orphans,
    store=LeaseStore.POSTGRES,
    period_ms=limits.DAY_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
