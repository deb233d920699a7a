"""Limits of the hot store and its connections."""

from storage.domain.units import KIB, MIB, SECOND_MS

# The memory guard
GUARD_POLL_MS = SECOND_MS
GUARD_CLOSES_AT = 0.85  # of the store's memory: leases, groups and acknowledgements still find room
GUARD_OPENS_AT = 0.80  # well below, so that writes do not stop and go
GUARD_RETRY_S = 5  # draining a twentieth of the memory takes a while
MEMORY_SHARE = (
    0.5  # of what is granted for the store that `up` starts: its log's rewriting needs room as well
)
MEMORY_BYTES_MIN = 256 * MIB

# In one process
PIPELINE_BACKLOG_MAX = 20_000  # calls waiting for a flush; beyond it the caller hears 503
WRITE_HANDS = 2  # flushes of writes under way at once
SECOND_WORKER_WEIGHT = 32  # weight that waits before the next worker takes it
PART_WEIGHT = 1  # of a part that shares a script call with others
COMMAND_WEIGHT = 32  # of a call of its own, which gains nothing by waiting for company
FLUSH_CALLS_MAX = (
    16  # script calls of one flush: while the store works on them, the next are made ready
)
FLUSH_WEIGHT_MAX = (
    FLUSH_CALLS_MAX * COMMAND_WEIGHT
)  # of one flush, for the same reason: parts may weigh as much as calls
PART_BYTES_SMALL = 16 * KIB  # a larger part weighs as a call of its own
COPIED_BYTES_MAX = 16 * KIB  # what is larger is written as it is, not copied into what is around it
FLUSH_BYTES_MAX = 1 * MIB
REDIS_REPLY_MS_MAX = 5 * SECOND_MS

# Waiters
WAITERS_MAX = 50_000
WAITER_RECHECK_MS = 15 * SECOND_MS  # covers a wake-up that was lost
