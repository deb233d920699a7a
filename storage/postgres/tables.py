"""Tables, as the migrations create them: a test compares the two.

    namespaces ─┬─ queues ──────────────┐
                ├─ streams ── shards ───┼── logs ── log_holes
                └───────────────────────┘
                ┌─ group_members
    groups ─────┼─ group_shards     of one stream: see `storage.domain.groups.assignment`
                └─ group_bookmarks
    archive_shards ── archive_files   kept beyond their stream's row, until the files are deleted
    jobs ── job_parts                 background work, and the progress of each part of it
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

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    Integer,
    Numeric,
    SmallInteger,
    Text,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId

NAME = Text(collation="C")
"""Names sort and compare by their bytes, whatever the database's locale."""

HASH_KEY = Numeric(39, 0)
"""A whole number below 2^128."""

LIVE = text("deleted_at_ms IS NULL")

OPEN_MOVE = text("state IN ('running', 'cancelling')")

OPEN_JOB = text("state IN ('queued', 'running', 'paused')")

IN_USE = text("superseded_at_ms IS NULL")

CURRENT_ROUTE = text("until_offsets IS NULL")

ACTIVE = text("active")

METADATA = SQLModel.metadata
"""The expected schema of the database."""


class DefinitionColumns(SQLModel):
    """Columns of every noun with definitions; `spec` is its specification."""

    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    name: str = Field(sa_type=NAME)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)


class GroupColumns(SQLModel):
    """Columns of the rows that a group has in other tables."""

    group_id: str = Field(
        primary_key=True, foreign_key="groups.group_id", ondelete="CASCADE", sa_type=NAME
    )


class WebhookColumns(SQLModel):
    """Columns of the rows that a webhook has in other tables."""

    webhook_id: str = Field(
        primary_key=True, foreign_key="webhooks.webhook_id", ondelete="CASCADE", sa_type=NAME
    )


class NamespaceRow(SQLModel, table=True):
    """A `storage.domain.quotas.Namespace`."""

    __tablename__ = "namespaces"

    name: str = Field(primary_key=True, sa_type=NAME)
    account_id: str = Field(unique=True, sa_type=Text)
    quotas: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
    stored_bytes: int | None = Field(default=None, sa_type=BigInteger)
    over: bool


class DeploymentRow(SQLModel, table=True):
    """State of the deployment as a whole; one row.

    `store_epoch`, `replid` and `beacon` are `storage.domain.log.store_epoch.StoreIdentity`; `secret` is 32 random
    bytes that every process shares. `store_term` and the columns below are a `storage.domain.replication.replica_set.ReplicaSet`, whose
    epoch is `store_epoch`; `primary_id` is null while there is none. What was acknowledged since the epoch `lossless_since` was not lost
    up to the epoch `lossless_until`; a version that does not know these columns changes neither.
    """

    __tablename__ = "deployment"
    __table_args__ = (CheckConstraint("id = 1", name="deployment_is_one_row"),)

    id: int = Field(default=1, primary_key=True)
    store_epoch: int = Field(sa_type=BigInteger)
    replid: str = Field(sa_type=Text)
    beacon: int = Field(sa_type=BigInteger)
    secret: bytes
    store_term: int = Field(sa_type=BigInteger)
    store_phase: str = Field(sa_type=Text)
    primary_id: int | None = Field(default=None, foreign_key="store_members.id", sa_type=Integer)
    min_insync_replicas: int = Field(sa_type=Integer)
    lossless_since: int | None = Field(default=None, sa_type=BigInteger)
    lossless_until: int | None = Field(default=None, sa_type=BigInteger)


class CatalogVersionRow(SQLModel, table=True):
    """Version of the definitions and credentials (`storage.catalog.witness`); one row."""

    __tablename__ = "catalog_version"

    id: int | None = Field(default=None, primary_key=True, sa_type=Integer)
    version: int = Field(sa_type=BigInteger)


