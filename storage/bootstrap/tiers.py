"""Connections to the two stores, and the logs in them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from storage.catalog.witness import CatalogWitness
from storage.domain.clock import Clock
from storage.domain.limits import Limits
from storage.domain.replication.replica_set import PrimaryChange
from storage.hot_store.wakeups import Wakeups
from storage.hot_store_bootstrap import HotStore, open_hot_store
from storage.log.gap_reasons import GapReasons
from storage.log.provisioner import LogProvisioner
from storage.postgres.database import Database, open_database
from storage.postgres.listener import Listener
from storage.postgres.repositories.offset_reservations import Reservations, StoreIdentities
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.topology import Nodes
from storage.redis.transport.wakeup_subscription import WakeupSubscription
from storage.settings import StorageSettings


class Stores(NamedTuple):
    """Connections to the two stores, which a simulation replaces."""

    database: Callable[[StorageSettings], AbstractAsyncContextManager[Database]] = open_database
    listener: Callable[[str], Listener] = Listener
    nodes: Callable[[str], Nodes] = Nodes


class Tiers(NamedTuple):
    """The open stores, and the logs in them."""

    database: Database
    listener: Listener
    identities: StoreIdentities
    hot_store: HotStore
    pipeline: Pipeline
    logs: RedisLogStore
    provisioner: LogProvisioner
    gap_reasons: GapReasons
    witness: CatalogWitness


async def open_tiers(
    stack: AsyncExitStack,
    stores: Stores,
    settings: StorageSettings,
    clock: Clock,
    limits: Limits,
    *,
    on_primary_change: Callable[[PrimaryChange], object],
) -> Tiers:
    """Connect to the two stores. The listener does not run yet.

    Raises StorageUnavailable when Postgres is unreachable.
    """
    database = await stack.enter_async_context(stores.database(settings))
    listener = stores.listener(settings.database_url)
    database.is_away = lambda: listener.is_vouched
    hot_store = await stack.enter_async_context(
        open_hot_store(
            settings,
            stores.nodes,
            database,
            listener,
            clock,
            on_primary_change=on_primary_change,
        )
    )
    pipeline = Pipeline(hot_store.nodes, limits, hot_store.epoch.check)
    stack.push_async_callback(pipeline.close)
    logs, reservations = RedisLogStore(pipeline, limits), Reservations(database)
    provisioner = LogProvisioner(logs, hot_store.epoch, reservations, clock, limits)
    stack.push_async_callback(provisioner.close)
    gap_reasons = GapReasons(reservations)
    stack.push_async_callback(gap_reasons.close)
    witness = CatalogWitness(hot_store.servers, database)
    database.before_catalog_change = witness.raise_version
    listener.trust(hot_store.servers.catalog_version, settings.postgres_grace_ms)
    return Tiers(
        database=database,
        listener=listener,
        identities=StoreIdentities(database),
        hot_store=hot_store,
        pipeline=pipeline,
        logs=logs,
        provisioner=provisioner,
        gap_reasons=gap_reasons,
        witness=witness,
    )


@asynccontextmanager
async def open_wakeups(nodes: Nodes, limits: Limits) -> AsyncGenerator[Wakeups]:
    """Open what wakes the calls that wait for messages and records."""
    wakeups = Wakeups(WakeupSubscription(nodes), limits)
    try:
        yield wakeups
    finally:
        await wakeups.close()
