"""Delivery log of webhooks: old entries are deleted."""

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _delete_old_deliveries(storage: Storage) -> int:
    """Delete old entries; return their number."""
    return await drain(storage.deliveries.delete_old)


TASK = MaintenanceTask(
    "deliveries",
    _delete_old_deliveries,
    store=LeaseStore.POSTGRES,
    period_ms=limits.MINUTE_MS,
    timeout_ms=limits.MINUTE_MS,
)
