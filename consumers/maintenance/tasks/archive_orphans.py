"""Archive: files that nothing refers to are deleted."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task("orphans", LeaseStore.POSTGRES, period_ms=limits.DAY_MS)
async def collect_orphans(storage: Storage) -> int:
    """Delete orphans; return their number."""
    collector = storage.archive_garbage_collector
    return 0 if collector is None else await collector.collect_orphans()
