"""Endpoints of routes: deleted once they are empty, if the target is no URL any longer."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.names import RouteName
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
    endpoints = storage.route_endpoints

    async def visit(route: RouteName) -> bool:
        return await storage.isolation.visit(
            "route_endpoints",
            f"queues/{route.queue}",
            lambda: endpoints.delete_unused(route),
            False,
        )

    deleted = 0
    async for page in endpoints.unused():
        deleted += sum(await in_batches(page, visit, limits.MAINTENANCE_CONCURRENCY_MAX))
    return deleted
