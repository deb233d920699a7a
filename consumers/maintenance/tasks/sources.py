"""Maintenance of sources: events whose process died on the way to their target."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "sources", LeaseStore.POSTGRES, period_ms=10 * limits.SECOND_MS, idle_ms=20 * limits.SECOND_MS
)
async def transfer_events(storage: Storage) -> int:
    return await storage.source_transfer.sweep()
