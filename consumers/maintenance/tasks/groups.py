"""Consumer groups: silent members leave, and others get their shards."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "groups",
    LeaseStore.POSTGRES,
    period_ms=limits.SECOND_MS,
    idle_ms=10 * limits.SECOND_MS,
    timeout_ms=limits.MINUTE_MS,
)
async def rebalance_groups(storage: Storage) -> int:
    """Rebalance; return the number of groups with members or with work."""
    return await storage.groups.rebalance_all()
