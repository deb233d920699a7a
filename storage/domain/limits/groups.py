"""Limits of consumer groups."""

from storage.domain.units import MINUTE_MS, SECOND_MS

# Consumer groups
SESSION_TIMEOUT_MS_MIN = SECOND_MS
SESSION_TIMEOUT_MS_MAX = 30 * MINUTE_MS
SESSION_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
STATIC_TIMEOUT_MS_DEFAULT = 5 * MINUTE_MS  # a static member's restart moves no shard
REVOKE_TIMEOUT_MS_DEFAULT = MINUTE_MS  # then a shard moves, whether it was given up or not
HEARTBEAT_MS_MAX = 5 * SECOND_MS  # also how late a waiting member hears of a new assignment
MEMBERS_MAX = 1_024  # as many as shards: more would have nothing to read
COMMIT_SHARDS_MAX = 1_024  # as many as a stream has
BOOKMARKS_MAX = 1_000  # of one group
GROUP_ASKS_MAX = 500  # commits or heartbeats that share a statement
GROUP_BACKLOG_MAX = 20_000  # calls waiting for a statement; beyond it the caller hears 503
ATTENDANCE_MS = SECOND_MS  # how often a process notes that the database is there
OUTAGE_MS = 5 * SECOND_MS  # nobody noted it for so long: the database was away
GROUP_TIPS_KNOWN_MAX = (
    100_000  # ends of logs that a process remembers, so as not to ask at each commit
)