class StoreMemberRow(SQLModel, table=True):
    """A member of the replica set, `host:port`; ids rise in the order of addition."""

    __tablename__ = "store_members"

    id: int | None = Field(default=None, primary_key=True, sa_type=Integer)
    address: str = Field(unique=True, sa_type=NAME)


class QueueRow(DefinitionColumns, table=True):
    """A queue's definition; `spec` is a `QueueSpec`.

    `partition_sets`: null while the number of partitions was never changed, else [generation, count, since when in ms] of each.
    """

    __tablename__ = "queues"
    __table_args__ = (
        Index("queues_live_name", "namespace", "name", unique=True, postgresql_where=LIVE),
    )

    log_id: LogId = Field(primary_key=True, sa_type=NAME)
    deleted_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    partition_sets: list[list[int]] | None = Field(default=None, sa_type=JSONB(none_as_null=True))


class QueuePartitionRow(SQLModel, table=True):
    """A partition of a queue beyond the first, whose log the queue's own row has."""

    __tablename__ = "queue_partitions"

    queue_id: LogId = Field(primary_key=True, foreign_key="queues.log_id", sa_type=NAME)
    number: int = Field(primary_key=True, sa_type=Integer)
    log_id: LogId = Field(unique=True, sa_type=NAME)
    opened_at_ms: int = Field(sa_type=BigInteger)


class StreamRow(DefinitionColumns, table=True):
    """A stream's definition; `spec` is a `StreamSpec`.

    `shards_target` is set while a reshard is to reach that number of open shards. Of a topic, `routes_version` rises with each change
    of its routes, and `expired_unrouted` counts messages that retention removed before a router had read them.
    """

    __tablename__ = "streams"
    __table_args__ = (
        Index("streams_live_name", "namespace", "name", unique=True, postgresql_where=LIVE),
    )

    stream_id: LogId = Field(primary_key=True, sa_type=NAME)
    deleted_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    shards_target: int | None = Field(default=None, sa_type=Integer)
    routes_version: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )
    expired_unrouted: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )


class RouteRow(SQLModel, table=True):
    """A `storage.domain.topics.route.Route`: one revision.

    `table_version`: the topic's `routes_version` at its last change. Routers add to `delivered`, `dropped`, `dead_lettered` and
    `shadowed`, and note the last `failure` and the end of the `history`.
    """

    __tablename__ = "routes"
    __table_args__ = (
        Index(
            "routes_current_name",
            "stream_id",
            "name",
            unique=True,
            postgresql_where=CURRENT_ROUTE,
        ),
        Index("routes_by_version", "stream_id", "table_version"),
    )

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    number: int = Field(primary_key=True, sa_type=BigInteger)
    name: str = Field(sa_type=NAME)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    table_version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
    until_offsets: list[list[int]] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    removed: bool = False
    delivered: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    dropped: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    dead_lettered: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )
    shadowed: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    failure: str = Field(default="", sa_type=Text, sa_column_kwargs={"server_default": ""})
    history: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    history_done: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class TopicShardRow(SQLModel, table=True):
    """Position of the router in a shard of a topic.

    Everything before it was copied to each route without a `RouteLagRow`.

    `fence`: fencing number of the router's lease.
    """

    __tablename__ = "topic_shards"

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    shard: int = Field(primary_key=True, sa_type=Integer)
    position: int = Field(sa_type=BigInteger)
    fence: int = Field(sa_type=BigInteger)


class RouteLagRow(SQLModel, table=True):
    """Position of a buffer that is behind the router, in a shard of its topic."""

    __tablename__ = "route_lags"

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    buffer: str = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    position: int = Field(sa_type=BigInteger)


