"""Limits by name, each with its reason.

Suffixes carry the unit. A limit that a queue or stream may lower is the ceiling of that setting.
"""

import msgspec

from storage.domain.limits._shared import *
from storage.domain.limits.access.audit import *
from storage.domain.limits.access.credentials import *
from storage.domain.limits.access.quotas import *
from storage.domain.limits.integrations.mirrors import *
from storage.domain.limits.integrations.sources import *
from storage.domain.limits.integrations.webhooks import *
from storage.domain.limits.jobs.jobs import *
from storage.domain.limits.jobs.queries import *
from storage.domain.limits.jobs.replays import *
from storage.domain.limits.jobs.sql import *
from storage.domain.limits.jobs.views import *
from storage.domain.limits.messaging.filters import *
from storage.domain.limits.messaging.groups import *
from storage.domain.limits.messaging.idempotency import *
from storage.domain.limits.messaging.messages import *
from storage.domain.limits.messaging.queues import *
from storage.domain.limits.messaging.requests import *
from storage.domain.limits.messaging.streams import *
from storage.domain.limits.messaging.topics import *
from storage.domain.limits.operations.backups import *
from storage.domain.limits.operations.maintenance import *
from storage.domain.limits.operations.observability import *
from storage.domain.limits.operations.processes import *
from storage.domain.limits.protocols.feeds import *
from storage.domain.limits.protocols.http import *
from storage.domain.limits.protocols.websocket import *
from storage.domain.limits.stores.archive import *
from storage.domain.limits.stores.catalog import *
from storage.domain.limits.stores.hot_store import *
from storage.domain.limits.stores.logs import *
from storage.domain.limits.stores.postgres import *
from storage.domain.limits.stores.replication import *


class Limits(msgspec.Struct, frozen=True):
    """The limits a deployment or a test may change; the engines take them as a value."""

    pipeline_backlog_max: int = PIPELINE_BACKLOG_MAX
    write_workers: int = WRITE_WORKERS
    redis_reply_ms_max: int = REDIS_REPLY_MS_MAX
    replicas_confirm_ms_max: int = REPLICAS_CONFIRM_MS_MAX
    hold_back_ms: int = HOLD_BACK_MS
    reservation_offsets_min: int = RESERVATION_OFFSETS_MIN
    reservation_ms: int = RESERVATION_MS
    waiters_max: int = WAITERS_MAX
    hello_ms_max: int = HELLO_MS_MAX
    push_heartbeat_ms: int = PUSH_HEARTBEAT_MS
    push_pong_ms_max: int = PUSH_PONG_MS_MAX
    push_tick_ms: int = PUSH_TICK_MS
    presence_heartbeat_ms: int = PRESENCE_HEARTBEAT_MS
    push_unconfirmed_bytes_max: int = PUSH_UNCONFIRMED_BYTES_MAX
    resume_ms: int = RESUME_MS
    slow_consumer_ms: int = SLOW_CONSUMER_MS
    sockets_max: int = SOCKETS_MAX
    waiter_recheck_ms: int = WAITER_RECHECK_MS
    due_moves_per_call: int = DUE_MOVES_PER_CALL
    expired_per_call: int = EXPIRED_PER_CALL
    skips_per_call: int = SKIPS_PER_CALL
    idempotency_keys_max: int = IDEMPOTENCY_KEYS_MAX
    producers_max: int = PRODUCERS_MAX
    monotonic_writers_max: int = MONOTONIC_WRITERS_MAX
    outage_ms: int = OUTAGE_MS
    archive_cache_bytes: int = ARCHIVE_CACHE_BYTES
    job_lease_ms: int = JOB_LEASE_MS
    job_orphaned_ms: int = JOB_ORPHANED_MS
    job_heartbeat_ms: int = JOB_HEARTBEAT_MS
    job_backoff_ms: int = JOB_BACKOFF_MS_MIN
    job_poll_ms: int = JOB_POLL_MS
    job_idle_ms: int = JOB_IDLE_MS
    job_wait_ms: int = JOB_WAIT_MS
    replay_small_records: int = REPLAY_SMALL_RECORDS
