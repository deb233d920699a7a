"""Time series: a sample of each resource in every slot of ten seconds."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "series", LeaseStore.POSTGRES, period_ms=5 * limits.SECOND_MS, timeout_ms=30 * limits.SECOND_MS
)
async def sample_resources(storage: Storage) -> int:
    """Measure the slot unless that was done; return the number of resources."""
    return await storage.time_series.sample()
