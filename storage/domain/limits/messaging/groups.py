"""Limits of consumer groups."""

from storage.domain.limits._shared import DAY_MS, MINUTE_MS, SECOND_MS

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
GROUP_FILTER_RECORDS = (
    1_000  # that a read with a filter looks at, before others may use the process
)
GROUP_FILTER_MS = 5 * SECOND_MS  # that a read passes over records for, beyond its wait
BOOKMARKS_MAX = 1_000  # per group
GROUP_BATCH_CALLS_MAX = 500  # heartbeats that share a statement
GROUP_BACKLOG_MAX = 20_000  # calls waiting for a statement; beyond it, calls get 503
DATABASE_HEARTBEAT_MS = SECOND_MS  # how often a process records that the database is reachable
OUTAGE_MS = (
    5 * SECOND_MS
)  # without a database heartbeat for this long, the database was unreachable
GROUP_ASSIGNMENTS_CACHED_MAX = 10_000  # of members, per process, for an outage of Postgres
GROUP_HIGH_WATERMARKS_CACHED_MAX = 100_000  # of logs, per process, to avoid a read at each commit
GROUP_OFFSETS_TTL_MS = 7 * DAY_MS  # in the hot store, renewed daily by commits; rows have a copy
GROUP_OFFSETS_COPY_MS = SECOND_MS  # interval at which a process copies its commits to Postgres
GROUP_OFFSETS_PENDING_MAX = 100_000  # shards whose commits a process has yet to copy
GROUP_OFFSETS_SWEEP_MS = MINUTE_MS  # interval at which commits of ended processes are copied
GROUP_FREEZE_MS_MAX = (
    2 * SECOND_MS
)  # for the hot store's answer to a change of leases; then it is 503
