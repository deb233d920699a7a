"""Archive: jobs that replace many small files by a large one."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _plan_compaction(storage: Storage) -> int:
    """Submit jobs; return their number."""
    return await storage.archive_planner.plan_compaction() if storage.archive_admin.on else 0


TASK = MaintenanceTask(
    "compaction",
    _plan_compaction,
    store=LeaseStore.POSTGRES,
    period_ms=10 * limits.MINUTE_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
