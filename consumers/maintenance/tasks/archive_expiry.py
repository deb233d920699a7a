"""Archive: files that retention no longer covers are retired, and deleted after a grace."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task("archived", LeaseStore.POSTGRES, period_ms=limits.MINUTE_MS)
async def expire_files(storage: Storage) -> int:
    """Retire and delete files; return their number."""
    collector = storage.archive_garbage_collector
    return 0 if collector is None else await collector.retire() + await collector.collect()