class ShardRow(SQLModel, table=True):
    """One shard of a stream: its log, and its range of hash keys, both ends inclusive.

    `parents` are the indexes of the shards it was split or merged from; while one of them is not closed,
    the shard is being opened. An expired one keeps its row until its log is swept from the hot store.
    """

    __tablename__ = "shards"

    stream_id: LogId = Field(primary_key=True, foreign_key="streams.stream_id", sa_type=NAME)
    index: int = Field(primary_key=True, sa_type=Integer)
    log_id: LogId = Field(unique=True, sa_type=NAME)
    first_hash_key: int = Field(sa_type=HASH_KEY)
    last_hash_key: int = Field(sa_type=HASH_KEY)
    opened_at_ms: int = Field(sa_type=BigInteger)
    closed_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    expired_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    parents: list[int] = Field(default_factory=list, sa_type=ARRAY(Integer))


class LogRow(SQLModel, table=True):
    """Reserved offsets of a log: see `storage.postgres.repositories.offset_reservations`."""

    __tablename__ = "logs"

    log_id: LogId = Field(primary_key=True, sa_type=NAME)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    ceiling: int = Field(default=0, sa_type=BigInteger)
    store_epoch: int | None = Field(default=None, sa_type=BigInteger)
    log_epoch: int = Field(default=0, sa_type=BigInteger)
    epoch_start: int = Field(default=0, sa_type=BigInteger)


class LogHoleRow(SQLModel, table=True):
    """Offsets [first, next) of a log that no record has, or that the hot store lost.

    `reason`: a `storage.domain.streams.stream.GapReason`.
    """

    __tablename__ = "log_holes"
    __table_args__ = (CheckConstraint("first < next", name="log_holes_hold_something"),)

    log_id: LogId = Field(
        primary_key=True, foreign_key="logs.log_id", ondelete="CASCADE", sa_type=NAME
    )
    first: int = Field(primary_key=True, sa_type=BigInteger)
    next: int = Field(sa_type=BigInteger)
    reason: str = Field(sa_type=Text)


class MoveRow(SQLModel, table=True):
    """A `storage.domain.queues.moves.Move`, with names instead of log ids.

    A queue that is re-created by that name is still the one meant.
    """

    __tablename__ = "moves"
    __table_args__ = (
        Index("moves_of_a_queue", "namespace", "source", "started_at_ms"),
        Index("moves_open", "namespace", "source", unique=True, postgresql_where=OPEN_MOVE),
    )

    move_id: str = Field(primary_key=True, sa_type=Text)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    source: str = Field(sa_type=NAME)
    destination: str | None = Field(default=None, sa_type=NAME)
    per_second: int = Field(sa_type=Integer)
    state: str = Field(sa_type=Text)
    moved: int = Field(sa_type=BigInteger)
    to_move: int = Field(sa_type=BigInteger)
    failure: str = Field(sa_type=Text)
    started_at_ms: int = Field(sa_type=BigInteger)
    which_dead: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    looked_at: int = Field(sa_type=BigInteger)


class GroupRow(DefinitionColumns, table=True):
    """A consumer group; `spec` is a `GroupSpec`. It is deleted with its stream.

    The stream's name may be taken again before that. `lineage_mark` identifies the shards that the assignment knows: see
    the query `beat_members`.
    """

    __tablename__ = "groups"
    __table_args__ = (
        Index("groups_name", "namespace", "name", unique=True),
        Index("groups_of_a_stream", "stream_id"),
    )

    group_id: str = Field(primary_key=True, sa_type=NAME)
    stream_id: LogId = Field(foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME)
    kind: str = Field(sa_type=Text)
    generation: int = Field(sa_type=BigInteger)
    lineage_mark: int = Field(sa_type=BigInteger)
    session_ms: int = Field(sa_type=BigInteger)
    static_ms: int = Field(sa_type=BigInteger)


class GroupMemberRow(GroupColumns, table=True):
    """A `storage.domain.groups.assignment.Member`."""

    __tablename__ = "group_members"

    member_id: str = Field(primary_key=True, sa_type=NAME)
    static: bool
    away: bool
    joined_generation: int = Field(sa_type=BigInteger)
    joined_at_ms: int = Field(sa_type=BigInteger)
    heartbeat_ms: int = Field(sa_type=BigInteger)


