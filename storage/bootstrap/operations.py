"""Assembly of what operates the stores and the processes, and measures them."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from storage.catalog.catalog import Catalog
from storage.catalog.witness import CatalogWitness
from storage.concurrency.isolation import Isolation
from storage.concurrency.leader_election import LeaderLeases
from storage.domain.clock import Clock
from storage.domain.presence import LeaseStore
from storage.groups.engine import Groups
from storage.hot_store.wakeups import Wakeups
from storage.hot_store_bootstrap import HotStore
from storage.operations.alert_mutes import AlertMutes
from storage.operations.health import HealthChecks
from storage.operations.maintenance import Maintenance
from storage.operations.presence import ProcessRegistry
from storage.operations.replica_set_checks import ReplicaSetChecks
from storage.operations.store_admin import StoreAdmin
from storage.operations.store_metrics import StoreMetrics
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.offset_reservations import StoreIdentities
from storage.postgres.repositories.sampled_resources import MeasuredRows
from storage.redis.cluster_store import RedisServers
from storage.redis.counters.leases import RedisLeaseStore
from storage.redis.counters.presence import RedisPresenceStore
from storage.redis.counters.timeseries import RedisTimeSeriesStore
from storage.redis.member_settings import MemberSettings
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.pipeline import Pipeline
from storage.settings import StorageSettings
from storage.timeseries.collector import ResourceCollector
from storage.timeseries.query import TimeSeriesQuery
from storage.timeseries.sampler import Sampler


class OperationEngines(NamedTuple):
    """Stores and processes of the deployment: their state, metrics and maintenance."""

    stores: StoreAdmin
    health: HealthChecks
    metrics: StoreMetrics
    maintenance: Maintenance
    presence: ProcessRegistry
    alert_mutes: AlertMutes


def open_operations(
    stack: AsyncExitStack,
    *,
    settings: StorageSettings,
    database: Database,
    listener: Listener,
    identities: StoreIdentities,
    hot_store: HotStore,
    pipeline: Pipeline,
    logs: RedisLogStore,
    witness: CatalogWitness,
    catalog: Catalog,
    wakeups: Wakeups,
    leases: LeaderLeases,
    isolation: Isolation,
    clock: Clock,
) -> OperationEngines:
    """Open the engines that operate the stores and the processes; checks close with the stack."""
    servers = hot_store.servers
    stores = StoreAdmin(servers, identities, settings, hot_store.replica_set)
    checks = _replica_set_checks(stores, settings)
    if checks is not None:
        stack.push_async_callback(checks.close)
    return OperationEngines(
        stores=stores,
        health=HealthChecks(servers, database, clock, settings, listener, checks),
        metrics=StoreMetrics(
            database, pipeline.timings, pipeline.errors, pipeline.confirmations, listener
        ),
        maintenance=Maintenance(
            logs=logs,
            store=servers,
            identities=identities,
            witness=witness,
            catalog=catalog,
            leases={
                LeaseStore.HOT_STORE: RedisLeaseStore(pipeline, clock),
                LeaseStore.POSTGRES: leases,
            },
            isolation=isolation,
        ),
        presence=ProcessRegistry(RedisPresenceStore(pipeline), wakeups, clock, isolation),
        alert_mutes=AlertMutes(database, clock),
    )


def build_time_series(
    *,
    pipeline: Pipeline,
    servers: RedisServers,
    logs: RedisLogStore,
    database: Database,
    catalog: Catalog,
    groups: Groups,
    isolation: Isolation,
    clock: Clock,
) -> TimeSeriesQuery:
    """Build the time series, and the sampler of queues, streams and groups."""
    series, measured = RedisTimeSeriesStore(pipeline), MeasuredRows(database)
    collector = ResourceCollector(series, logs, measured, clock, isolation)
    sampler = Sampler(series, collector, measured, servers, clock)
    return TimeSeriesQuery(series, sampler, catalog, groups, clock)


def _replica_set_checks(stores: StoreAdmin, settings: StorageSettings) -> ReplicaSetChecks | None:
    if not stores.is_replica_set:
        return None
    faults = MemberSettings(settings.redis_url).faults
    return ReplicaSetChecks(stores, faults, zones=settings.store_zones)
