"""Audit log: calls that were abandoned are recorded as unknown."""

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _close_abandoned_calls(storage: Storage) -> int:
    """Close abandoned calls; return their number."""
    return await drain(storage.audit_log.close_abandoned)


TASK = MaintenanceTask(
    "audit",
    _close_abandoned_calls,
    store=LeaseStore.POSTGRES,
    period_ms=limits.MINUTE_MS,
    timeout_ms=limits.MINUTE_MS,
)
