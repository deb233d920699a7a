"""Audit log: calls that were abandoned are recorded as unknown."""

from consumers.maintenance.task import drain, maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "audit", LeaseStore.POSTGRES, period_ms=limits.MINUTE_MS, timeout_ms=limits.MINUTE_MS
)
async def close_abandoned_calls(storage: Storage) -> int:
    """Close abandoned calls; return their number."""
    return await drain(storage.audit_log.close_abandoned)
