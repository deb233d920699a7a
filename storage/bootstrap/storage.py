"""Open engines of a process."""

from dataclasses import dataclass

from storage.access.authorization import Authorizer
from storage.access.credentials import Credentials
from storage.access.token_secret import TokenSecret
from storage.archive.admin import ArchiveAdmin
from storage.archive.commit import ArchiveCommitter
from storage.archive.garbage_collection import ArchiveGarbageCollector
from storage.archive.planner import ArchivePlanner
from storage.audit.log import AuditLog
from storage.audit.snapshots import AuditSnapshots
from storage.catalog.account_settings import AccountSettingsStore
from storage.catalog.catalog import Catalog
from storage.catalog.namespaces import Namespaces
from storage.catalog.search import CatalogSearch
from storage.concurrency.isolation import Isolation
from storage.groups.engine import Groups
from storage.jobs import Jobs
from storage.mirrors.engine import Mirrors
from storage.operations.alert_mutes import AlertMutes
from storage.operations.health import HealthChecks
from storage.operations.maintenance import Maintenance
from storage.operations.presence import ProcessRegistry
from storage.operations.store_admin import StoreAdmin
from storage.operations.store_metrics import StoreMetrics
from storage.queries.engine import Queries
from storage.queues.consumers import QueueConsumers
from storage.queues.copies import QueueCopies
from storage.queues.dead_letters import QueueDeadLetters
from storage.queues.engine import Queues
from storage.queues.expiry import QueueExpiry
from storage.queues.inspection import QueueInspector
from storage.queues.moves import Moves
from storage.queues.parked_groups import QueueParkedGroups
from storage.quotas.connection_slots import ConnectionSlots
from storage.quotas.enforcer import QuotaEnforcer
from storage.quotas.memory_guard import MemoryGuard
from storage.quotas.usage import StorageUsage
from storage.replays.engine import Replays
from storage.requests.engine import Requests
from storage.sources.backlog import SourceBacklogReader
from storage.sources.engine import Sources
from storage.sources.receiver import SourceReceiver
from storage.sources.transfer import SourceTransfer
from storage.streams.arrow_reader import ArrowReader
from storage.streams.engine import Streams
from storage.streams.read import RecordReader
from storage.streams.registered_consumers import RegisteredConsumers
from storage.streams.shard_loads import ShardLoads
from storage.streams.staged_writes import StagedWrites
from storage.timeseries.query import TimeSeriesQuery
from storage.topics.back_tests import BackTests
from storage.topics.endpoints import RouteEndpoints
from storage.topics.engine import Topics
from storage.topics.queue_intake import QueueIntake
from storage.topics.reports import TopicReports
from storage.topics.routes import TopicRoutes
from storage.topics.routing import TopicRouting
from storage.views.back_tests import ViewBackTests
from storage.views.engine import Views
from storage.views.rows import ViewRowReader
from storage.views.scan_jobs import ScanJobs
from storage.views.scans import ViewScans
from storage.views.sinks import ViewSinks
from storage.views.sources import ViewSourceReader
from storage.webhooks.deliveries import WebhookDeliveries
from storage.webhooks.engine import Webhooks


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
    views: Views
    view_sinks: ViewSinks
    view_scans: ViewScans
    view_scan_jobs: ScanJobs
    view_back_tests: ViewBackTests
    view_rows: ViewRowReader
    view_sources: ViewSourceReader
    queries: Queries
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
