"""Tombstones of deleted logs: missing ones are written, and old ones dropped."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task("deleted", LeaseStore.POSTGRES, period_ms=limits.MINUTE_MS)
async def write_tombstones(storage: Storage) -> int:
    """Write tombstones; return the number of those that were dropped."""
    return await storage.maintenance.tombstone_deleted()