class GroupShardRow(GroupColumns, table=True):
    """A shard of a group: its lease, and a copy of the next offset to read.

    The hot store has the offset, which counts if it was committed under this lease. `committed` is null until
    the first commit; `start`, until the shard is first read.
    """

    __tablename__ = "group_shards"

    shard: int = Field(primary_key=True, sa_type=Integer)
    owner: str | None = Field(default=None, sa_type=NAME)
    generation: int = Field(sa_type=BigInteger)
    revoke_by_ms: int | None = Field(default=None, sa_type=BigInteger)
    committed: int | None = Field(default=None, sa_type=BigInteger)
    committed_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    finished: bool
    start: int | None = Field(default=None, sa_type=BigInteger)


class GroupBookmarkRow(GroupColumns, table=True):
    """A `storage.domain.groups.group.Bookmark`; the shards in `positions` are strings in JSON."""

    __tablename__ = "group_bookmarks"

    name: str = Field(primary_key=True, sa_type=NAME)
    positions: dict[str, int] = Field(sa_type=JSONB)
    created_at_ms: int = Field(sa_type=BigInteger)


class AttendanceRow(SQLModel, table=True):
    """Last recorded time that the database was reachable, and the end of its last outage."""

    __tablename__ = "attendance"
    __table_args__ = (CheckConstraint("id = 1", name="attendance_is_one_row"),)

    id: int = Field(default=1, primary_key=True)
    seen_ms: int = Field(sa_type=BigInteger)
    back_since_ms: int = Field(sa_type=BigInteger)


class RegisteredConsumerRow(SQLModel, table=True):
    """A `storage.domain.streams.consumers.RegisteredConsumer`."""

    __tablename__ = "registered_consumers"

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    name: str = Field(primary_key=True, sa_type=NAME)
    registered_at_ms: int = Field(sa_type=BigInteger)
    tags: dict[str, str] = Field(sa_type=JSONB)
    policy: str | None = Field(default=None, sa_type=Text)


class AccountSettingsRow(SQLModel, table=True):
    """Settings of a namespace, by name."""

    __tablename__ = "account_settings"

    namespace: str = Field(primary_key=True, foreign_key="namespaces.name", sa_type=NAME)
    settings: dict[str, Any] = Field(sa_type=JSONB)


class AlertMuteRow(SQLModel, table=True):
    """A mute of an object's alerts of one kind: a `storage.domain.alerts.mutes.AlertMute`."""

    __tablename__ = "alert_mutes"

    namespace: str = Field(
        primary_key=True, foreign_key="namespaces.name", ondelete="CASCADE", sa_type=NAME
    )
    kind: str = Field(primary_key=True, sa_type=NAME)
    object: str = Field(primary_key=True, sa_type=NAME)
    muted_by: str = Field(sa_type=Text)
    muted_at_ms: int = Field(sa_type=BigInteger)
    until_ms: int = Field(sa_type=BigInteger)


class ArchiveShardRow(SQLModel, table=True):
    """Archive progress of a shard: a `storage.domain.archive.ArchiveState` without totals.

    `namespace` and `log_id` outlive the stream's own rows.
    """

    __tablename__ = "archive_shards"

    stream_id: LogId = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    log_id: LogId = Field(unique=True, sa_type=NAME)
    start: int = Field(sa_type=BigInteger)
    archived: int = Field(sa_type=BigInteger)
    archived_at_ms: int = Field(sa_type=BigInteger)


