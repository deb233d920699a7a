"""Consumer groups: silent members leave, and others get their shards."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def rebalance_groups(storage: Storage) -> int:
    """Rebalance; return the number of groups with members or with work."""
    return await storage.groups.rebalance_all()


TASK = MaintenanceTask(
    "groups",
    rebalance_groups,
    store=LeaseStore.POSTGRES,
    period_ms=limits.SECOND_MS,
    idle_ms=10 * limits.SECOND_MS,
    timeout_ms=limits.MINUTE_MS,
)
