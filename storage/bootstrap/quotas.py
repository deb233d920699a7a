"""Assembly of the quotas."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_background
from storage.domain.clock import Clock
from storage.quotas.connection_slots import ConnectionSlots
from storage.quotas.enforcer import QuotaEnforcer
from storage.quotas.memory_guard import MemoryGuard
from storage.quotas.usage import StorageUsage
from storage.redis.cluster_store import RedisServers
from storage.redis.counters.rate_limits import RedisRateStore
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.pipeline import Pipeline


class QuotaEngines(NamedTuple):
    """Quotas of callers and namespaces, and the guard of the store's memory."""

    enforcer: QuotaEnforcer
    connection_slots: ConnectionSlots
    memory_guard: MemoryGuard
    usage: StorageUsage


async def open_quotas(
    stack: AsyncExitStack,
    *,
    pipeline: Pipeline,
    servers: RedisServers,
    logs: RedisLogStore,
    catalog: Catalog,
    isolation: Isolation,
    clock: Clock,
) -> QuotaEngines:
    """Open the quotas, and run what refreshes them."""
    namespaces, rates = catalog.namespaces, RedisRateStore(pipeline)
    memory_guard = MemoryGuard(servers, namespaces)
    await stack.enter_async_context(in_background(memory_guard.refresh_loop(), "memory-guard"))
    connection_slots = ConnectionSlots(rates, namespaces, clock)
    await stack.enter_async_context(
        in_background(connection_slots.publish_loop(), "connection-slots")
    )
    return QuotaEngines(
        enforcer=QuotaEnforcer(rates, namespaces, clock),
        connection_slots=connection_slots,
        memory_guard=memory_guard,
        usage=StorageUsage(logs, catalog, isolation),
    )
