"""Limits of consumer groups."""

from storage.domain.limits._shared import MINUTE_MS, SECOND_MS

# Consumer groups
SESSION_TIMEOUT_MS_MIN = SECOND_MS
SESSION_TIMEOUT_MS_MAX = 30 * MINUTE_MS
SESSION_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
STATIC_TIMEOUT_MS_DEFAULT = 5 * MINUTE_MS  # a static member's restart moves no shard
REVOKE_TIMEOUT_MS_DEFAULT = (
    MINUTE_MS  # then a shard moves, whether its revocation was acknowledged or not
)
HEARTBEAT_MS_MAX = (
    5 * SECOND_MS
)  # also the maximum delay until a waiting member receives a new assignment
MEMBERS_MAX = 1_024  # as many as shards: further members would have nothing to read
COMMIT_SHARDS_MAX = 1_024  # as many as a stream has
BOOKMARKS_MAX = 1_000  # per group
GROUP_BATCH_CALLS_MAX = 500  # commits or heartbeats that share a statement
GROUP_BACKLOG_MAX = 20_000  # calls waiting for a statement; beyond it, calls get 503
DATABASE_HEARTBEAT_MS = SECOND_MS  # how often a process records that the database is reachable
OUTAGE_MS = (
    5 * SECOND_MS
)  # without a database heartbeat for this long, the database was unreachable
GROUP_ASSIGNMENTS_CACHED_MAX = 10_000  # of members, per process, for an outage of Postgres
GROUP_HIGH_WATERMARKS_CACHED_MAX = 100_000  # of logs, per process, to avoid a read at each commit