class ArchiveFileRow(SQLModel, table=True):
    """A `storage.domain.archive.ArchivedFile`.

    A replaced one is kept for readers that planned with it. Of the files in use no two begin or end at one offset, and none
    overlaps another, because `archived` moves by compare-and-set.
    """

    __tablename__ = "archive_files"
    __table_args__ = (
        ForeignKeyConstraint(
            ["stream_id", "shard"],
            ["archive_shards.stream_id", "archive_shards.shard"],
            ondelete="CASCADE",
            name="archive_files_of_a_shard",
        ),
        CheckConstraint("first_offset < next_offset", name="archive_files_hold_something"),
        Index(
            "archive_files_first",
            "stream_id",
            "shard",
            "first_offset",
            unique=True,
            postgresql_where=IN_USE,
        ),
        Index(
            "archive_files_next",
            "stream_id",
            "shard",
            "next_offset",
            unique=True,
            postgresql_where=IN_USE,
        ),
        Index("archive_files_arrival", "stream_id", "shard", "last_arrival_ms"),
        Index("archive_files_path", "path", unique=True),
    )

    file_id: str = Field(primary_key=True, sa_type=NAME)
    stream_id: LogId = Field(sa_type=NAME)
    shard: int = Field(sa_type=Integer)
    first_offset: int = Field(sa_type=BigInteger)
    next_offset: int = Field(sa_type=BigInteger)
    records: int = Field(sa_type=BigInteger)
    log_bytes: int = Field(sa_type=BigInteger)
    file_bytes: int = Field(sa_type=BigInteger)
    first_arrival_ms: int = Field(sa_type=BigInteger)
    last_arrival_ms: int = Field(sa_type=BigInteger)
    path: str = Field(sa_type=Text)
    digest: bytes
    created_at_ms: int = Field(sa_type=BigInteger)
    superseded_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class JobRow(SQLModel, table=True):
    """A `storage.domain.jobs.Job`, and the lease that a worker holds on it."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("jobs_to_do", "run_after_ms", postgresql_where=OPEN_JOB),
        Index("jobs_of_a_kind", "namespace", "kind", "created_at_ms"),
        Index("jobs_open", "kind", "namespace", "subject", unique=True, postgresql_where=OPEN_JOB),
    )

    job_id: str = Field(primary_key=True, sa_type=NAME)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    kind: str = Field(sa_type=Text)
    subject: str = Field(sa_type=NAME)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    state: str = Field(sa_type=Text)
    wish: str = Field(sa_type=Text)
    attempt: int = Field(sa_type=Integer)
    failures: int = Field(sa_type=Integer)
    attempts_max: int = Field(sa_type=Integer)
    run_after_ms: int = Field(sa_type=BigInteger)
    worker: str | None = Field(default=None, sa_type=Text)
    lease_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    progress: dict[str, Any] = Field(sa_type=JSONB)
    failure: str = Field(sa_type=Text)
    created_at_ms: int = Field(sa_type=BigInteger)
    started_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    ended_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class JobPartRow(SQLModel, table=True):
    """Progress of a part of a job: `position` is the next item, `counts` the work done."""

    __tablename__ = "job_parts"

    job_id: str = Field(
        primary_key=True, foreign_key="jobs.job_id", ondelete="CASCADE", sa_type=NAME
    )
    part: str = Field(primary_key=True, sa_type=NAME)
    position: int = Field(sa_type=BigInteger)
    done: bool
    counts: dict[str, int] = Field(sa_type=JSONB)


class WriteRow(SQLModel, table=True):
    """A `storage.postgres.repositories.staged_writes.Write`."""

    __tablename__ = "writes"
    __table_args__ = (
        Index("writes_open", "stream_id", postgresql_where=text("not done")),
        Index("writes_decided", "decided_at_ms"),
    )

    stream_id: LogId = Field(
        primary_key=True, foreign_key="streams.stream_id", ondelete="CASCADE", sa_type=NAME
    )
    writer_id: str = Field(primary_key=True, sa_type=NAME)
    batch_id: int = Field(primary_key=True, sa_type=BigInteger)
    staged: list[str] = Field(sa_type=ARRAY(Text))
    parts: int = Field(sa_type=Integer)
    records: int = Field(sa_type=BigInteger)
    done: bool
    decided_at_ms: int = Field(sa_type=BigInteger)


class WebhookRow(DefinitionColumns, table=True):
    """A `storage.domain.webhooks.Webhook`, and the lease of the deliverer that serves it.

    `spec` has the names of its headers; their values, and the secret of its credentials, are in `sealed_headers`. `active`: deliverers serve it.
    `served_version`: the one that the holder of the lease serves.
    """

    __tablename__ = "webhooks"
    __table_args__ = (
        Index("webhooks_name", "namespace", "name", unique=True),
        Index("webhooks_active", "webhook_id", postgresql_where=ACTIVE),
    )

    webhook_id: str = Field(primary_key=True, sa_type=NAME)
    sealed_headers: bytes | None = Field(default=None)
    active: bool
    disabled_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    disabled_because: str | None = Field(default=None, sa_type=Text)
    health: dict[str, Any] = Field(sa_type=JSONB)
    holder: str | None = Field(default=None, sa_type=NAME)
    lease_epoch: int = Field(sa_type=BigInteger)
    lease_until_ms: int = Field(sa_type=BigInteger)
    served_version: int | None = Field(default=None, sa_type=BigInteger)


class WebhookSecretRow(WebhookColumns, table=True):
    """A `storage.domain.webhooks.Secret`, encrypted."""

    __tablename__ = "webhook_secrets"

    number: int = Field(primary_key=True, sa_type=Integer)
    sealed: bytes
    created_at_ms: int = Field(sa_type=BigInteger)
    expires_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class SourceRow(DefinitionColumns, table=True):
    """A `storage.domain.sources.source.InboundSource`.

    Its secrets and tokens are in `sealed`, encrypted.
    """

    __tablename__ = "sources"
    __table_args__ = (Index("sources_name", "namespace", "name", unique=True),)

    source_id: str = Field(primary_key=True, sa_type=NAME)
    sealed: bytes


class MirrorRow(DefinitionColumns, table=True):
    """A `storage.domain.mirrors.mirror.Mirror`; its key is in `sealed`, encrypted.

    `failure`: why its puller could not list the streams of the origin. `listed_at_ms`: when it last could.
    """

    __tablename__ = "mirrors"
    __table_args__ = (Index("mirrors_name", "namespace", "name", unique=True),)

    mirror_id: str = Field(primary_key=True, sa_type=NAME)
    sealed: bytes
    promoted_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    failure: str = Field(default="", sa_type=Text, sa_column_kwargs={"server_default": ""})
    listed_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class MirrorShardRow(SQLModel, table=True):
    """A `storage.domain.mirrors.progress.ShardProgress`."""

    __tablename__ = "mirror_shards"

    mirror_id: str = Field(
        primary_key=True, foreign_key="mirrors.mirror_id", ondelete="CASCADE", sa_type=NAME
    )
    stream: str = Field(primary_key=True, sa_type=NAME)
    origin_id: str = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    target_id: str = Field(sa_type=NAME)
    next_offset: int = Field(sa_type=BigInteger)
    tip: int = Field(sa_type=BigInteger)
    behind_ms: int = Field(sa_type=BigInteger)
    checked_at_ms: int = Field(sa_type=BigInteger)
    copied: int = Field(sa_type=BigInteger)
    skipped: int = Field(sa_type=BigInteger)
    ended: bool
    failure: str = Field(sa_type=Text)


class MirrorOffsetRow(SQLModel, table=True):
    """A `storage.domain.mirrors.offsets.OffsetBound` of a shard of the origin."""

    __tablename__ = "mirror_offsets"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mirror_id", "stream", "origin_id", "shard"],
            [
                "mirror_shards.mirror_id",
                "mirror_shards.stream",
                "mirror_shards.origin_id",
                "mirror_shards.shard",
            ],
            ondelete="CASCADE",
            name="mirror_offsets_of_a_shard",
        ),
    )

    mirror_id: str = Field(primary_key=True, sa_type=NAME)
    stream: str = Field(primary_key=True, sa_type=NAME)
    origin_id: str = Field(primary_key=True, sa_type=NAME)
    shard: int = Field(primary_key=True, sa_type=Integer)
    target_shard: int = Field(primary_key=True, sa_type=Integer)
    origin_offset: int = Field(primary_key=True, sa_type=BigInteger)
    target_offset: int = Field(sa_type=BigInteger)


class MirrorGroupRow(SQLModel, table=True):
    """A `storage.domain.mirrors.groups.MirroredGroup`.

    `positions` are by shard, null until it was moved.
    """

    __tablename__ = "mirror_groups"

    mirror_id: str = Field(
        primary_key=True, foreign_key="mirrors.mirror_id", ondelete="CASCADE", sa_type=NAME
    )
    group_name: str = Field(primary_key=True, sa_type=NAME)
    stream: str = Field(sa_type=NAME)
    origin_created_at: str = Field(sa_type=Text)
    group_id: str | None = Field(default=None, sa_type=NAME)
    state: str = Field(sa_type=Text)
    positions: dict[str, int] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    noted_at_ms: int = Field(sa_type=BigInteger)
    moved_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    failure: str = Field(sa_type=Text)


class MirrorQueueRow(SQLModel, table=True):
    """A `storage.domain.mirrors.progress.QueueProgress`."""

    __tablename__ = "mirror_queues"

    mirror_id: str = Field(
        primary_key=True, foreign_key="mirrors.mirror_id", ondelete="CASCADE", sa_type=NAME
    )
    queue: str = Field(primary_key=True, sa_type=NAME)
    paused: bool
    next_offset: int = Field(sa_type=BigInteger)
    tip: int = Field(sa_type=BigInteger)
    behind_ms: int = Field(sa_type=BigInteger)
    checked_at_ms: int = Field(sa_type=BigInteger)
    copied: int = Field(sa_type=BigInteger)
    failure: str = Field(sa_type=Text)


class WebhookDeliveryRow(WebhookColumns, table=True):
    """A `storage.domain.webhooks.WebhookDelivery`; `payload` is a `Payload` in MessagePack."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("webhook_deliveries_newest", "webhook_id", "first_at_ms", "event_id"),
        Index("webhook_deliveries_expired", "expires_at_ms"),
    )

    event_id: str = Field(primary_key=True, sa_type=NAME)
    status: str = Field(sa_type=Text)
    attempts: int = Field(sa_type=Integer)
    kept: list[dict[str, Any]] = Field(sa_type=JSONB)
    first_at_ms: int = Field(sa_type=BigInteger)
    last_at_ms: int = Field(sa_type=BigInteger)
    next_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    expires_at_ms: int = Field(sa_type=BigInteger)
    shard: int | None = Field(default=None, sa_type=Integer)
    place: int | None = Field(default=None, sa_type=BigInteger)
    event_at_ms: int = Field(sa_type=BigInteger)
    event_key: str = Field(sa_type=Text)
    event_group: str = Field(sa_type=Text)
    payload: bytes | None = Field(default=None)


