"""Tables, as the migrations create them: a test compares the two.

    namespaces ─┬─ queues ──────────────┐
                ├─ streams ── shards ───┼── logs ── log_holes
                └───────────────────────┘
                ┌─ group_members
    groups ─────┼─ group_shards     of one stream: see `storage.domain.groups.assignment`
                └─ group_bookmarks
    archive_shards ── archive_files   kept beyond their stream's row, until the files are deleted
    jobs ─┬─ job_parts                background work, and the progress of each part of it
          └─ query_results            rows of queries that are done
    views ── view_sinks, view_outbox  ┌─ view_rows, view_row_versions
    view_revisions ───────────────────┴─ view_batches   of a view, and after it until the rows are deleted
    writes                            batches that were staged and committed
                ┌─ webhook_secrets
    webhooks ───┴─ webhook_deliveries   outcome of each delivery; deliverers   processes that serve webhooks
                ┌─ tickets
    credentials ┴─ sessions     authentication of callers, with expiry
    moves       one row for each move of messages out of a queue, or out of its dead letters
    registered_consumers   of streams, by name; account_settings, alert_mutes   of namespaces
    audit       append-only: a trigger refuses anything else; audit_pending   calls that are not in it yet
    deployment  one row, with the state of the replica set; store_members   its members
    attendance  one row

A deleted queue or stream keeps its row, with `deleted_at_ms`, until its logs are swept from the hot
store; its name is free immediately. Its rows in `logs` are deleted with it, so that they cannot be opened again.
"""

from sqlmodel import SQLModel

from storage.postgres.tables.access import (
    AuditPendingRow,
    AuditRow,
    CredentialRow,
    SessionRow,
    TicketRow,
)
from storage.postgres.tables.archive import ArchiveFileRow, ArchiveShardRow
from storage.postgres.tables.deployment import (
    AttendanceRow,
    CatalogVersionRow,
    DeploymentRow,
    LeaseRow,
    StoreMemberRow,
)
from storage.postgres.tables.groups import GroupBookmarkRow, GroupMemberRow, GroupRow, GroupShardRow
from storage.postgres.tables.jobs import JobPartRow, JobRow, QueryResultRow
from storage.postgres.tables.logs import LogHoleRow, LogRow
from storage.postgres.tables.mirrors import (
    MirrorGroupRow,
    MirrorOffsetRow,
    MirrorQueueRow,
    MirrorRow,
    MirrorShardRow,
)
from storage.postgres.tables.namespaces import AccountSettingsRow, AlertMuteRow, NamespaceRow
from storage.postgres.tables.queues import MoveRow, QueuePartitionRow, QueueRow
from storage.postgres.tables.streams import RegisteredConsumerRow, ShardRow, StreamRow, WriteRow
from storage.postgres.tables.topics import RouteLagRow, RouteRow, TopicShardRow
from storage.postgres.tables.views import (
    ViewBatchRow,
    ViewOutboxRow,
    ViewOutputRow,
    ViewRevisionRow,
    ViewRow,
    ViewRowVersion,
    ViewSinkRow,
)
from storage.postgres.tables.webhooks import (
    DelivererRow,
    SourceRow,
    WebhookDeliveryRow,
    WebhookRow,
    WebhookSecretRow,
)

METADATA = SQLModel.metadata
"""The expected schema of the database."""
