"""Endpoints of routes: deleted once they are empty, if the target is no URL any longer."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "route_endpoints",
    LeaseStore.POSTGRES,
    period_ms=10 * limits.SECOND_MS,
    idle_ms=limits.MINUTE_MS,
    timeout_ms=limits.MINUTE_MS,
)
async def delete_unused_endpoints(storage: Storage) -> int:
    """Delete empty queues of routes without a URL, and their webhooks; return their number."""
    return await storage.route_endpoints.delete_unused()