class AuditRow(SQLModel, table=True):
    """A `storage.domain.access.audit.AuditRecord`; `before` and `after` are JSON."""

    __tablename__ = "audit"
    __table_args__ = (
        Index("audit_namespace", "namespace", "seq"),
        Index("audit_principal", "principal", "seq"),
        Index("audit_resource", "resource", "seq"),
    )

    seq: int = Field(primary_key=True, sa_type=BigInteger)
    format: int = Field(default=1, sa_type=SmallInteger, sa_column_kwargs={"server_default": "1"})
    at_ms: int = Field(sa_type=BigInteger)
    namespace: str = Field(sa_type=NAME)
    principal: str = Field(sa_type=NAME)
    credential: str = Field(sa_type=NAME)
    authenticated: str = Field(sa_type=Text)
    address: str = Field(sa_type=Text)
    door: str = Field(sa_type=Text)
    operation: str = Field(sa_type=Text)
    action: str = Field(sa_type=NAME)
    resource: str = Field(sa_type=NAME)
    request_id: str = Field(sa_type=Text)
    outcome: str = Field(sa_type=Text)
    before: str | None = Field(default=None, sa_type=Text)
    after: str | None = Field(default=None, sa_type=Text)
    prev_hash: str = Field(sa_type=Text)
    hash: str = Field(sa_type=Text)


