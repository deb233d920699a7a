"""Delivery log of webhooks: old entries are deleted."""

from consumers.maintenance.task import drain, maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "deliveries", LeaseStore.POSTGRES, period_ms=limits.MINUTE_MS, timeout_ms=limits.MINUTE_MS
)
async def delete_old_deliveries(storage: Storage) -> int:
    """Delete old entries; return their number."""
    return await drain(storage.deliveries.delete_old)
