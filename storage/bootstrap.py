"""Storage bootstrap: composes and opens engines, tiers and settings, and closes them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from storage.access.authorization import Authorizer
from storage.access.credentials import Credentials
from storage.access.secret_box import SecretBox
from storage.access.token_secret import TokenSecret
from storage.archive.admin import ArchiveAdmin
from storage.archive.commit import ArchiveCommitter
from storage.archive.garbage_collection import ArchiveGarbageCollector
from storage.archive.manifest_cache import ManifestCache
from storage.archive.planner import ArchivePlanner
from storage.archive.tiered_reader import TieredReader
from storage.archive.trim import HotTrimmer
from storage.audit.log import AuditLog
from storage.audit.snapshots import AuditSnapshots
from storage.catalog.account_settings import AccountSettingsStore
from storage.catalog.catalog import Catalog, WriteTombstones, open_catalog
from storage.catalog.namespaces import Namespaces
from storage.catalog.search import CatalogSearch
from storage.catalog.witness import CatalogWitness
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_background
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId, QueueName, TopicName
from storage.domain.presence import LeaseStore
from storage.domain.replication.replica_set import PrimaryChange
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.topics.topic import NewPublication
from storage.groups.engine import Groups
from storage.hot_store.wakeups import Wakeups
from storage.hot_store_bootstrap import open_hot_store
from storage.jobs import Jobs
from storage.log.gap_reasons import GapReasons
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor
from storage.log.stream_executor import StreamExecutor
from storage.mirrors.engine import Mirrors
from storage.operations.alert_mutes import AlertMutes
from storage.operations.health import HealthChecks
from storage.operations.maintenance import Maintenance
from storage.operations.presence import ProcessRegistry
from storage.operations.replica_set_checks import ReplicaSetChecks
from storage.operations.store_admin import StoreAdmin
from storage.operations.store_metrics import StoreMetrics
from storage.parquet.cache import ArchiveCache
from storage.parquet.object_store import Root, open_root
from storage.postgres.database import Database, open_database
from storage.postgres.listener import Listener
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.postgres.repositories.leases import LeaseRows
from storage.postgres.repositories.manifest_reads import ManifestRows
from storage.postgres.repositories.moves import MoveRows
from storage.postgres.repositories.offset_reservations import Reservations, StoreIdentities
from storage.postgres.repositories.route_endpoints import RouteEndpointRows
from storage.postgres.repositories.routes import RouteRows
from storage.postgres.repositories.sampled_resources import MeasuredRows
from storage.postgres.repositories.staged_writes import WriteRows
from storage.postgres.repositories.topic_positions import TopicPositionRows
from storage.postgres.repositories.webhook_deliveries import DeliveryRows
from storage.queues.acknowledge_times import AcknowledgeTimes
from storage.queues.consumers import QueueConsumers
from storage.queues.copies import QueueCopies
from storage.queues.dead_letters import QueueDeadLetters
from storage.queues.engine import Queues
from storage.queues.expiry import QueueExpiry
from storage.queues.inspection import QueueInspector
from storage.queues.moves import Moves
from storage.queues.parked_groups import QueueParkedGroups
from storage.queues.transfer import MessageTransfer
from storage.quotas.connection_slots import ConnectionSlots
from storage.quotas.enforcer import QuotaEnforcer
from storage.quotas.memory_guard import MemoryGuard
from storage.quotas.usage import StorageUsage
from storage.redis.counters.leases import RedisLeaseStore
from storage.redis.counters.presence import RedisPresenceStore
from storage.redis.counters.rate_limits import RedisRateStore
from storage.redis.counters.shared_rate import RedisPaceStore
from storage.redis.counters.timeseries import RedisTimeSeriesStore
from storage.redis.member_settings import MemberSettings
from storage.redis.outbox.outboxes import RedisOutboxStore
from storage.redis.placement import spread_log_ids
from storage.redis.queues.consumers import RedisQueueConsumerStore
from storage.redis.queues.copies import RedisQueueCopyStore
from storage.redis.queues.inspection import RedisQueueContentStore
from storage.redis.queues.messages import RedisQueueStore
from storage.redis.queues.stats import RedisQueueStateStore
from storage.redis.queues.transfer import RedisTransferStore
from storage.redis.replies import RedisReplyStore
from storage.redis.streams.group_offsets import RedisGroupOffsets
from storage.redis.streams.idempotence import RedisWatermarkStore
from storage.redis.streams.logs import RedisLogStore
from storage.redis.streams.range_reader import RedisRangeReader
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.topology import Nodes
from storage.redis.transport.wakeup_subscription import WakeupSubscription
from storage.replays.engine import Replays
from storage.replays.planner import ReplayPlanner
from storage.replays.window import WindowResolver
from storage.requests.engine import Requests
from storage.settings import StorageSettings
from storage.sources.backlog import SourceBacklogReader
from storage.sources.engine import Sources
from storage.sources.receiver import SourceReceiver
from storage.sources.transfer import SourceTransfer
from storage.streams.append import Appender
from storage.streams.arrow_reader import ArrowReader
from storage.streams.columnar_append import ColumnarAppender
from storage.streams.engine import Streams
from storage.streams.idempotent_append import IdempotentAppender
from storage.streams.read import RecordReader
from storage.streams.registered_consumers import RegisteredConsumers
from storage.streams.reshard import Resharder
from storage.streams.shard_loads import ShardLoads
from storage.streams.staged_writes import StagedWrites
from storage.timeseries.collector import ResourceCollector
from storage.timeseries.query import TimeSeriesQuery
from storage.timeseries.sampler import Sampler
from storage.topics.back_tests import BackTests
from storage.topics.endpoints import RouteEndpoints
from storage.topics.engine import Topics
from storage.topics.fences import RouteFences
from storage.topics.queue_intake import QueueIntake
from storage.topics.reports import TopicReports
from storage.topics.route_table import RouteTables
from storage.topics.routes import TopicRoutes
from storage.topics.routing import TopicRouting
from storage.webhooks.changes import WebhookChanges
from storage.webhooks.deliveries import WebhookDeliveries
from storage.webhooks.engine import Webhooks
from storage.webhooks.secrets import WebhookSecrets

_CLOSE_S = 10.0
_DEFAULT_LIMITS = Limits()
_DEFAULT_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, repr=False)  # it would name every object of every engine: 90 KB
class Storage:
    """The open engines."""

    queues: Queues
    queue_consumers: QueueConsumers
    queue_expiry: QueueExpiry
    inspector: QueueInspector
    dead_letters: QueueDeadLetters
    parked_groups: QueueParkedGroups
    queue_copies: QueueCopies
    streams: Streams
    record_reader: RecordReader
    shard_loads: ShardLoads
    arrow_reader: ArrowReader
    moves: Moves
    groups: Groups
    webhooks: Webhooks
    deliveries: WebhookDeliveries
    sources: Sources
    source_receiver: SourceReceiver
    source_transfer: SourceTransfer
    source_backlog: SourceBacklogReader
    mirrors: Mirrors
    topics: Topics
    requests: Requests
    topic_routes: TopicRoutes
    route_endpoints: RouteEndpoints
    topic_routing: TopicRouting
    topic_reports: TopicReports
    queue_intake: QueueIntake
    back_tests: BackTests
    catalog: Catalog
    search: CatalogSearch
    namespaces: Namespaces
    quotas: QuotaEnforcer
    connection_slots: ConnectionSlots
    presence: ProcessRegistry
    memory_guard: MemoryGuard
    usage: StorageUsage
    authorizer: Authorizer
    audit_log: AuditLog
    audit_snapshots: AuditSnapshots
    credentials: Credentials
    registered_consumers: RegisteredConsumers
    account_settings: AccountSettingsStore
    alert_mutes: AlertMutes
    token_secret: TokenSecret
    jobs: Jobs
    replays: Replays
    archive_admin: ArchiveAdmin
    archive_planner: ArchivePlanner
    archive_committer: ArchiveCommitter
    archive_garbage_collector: ArchiveGarbageCollector | None
    staged_writes: StagedWrites
    time_series: TimeSeriesQuery
    store_metrics: StoreMetrics
    stores: StoreAdmin
    health: HealthChecks
    maintenance: Maintenance
    isolation: Isolation


class Stores(NamedTuple):
    """Connections to the two stores, which a simulation replaces."""

    database: Callable[[StorageSettings], AbstractAsyncContextManager[Database]] = open_database
    listener: Callable[[str], Listener] = Listener
    nodes: Callable[[str], Nodes] = Nodes


_REAL_STORES = Stores()


@asynccontextmanager
async def open_storage(
    settings: StorageSettings,
    *,
    clock: Clock = _DEFAULT_CLOCK,
    limits: Limits = _DEFAULT_LIMITS,
    stores: Stores = _REAL_STORES,
    on_primary_change: Callable[[PrimaryChange], object] = lambda kind: None,
) -> AsyncGenerator[Storage]:
    """Open the engines over the two stores that `settings` name.

    `on_primary_change` is called with the kind of each change of a replica set's primary that this process makes.

    Connects to the hot store at the first use. Raises StorageUnavailable when Postgres is unreachable.
    """
    async with _closing_in_time() as stack:
        database = await stack.enter_async_context(stores.database(settings))
        isolation = Isolation(clock)
        listener, box = stores.listener(settings.database_url), SecretBox(settings.secret_keys)
        database.is_away = lambda: listener.is_vouched
        identities = StoreIdentities(database)
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
        nodes, store, epoch = hot_store.nodes, hot_store.servers, hot_store.epoch
        pipeline = Pipeline(nodes, limits, epoch.check)
        stack.push_async_callback(pipeline.close)
        logs = RedisLogStore(pipeline, limits)
        reservations = Reservations(database)
        provisioner = LogProvisioner(logs, epoch, reservations, clock, limits)
        stack.push_async_callback(provisioner.close)
        gap_reasons = GapReasons(reservations)
        stack.push_async_callback(gap_reasons.close)
        write_tombstones = _tombstone_writer(logs)
        witness = CatalogWitness(store, database)
        database.before_catalog_change = witness.raise_version
        listener.trust(store.catalog_version, settings.postgres_grace_ms)
        credentials = Credentials(database, listener, clock, box)
        webhook_changes = WebhookChanges(listener)
        catalog = await stack.enter_async_context(
            open_catalog(database, listener, clock, write_tombstones, spread_log_ids)
        )
        stack.push_async_callback(credentials.close)
        await stack.enter_async_context(in_background(credentials.keep_warm(), "warm-credentials"))
        wakeups = await stack.enter_async_context(_open_wakeups(nodes, limits))
        namespaces = catalog.namespaces
        memory_guard = MemoryGuard(store, namespaces)
        await stack.enter_async_context(in_background(memory_guard.refresh_loop(), "memory-guard"))
        hot_rates = RedisRateStore(pipeline)
        connection_slots = ConnectionSlots(hot_rates, namespaces, clock)
        await stack.enter_async_context(
            in_background(connection_slots.publish_loop(), "connection-slots")
        )
        queue_executor, stream_executor = (
            QueueExecutor(catalog, provisioner),
            StreamExecutor(catalog, provisioner),
        )
        rows, writes = ArchiveRows(database), WriteRows(database)
        root = open_root(settings.archive_url) if settings.archive_url else None
        trimmer = HotTrimmer(logs, stream_executor, rows if root else None, clock)
        hot_moves, move_rows = RedisTransferStore(pipeline, limits), MoveRows(database)

        async def publish_dead_letters(
            topic: TopicName, batch: SequencedBatch, letters: Sequence[NewPublication]
        ) -> None:
            await topics.take_dead_letters(topic, batch, letters)  # they are made below

        async def complete_routed(queue: QueueName) -> None:
            await queue_intake.complete(queue)

        transfer = MessageTransfer(
            hot_moves,
            queue_executor,
            provisioner,
            move_rows,
            clock,
            publish_dead_letters,
            complete_routed,
        )
        hot_queues, states = (
            RedisQueueStore(pipeline, limits),
            RedisQueueStateStore(pipeline, limits),
        )
        watermarks = RedisWatermarkStore(pipeline)
        hot_consumers = RedisQueueConsumerStore(pipeline, limits)
        queue_consumers = QueueConsumers(hot_consumers, queue_executor, clock)
        await stack.enter_async_context(
            in_background(queue_consumers.report_loop(), "queue-consumers")
        )
        acknowledge_times = AcknowledgeTimes(hot_consumers, clock)
        await stack.enter_async_context(
            in_background(acknowledge_times.report_loop(), "acknowledge-times")
        )
        queues = Queues(
            hot=hot_queues,
            states=states,
            logs=logs,
            watermarks=watermarks,
            executor=queue_executor,
            transfer=transfer,
            trimmer=trimmer,
            catalog=catalog,
            provisioner=provisioner,
            wakeups=wakeups,
            clock=clock,
            limits=limits,
            memory_guard=memory_guard,
            consumers=queue_consumers,
            acknowledge_times=acknowledge_times,
        )
        stack.push_async_callback(queues.close)
        hot_contents = RedisQueueContentStore(pipeline, limits)
        dead_letters = QueueDeadLetters(hot_contents, queue_executor, clock, catalog)
        inspector = QueueInspector(hot_contents, queue_executor, clock, catalog, dead_letters)
        moves = Moves(
            hot=hot_moves,
            executor=queue_executor,
            transfer=transfer,
            queues=queues,
            dead_letters=dead_letters,
            catalog=catalog,
            rows=move_rows,
            database=database,
            clock=clock,
            isolation=isolation,
        )
        stack.push_async_callback(moves.close)
        resharder = Resharder(logs, catalog, provisioner, database)
        tiered = await stack.enter_async_context(_open_tiered(root, database, rows, clock, limits))
        record_reader = RecordReader(
            hot=logs,
            executor=stream_executor,
            resharder=resharder,
            wakeups=wakeups,
            clock=clock,
            archive=tiered,
            gap_reasons=gap_reasons,
        )
        appender = Appender(
            hot=logs,
            executor=stream_executor,
            provisioner=provisioner,
            resharder=resharder,
            clock=clock,
            memory_guard=memory_guard,
        )
        streams = Streams(
            hot=logs,
            executor=stream_executor,
            catalog=catalog,
            provisioner=provisioner,
            trimmer=trimmer,
            clock=clock,
            archive=tiered,
            resharder=resharder,
            appender=appender,
            columnar_appender=ColumnarAppender(appender, stream_executor),
            idempotent_appender=IdempotentAppender(
                watermarks, appender, stream_executor, resharder, clock
            ),
        )
        jobs = Jobs(database, limits)
        groups = Groups(
            database=database,
            hot=RedisGroupOffsets(pipeline, lambda: provisioner.store_epoch),
            listener=listener,
            streams=streams,
            reader=record_reader,
            catalog=catalog,
            clock=clock,
            limits=limits,
            isolation=isolation,
        )
        stack.push_async_callback(groups.close)
        await stack.enter_async_context(in_background(groups.copier.run(), "group-offsets"))
        hot_series, measured = RedisTimeSeriesStore(pipeline), MeasuredRows(database)
        sampler = Sampler(
            hot_series,
            ResourceCollector(hot_series, logs, measured, clock, isolation),
            measured,
            store,
            clock,
        )
        egress = Egress.of(settings.webhook_allow)
        webhooks = Webhooks(
            database=database, catalog=catalog, groups=groups, box=box, egress=egress, clock=clock
        )
        quotas = QuotaEnforcer(hot_rates, namespaces, clock)
        outboxes = RedisOutboxStore(pipeline)
        sources = Sources(
            database=database,
            listener=listener,
            catalog=catalog,
            queues=queues,
            streams=streams,
            outboxes=outboxes,
            box=box,
            clock=clock,
        )
        stack.push_async_callback(sources.close)
        await stack.enter_async_context(in_background(sources.keep_warm(), "warm-sources"))
        source_transfer = SourceTransfer(
            sources=sources,
            outboxes=outboxes,
            catalog=catalog,
            queues=queues,
            streams=streams,
            isolation=isolation,
            clock=clock,
        )
        stack.push_async_callback(source_transfer.close)
        queue_copies = QueueCopies(
            hot=RedisQueueCopyStore(pipeline, limits),
            logs=logs,
            executor=queue_executor,
            provisioner=provisioner,
            wakeups=wakeups,
            clock=clock,
            memory_guard=memory_guard,
        )
        mirrors = Mirrors(
            database=database,
            streams=streams,
            queue_copies=queue_copies,
            catalog=catalog,
            reader=record_reader,
            box=box,
            egress=egress,
            clock=clock,
        )
        route_rows = RouteRows(database)
        fences = RouteFences(hot=logs, provisioner=provisioner, catalog=catalog, rows=route_rows)
        route_tables = RouteTables(rows=route_rows, fences=fences)
        stack.push_async_callback(route_tables.close)
        token_secret = TokenSecret(database)
        route_endpoints = RouteEndpoints(
            catalog=catalog,
            queues=queues,
            webhooks=webhooks,
            rows=RouteEndpointRows(database),
            clock=clock,
        )
        topics = Topics(catalog=catalog, streams=streams, tables=route_tables, rows=route_rows)
        queue_intake = QueueIntake(
            hot=hot_moves,
            executor=queue_executor,
            topics=topics,
            tables=route_tables,
            rows=route_rows,
            catalog=catalog,
            streams=streams,
            watermarks=watermarks,
            provisioner=provisioner,
            wakeups=wakeups,
            clock=clock,
        )
        topic_routes = TopicRoutes(
            topics=topics,
            catalog=catalog,
            rows=route_rows,
            fences=fences,
            endpoints=route_endpoints,
            reader=record_reader,
            clock=clock,
        )
        topic_positions = TopicPositionRows(database)
        windows = WindowResolver(record_reader, groups, catalog)
        arrow_reader = ArrowReader(RedisRangeReader(pipeline), stream_executor, tiered, gap_reasons)
        replays = Replays(
            windows=windows,
            planning=ReplayPlanner(record_reader, windows, rows),
            streams=streams,
            reader=record_reader,
            column_reader=arrow_reader,
            queues=queues,
            groups=groups,
            jobs=jobs,
            shared_rate=RedisPaceStore(pipeline),
            clock=clock,
            isolation=isolation,
        )
        store_admin = StoreAdmin(store, identities, settings, hot_store.replica_set)
        replica_set_checks = (
            ReplicaSetChecks(
                store_admin,
                MemberSettings(settings.redis_url).faults,
                zones=settings.store_zones,
            )
            if store_admin.is_replica_set
            else None
        )
        if replica_set_checks is not None:
            stack.push_async_callback(replica_set_checks.close)
        yield Storage(
            queues=queues,
            queue_consumers=queue_consumers,
            queue_expiry=QueueExpiry(states, queue_executor, catalog, clock),
            inspector=inspector,
            dead_letters=dead_letters,
            parked_groups=QueueParkedGroups(hot_contents, queue_executor, clock),
            queue_copies=queue_copies,
            streams=streams,
            record_reader=record_reader,
            shard_loads=ShardLoads(record_reader, stream_executor, clock),
            arrow_reader=arrow_reader,
            moves=moves,
            groups=groups,
            webhooks=webhooks,
            deliveries=WebhookDeliveries(
                rows=DeliveryRows(database),
                inspector=inspector,
                dead_letters=dead_letters,
                reader=record_reader,
                groups=groups,
                secrets=WebhookSecrets(box),
                clock=clock,
                isolation=isolation,
                changes=webhook_changes,
            ),
            sources=sources,
            source_receiver=SourceReceiver(
                sources=sources,
                outboxes=outboxes,
                catalog=catalog,
                transfer=source_transfer,
                quotas=quotas,
                memory_guard=memory_guard,
                clock=clock,
            ),
            source_transfer=source_transfer,
            source_backlog=SourceBacklogReader(sources, outboxes, isolation, clock),
            mirrors=mirrors,
            topics=topics,
            requests=Requests(
                hot=RedisReplyStore(pipeline),
                token_secret=token_secret,
                wakeups=wakeups,
                clock=clock,
                memory_guard=memory_guard,
            ),
            topic_routes=topic_routes,
            route_endpoints=route_endpoints,
            topic_reports=TopicReports(
                topics=topics,
                routes=topic_routes,
                tables=route_tables,
                positions=topic_positions,
                reader=record_reader,
                clock=clock,
            ),
            queue_intake=queue_intake,
            back_tests=BackTests(
                catalog=catalog, routes=topic_routes, reader=record_reader, jobs=jobs
            ),
            topic_routing=TopicRouting(
                catalog=catalog,
                routes=route_rows,
                positions=topic_positions,
                leases=LeaseRows(database, clock),
            ),
            catalog=catalog,
            search=CatalogSearch(database),
            namespaces=namespaces,
            quotas=quotas,
            connection_slots=connection_slots,
            presence=ProcessRegistry(RedisPresenceStore(pipeline), wakeups, clock, isolation),
            memory_guard=memory_guard,
            usage=StorageUsage(logs, catalog, isolation),
            authorizer=Authorizer(),
            audit_log=AuditLog(database, clock, isolation),
            audit_snapshots=AuditSnapshots(
                catalog=catalog,
                routes=topic_routes,
                groups=groups,
                webhooks=webhooks,
                sources=sources,
                mirrors=mirrors,
                credentials=credentials,
            ),
            credentials=credentials,
            registered_consumers=RegisteredConsumers(database, clock),
            account_settings=AccountSettingsStore(database),
            alert_mutes=AlertMutes(database, clock),
            token_secret=token_secret,
            jobs=jobs,
            replays=replays,
            archive_admin=ArchiveAdmin(rows, logs, catalog, jobs, clock, on=root is not None),
            archive_planner=ArchivePlanner(
                rows=rows, hot=logs, catalog=catalog, jobs=jobs, clock=clock, isolation=isolation
            ),
            archive_committer=ArchiveCommitter(rows, catalog, jobs, trimmer, clock),
            archive_garbage_collector=ArchiveGarbageCollector(
                rows=rows,
                writes=writes,
                root=root,
                hot=logs,
                catalog=catalog,
                clock=clock,
                isolation=isolation,
            )
            if root
            else None,
            staged_writes=StagedWrites(
                rows=writes,
                root=root,
                catalog=catalog,
                streams=streams,
                clock=clock,
                isolation=isolation,
            ),
            time_series=TimeSeriesQuery(hot_series, sampler, catalog, groups, clock),
            store_metrics=StoreMetrics(
                database, pipeline.timings, pipeline.errors, pipeline.confirmations, listener
            ),
            stores=store_admin,
            health=HealthChecks(store, database, clock, settings, listener, replica_set_checks),
            maintenance=Maintenance(
                logs=logs,
                store=store,
                identities=identities,
                witness=witness,
                catalog=catalog,
                leases={
                    LeaseStore.HOT_STORE: RedisLeaseStore(pipeline, clock),
                    LeaseStore.POSTGRES: LeaseRows(database, clock),
                },
                isolation=isolation,
            ),
            isolation=isolation,
        )


@asynccontextmanager
async def open_credentials(settings: StorageSettings) -> AsyncGenerator[Credentials]:
    """Open only the credentials, for an operator on the machine.

    Announcements of other processes are not received; they receive those of this one. To create credentials: a change has
    to raise the catalog's version in the hot store, too (`storage.catalog.witness`).
    """
    async with open_database(settings) as database:
        box = SecretBox(settings.secret_keys)
        credentials = Credentials(database, Listener(settings.database_url), SystemClock(), box)
        try:
            yield credentials
        finally:
            await credentials.close()


@asynccontextmanager
async def open_audit(settings: StorageSettings) -> AsyncGenerator[AuditLog]:
    """Open only the audit log, for an operator on the machine."""
    async with open_database(settings) as database:
        yield AuditLog(database, _DEFAULT_CLOCK, Isolation(_DEFAULT_CLOCK))


@asynccontextmanager
async def _closing_in_time() -> AsyncGenerator[AsyncExitStack]:
    """Open an exit stack whose closing is bounded in time.

    What does not end in time is cancelled, and the rest still closes.
    """
    stack = AsyncExitStack()
    try:
        yield stack
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await stack.aclose()


@asynccontextmanager
async def _open_wakeups(nodes: Nodes, limits: Limits) -> AsyncGenerator[Wakeups]:
    wakeups = Wakeups(WakeupSubscription(nodes), limits)
    try:
        yield wakeups
    finally:
        await wakeups.close()


@asynccontextmanager
async def _open_tiered(
    root: Root | None, database: Database, rows: ArchiveRows, clock: Clock, limits: Limits
) -> AsyncGenerator[TieredReader | None]:
    if root is None:
        yield None
        return
    manifest, cache = ManifestCache(ManifestRows(database), clock), ArchiveCache(root, limits)
    try:
        yield TieredReader(manifest, rows, cache)
    finally:
        await manifest.close()
        await cache.close()


def _tombstone_writer(logs: RedisLogStore) -> WriteTombstones:
    async def write(namespace: str, log_ids: Sequence[LogId]) -> None:
        for log_id in log_ids:
            await logs.tombstone(LogAddress(namespace, log_id))

    return write
