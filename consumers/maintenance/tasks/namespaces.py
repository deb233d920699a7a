"""Namespaces: their stored bytes are measured against their quotas."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "weights",
    LeaseStore.POSTGRES,
    period_ms=5 * limits.SECOND_MS,
    idle_ms=20 * limits.SECOND_MS,
    timeout_ms=limits.MINUTE_MS,
)
async def measure_namespaces(storage: Storage) -> int:
    """Measure namespaces with such a quota; return their number."""
    return await storage.usage.measure_all()
