"""Archive: files that retention no longer covers are retired, and deleted after a grace."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _expire_files(storage: Storage) -> int:
    """Retire and delete files; return their number."""
    collector = storage.archive_garbage_collector
    return 0 if collector is None else await collector.retire() + await collector.collect()


TASK = MaintenanceTask(
    "archived",
    _expire_files,
    store=LeaseStore.POSTGRES,
    period_ms=limits.MINUTE_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
