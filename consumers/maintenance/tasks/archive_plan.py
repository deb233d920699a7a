"""Archive: jobs for the records that are due."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "archive", LeaseStore.POSTGRES, period_ms=5 * limits.SECOND_MS, idle_ms=20 * limits.SECOND_MS
)
async def plan_archive(storage: Storage) -> int:
    """Submit jobs; return the number of lanes that have something due."""
    return await storage.archive_planner.plan() if storage.archive_admin.on else 0