class AuditPendingRow(SQLModel, table=True):
    """Intent: a `storage.domain.access.audit.AuditedCall` as JSON, and the prior definition."""

    __tablename__ = "audit_pending"
    __table_args__ = (Index("audit_pending_at", "at_ms"),)

    intent_id: str = Field(primary_key=True, sa_type=NAME)
    at_ms: int = Field(sa_type=BigInteger)
    asked: str = Field(sa_type=Text)
    before: str | None = Field(default=None, sa_type=Text)


class LeaseRow(SQLModel, table=True):
    """A leader's lease; its row stays, with the fencing number."""

    __tablename__ = "leases"

    name: str = Field(primary_key=True, sa_type=NAME)
    holder: str = Field(sa_type=NAME)
    fence: int = Field(sa_type=BigInteger)
    expires_at_ms: int = Field(sa_type=BigInteger)


class DelivererRow(SQLModel, table=True):
    """A process that serves webhooks, and its last heartbeat."""

    __tablename__ = "deliverers"

    deliverer: str = Field(primary_key=True, sa_type=NAME)
    seen_ms: int = Field(sa_type=BigInteger)


class CredentialRow(SQLModel, table=True):
    """A `storage.domain.access.credentials.IssuedCredential`, and its secret's stored form.

    `digest` is of an API key's secret; `sealed` is that of an access key pair, encrypted.
    """

    __tablename__ = "credentials"
    __table_args__ = (
        Index("credentials_name", "namespace", "name", "id"),
        Index("credentials_family", "family"),
    )

    id: str = Field(primary_key=True, sa_type=NAME)
    kind: str = Field(sa_type=Text)
    name: str = Field(sa_type=NAME)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    everywhere: bool
    roles: list[str] = Field(sa_type=JSONB)
    grants: list[dict[str, Any]] = Field(sa_type=JSONB)
    rates: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    family: str = Field(sa_type=NAME)
    version: int = Field(sa_type=BigInteger)
    digest: bytes | None = Field(default=None)
    sealed: bytes | None = Field(default=None)
    created_by: str = Field(sa_type=Text)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
    expires_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    last_used_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    revoked_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class TicketRow(SQLModel, table=True):
    """An unredeemed ticket: its requester, and its permissions.

    `digest` is of its token. `ends_at_ms` is the expiry of the requester's own credential, 0: never.
    """

    __tablename__ = "tickets"
    __table_args__ = (
        Index("tickets_expired", "expires_at_ms"),
        Index("tickets_credential", "credential_id"),
    )

    digest: bytes = Field(primary_key=True)
    credential_id: str | None = Field(
        default=None, foreign_key="credentials.id", ondelete="CASCADE", sa_type=NAME
    )
    name: str = Field(sa_type=Text)
    namespace: str = Field(sa_type=NAME)
    grants: list[dict[str, Any]] = Field(sa_type=JSONB)
    rates: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    ends_at_ms: int = Field(sa_type=BigInteger)
    expires_at_ms: int = Field(sa_type=BigInteger)


class SessionRow(SQLModel, table=True):
    """A session of a browser that logged in.

    `digest` is of its token; `used_at_ms` is a minute behind at most.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        Index("sessions_used", "used_at_ms"),
        Index("sessions_credential", "credential_id"),
    )

    digest: bytes = Field(primary_key=True)
    credential_id: str = Field(foreign_key="credentials.id", ondelete="CASCADE", sa_type=NAME)
    created_at_ms: int = Field(sa_type=BigInteger)
    used_at_ms: int = Field(sa_type=BigInteger)
