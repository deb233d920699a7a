"""Assembly of all engines over the two stores."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from storage.access.authorization import Authorizer
from storage.access.secret_box import SecretBox
from storage.archive.trim import HotTrimmer
from storage.audit.log import AuditLog
from storage.audit.snapshots import AuditSnapshots
from storage.bootstrap.archive import build_archive, open_tiered_reader
from storage.bootstrap.definitions import open_definitions
from storage.bootstrap.exit_stack import closing_in_time
from storage.bootstrap.integrations import build_webhooks, open_sources
from storage.bootstrap.jobs import build_queries, build_replays, build_views
from storage.bootstrap.operations import build_time_series, open_operations
from storage.bootstrap.queues import open_queues
from storage.bootstrap.quotas import open_quotas
from storage.bootstrap.storage import Storage
from storage.bootstrap.streams import build_streams
from storage.bootstrap.tiers import Stores, open_tiers, open_wakeups
from storage.bootstrap.topics import open_topics
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_background
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.limits import Limits
from storage.domain.names import QueueName, TopicName
from storage.domain.replication.replica_set import PrimaryChange
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.topics.topic import NewPublication
from storage.groups.engine import Groups
from storage.jobs import Jobs
from storage.log.queue_executor import QueueExecutor
from storage.log.stream_executor import StreamExecutor
from storage.mirrors.engine import Mirrors
from storage.parquet.object_store import open_root
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.postgres.repositories.leases import LeaseRows
from storage.redis.queues.transfer import RedisTransferStore
from storage.redis.replies import RedisReplyStore
from storage.redis.streams.group_offsets import RedisGroupOffsets
from storage.redis.streams.idempotence import RedisWatermarkStore
from storage.requests.engine import Requests
from storage.settings import StorageSettings

_DEFAULT_LIMITS = Limits()
_DEFAULT_CLOCK = SystemClock()
_REAL_STORES = Stores()


@asynccontextmanager
async def open_storage(
    settings: StorageSettings,
    *,
    clock: Clock = _DEFAULT_CLOCK,
    limits: Limits = _DEFAULT_LIMITS,
    stores: Stores = _REAL_STORES,
    on_primary_change: Callable[[PrimaryChange], object] = lambda kind: None,
    worker: str = "",
) -> AsyncGenerator[Storage]:
    """Open the engines over the two stores that `settings` name.

    `on_primary_change` is called with the kind of each change of a replica set's primary that this process makes. `worker`: the name
    by which this process claims jobs.

    Connects to the hot store at the first use. Raises StorageUnavailable when Postgres is unreachable.
    """
    async with closing_in_time() as stack:
        isolation, box = Isolation(clock), SecretBox(settings.secret_keys)
        tiers = await open_tiers(
            stack, stores, settings, clock, limits, on_primary_change=on_primary_change
        )
        database, listener, pipeline = tiers.database, tiers.listener, tiers.pipeline
        listener.hold_worker_lock(worker)
        logs, provisioner = tiers.logs, tiers.provisioner
        definitions = await open_definitions(
            stack, database=database, listener=listener, logs=logs, box=box, clock=clock
        )
        catalog = definitions.catalog
        wakeups = await stack.enter_async_context(open_wakeups(tiers.hot_store.nodes, limits))
        quotas = await open_quotas(
            stack,
            pipeline=pipeline,
            servers=tiers.hot_store.servers,
            logs=logs,
            catalog=catalog,
            isolation=isolation,
            clock=clock,
        )
        queue_executor = QueueExecutor(catalog, provisioner)
        stream_executor = StreamExecutor(catalog, provisioner)
        root = open_root(settings.archive_url) if settings.archive_url else None
        archive_rows, leases = ArchiveRows(database), LeaseRows(database, clock)
        trimmer = HotTrimmer(logs, stream_executor, archive_rows if root else None, clock)
        watermarks, transfers = RedisWatermarkStore(pipeline), RedisTransferStore(pipeline, limits)

        async def publish_dead_letters(
            topic: TopicName, batch: SequencedBatch, letters: Sequence[NewPublication]
        ) -> None:
            await topics.topics.take_dead_letters(topic, batch, letters)  # opened below

        async def complete_routed(queue: QueueName) -> None:
            await topics.queue_intake.complete(queue)

        queues = await open_queues(
            stack,
            pipeline=pipeline,
            logs=logs,
            watermarks=watermarks,
            transfers=transfers,
            database=database,
            catalog=catalog,
            provisioner=provisioner,
            executor=queue_executor,
            trimmer=trimmer,
            wakeups=wakeups,
            memory_guard=quotas.memory_guard,
            publish_dead_letters=publish_dead_letters,
            complete_routed=complete_routed,
            isolation=isolation,
            clock=clock,
            limits=limits,
        )
        streams = build_streams(
            pipeline=pipeline,
            logs=logs,
            watermarks=watermarks,
            database=database,
            catalog=catalog,
            provisioner=provisioner,
            executor=stream_executor,
            trimmer=trimmer,
            archive=await stack.enter_async_context(
                open_tiered_reader(root, database, archive_rows, clock, limits)
            ),
            wakeups=wakeups,
            memory_guard=quotas.memory_guard,
            gap_reasons=tiers.gap_reasons,
            clock=clock,
        )
        jobs = Jobs(database, limits, listener)
        groups = Groups(
            database=database,
            hot=RedisGroupOffsets(pipeline, lambda: provisioner.store_epoch),
            listener=listener,
            streams=streams.streams,
            reader=streams.record_reader,
            catalog=catalog,
            clock=clock,
            limits=limits,
            isolation=isolation,
        )
        stack.push_async_callback(groups.close)
        await stack.enter_async_context(in_background(groups.copier.run(), "group-offsets"))
        egress = Egress.of(settings.webhook_allow)
        webhooks = build_webhooks(
            database=database,
            catalog=catalog,
            changes=definitions.webhook_changes,
            inspector=queues.inspector,
            dead_letters=queues.dead_letters,
            reader=streams.record_reader,
            groups=groups,
            egress=egress,
            box=box,
            isolation=isolation,
            clock=clock,
        )
        sources = await open_sources(
            stack,
            pipeline=pipeline,
            database=database,
            listener=listener,
            catalog=catalog,
            queues=queues.queues,
            streams=streams.streams,
            quotas=quotas.enforcer,
            memory_guard=quotas.memory_guard,
            box=box,
            isolation=isolation,
            clock=clock,
        )
        mirrors = Mirrors(
            database=database,
            streams=streams.streams,
            queue_copies=queues.copies,
            catalog=catalog,
            reader=streams.record_reader,
            box=box,
            egress=egress,
            clock=clock,
        )
        topics = open_topics(
            stack,
            logs=logs,
            watermarks=watermarks,
            transfers=transfers,
            database=database,
            catalog=catalog,
            provisioner=provisioner,
            executor=queue_executor,
            wakeups=wakeups,
            queues=queues.queues,
            streams=streams.streams,
            reader=streams.record_reader,
            webhooks=webhooks.webhooks,
            jobs=jobs,
            leases=leases,
            clock=clock,
        )
        archive = build_archive(
            root=root,
            database=database,
            rows=archive_rows,
            logs=logs,
            trimmer=trimmer,
            streams=streams.streams,
            catalog=catalog,
            jobs=jobs,
            isolation=isolation,
            clock=clock,
        )
        operations = open_operations(
            stack,
            settings=settings,
            database=database,
            listener=listener,
            identities=tiers.identities,
            hot_store=tiers.hot_store,
            pipeline=pipeline,
            logs=logs,
            witness=tiers.witness,
            catalog=catalog,
            wakeups=wakeups,
            leases=leases,
            isolation=isolation,
            clock=clock,
        )
        views = build_views(
            database=database,
            waiters=definitions.view_waiters,
            catalog=catalog,
            queues=queues.queues,
            streams=streams.streams,
            record_reader=streams.record_reader,
            jobs=jobs,
            registry=operations.presence,
            clock=clock,
        )
        yield Storage(
            queues=queues.queues,
            queue_consumers=queues.consumers,
            queue_expiry=queues.expiry,
            inspector=queues.inspector,
            dead_letters=queues.dead_letters,
            parked_groups=queues.parked_groups,
            queue_copies=queues.copies,
            streams=streams.streams,
            record_reader=streams.record_reader,
            shard_loads=streams.shard_loads,
            arrow_reader=streams.arrow_reader,
            moves=queues.moves,
            groups=groups,
            webhooks=webhooks.webhooks,
            deliveries=webhooks.deliveries,
            sources=sources.sources,
            source_receiver=sources.receiver,
            source_transfer=sources.transfer,
            source_backlog=sources.backlog,
            mirrors=mirrors,
            topics=topics.topics,
            requests=Requests(
                hot=RedisReplyStore(pipeline),
                token_secret=definitions.token_secret,
                wakeups=wakeups,
                clock=clock,
                memory_guard=quotas.memory_guard,
            ),
            topic_routes=topics.routes,
            route_endpoints=topics.endpoints,
            topic_routing=topics.routing,
            topic_reports=topics.reports,
            queue_intake=topics.queue_intake,
            back_tests=topics.back_tests,
            views=views.views,
            view_sinks=views.sinks,
            view_scans=views.scans,
            view_scan_jobs=views.scan_jobs,
            view_back_tests=views.back_tests,
            view_rows=views.rows,
            view_sources=views.sources,
            queries=build_queries(
                database=database,
                catalog=catalog,
                reader=streams.record_reader,
                jobs=jobs,
                registry=operations.presence,
            ),
            catalog=catalog,
            search=definitions.search,
            namespaces=catalog.namespaces,
            quotas=quotas.enforcer,
            connection_slots=quotas.connection_slots,
            presence=operations.presence,
            memory_guard=quotas.memory_guard,
            usage=quotas.usage,
            authorizer=Authorizer(),
            audit_log=AuditLog(database, clock, isolation),
            audit_snapshots=AuditSnapshots(
                catalog=catalog,
                routes=topics.routes,
                groups=groups,
                webhooks=webhooks.webhooks,
                sources=sources.sources,
                views=views.views,
                mirrors=mirrors,
                credentials=definitions.credentials,
            ),
            credentials=definitions.credentials,
            registered_consumers=definitions.registered_consumers,
            account_settings=definitions.account_settings,
            alert_mutes=operations.alert_mutes,
            token_secret=definitions.token_secret,
            jobs=jobs,
            replays=build_replays(
                pipeline=pipeline,
                archive_rows=archive_rows,
                catalog=catalog,
                queues=queues.queues,
                streams=streams.streams,
                reader=streams.record_reader,
                column_reader=streams.arrow_reader,
                groups=groups,
                jobs=jobs,
                isolation=isolation,
                clock=clock,
            ),
            archive_admin=archive.admin,
            archive_planner=archive.planner,
            archive_committer=archive.committer,
            archive_garbage_collector=archive.garbage_collector,
            staged_writes=archive.staged_writes,
            time_series=build_time_series(
                pipeline=pipeline,
                servers=tiers.hot_store.servers,
                logs=logs,
                database=database,
                catalog=catalog,
                groups=groups,
                isolation=isolation,
                clock=clock,
            ),
            store_metrics=operations.metrics,
            stores=operations.stores,
            health=operations.health,
            maintenance=operations.maintenance,
            isolation=isolation,
        )
