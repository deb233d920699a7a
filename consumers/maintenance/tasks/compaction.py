"""Archive: jobs that replace many small files by a large one."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task("compaction", LeaseStore.POSTGRES, period_ms=10 * limits.MINUTE_MS)
async def plan_compaction(storage: Storage) -> int:
    """Submit jobs; return their number."""
    return await storage.archive_planner.plan_compaction() if storage.archive_admin.on else 0
