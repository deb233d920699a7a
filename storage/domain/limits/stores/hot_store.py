"""Limits of the hot store and its connections."""

from storage.domain.limits._shared import KIB, MIB, SECOND_MS

# Memory guard
GUARD_POLL_MS = SECOND_MS
GUARD_IDLE_POLL_MS = 5 * SECOND_MS  # while less than half is used and nothing changes
GUARD_CHANGE_BYTES = MIB  # a smaller change of the memory in use counts as none
GUARD_SHED_ABOVE = (
    0.85  # of the store's memory: leases, groups and acknowledgements still have room
)
GUARD_ACCEPT_BELOW = (
    0.80  # well below, so that writes do not alternate between rejected and accepted
)
GUARD_RETRY_S = 5  # draining a twentieth of the memory takes a while
MEMORY_SHARE = (
    0.5  # of the memory granted to the store that `up` starts: rewriting its log needs memory too
)
MEMORY_BYTES_MIN = 256 * MIB
REPLICATION_BACKLOG_BYTES = (
    256 * MIB
)  # of each replicated store that `up` starts: what a replica may miss without a full resync

# Hot store connections, per process
PIPELINE_BACKLOG_MAX = 20_000  # calls waiting for a flush; beyond it, calls get 503
WRITE_WORKERS = 2  # concurrent flushes of writes
SECOND_WORKER_WEIGHT = 32  # waiting weight at which the next worker starts to flush
PART_WEIGHT = 1  # of a part that shares a script call with others
COMMAND_WEIGHT = 32  # of a separate call, which gains nothing by waiting for others
FLUSH_CALLS_MAX = (
    16  # script calls per flush: while the store processes them, the next are prepared
)
FLUSH_WEIGHT_MAX = (
    FLUSH_CALLS_MAX * COMMAND_WEIGHT
)  # per flush, for the same reason: parts can weigh as much as calls
PART_BYTES_SMALL = 16 * KIB  # a larger part weighs as much as a separate call
COPIED_BYTES_MAX = (
    16 * KIB
)  # larger values are written as they are, not copied into the surrounding buffer
FLUSH_BYTES_MAX = 1 * MIB
REDIS_REPLY_MS_MAX = 5 * SECOND_MS

# Long polls
WAITERS_MAX = 50_000
WAITER_RECHECK_MS = 15 * SECOND_MS  # covers a lost wake-up

# Replicated stores
REPLICAS_MISSING_TOLERATED_MS = (
    5 * SECOND_MS
)  # by readiness: a fail-over takes three, and an API that leaves its balancer makes it longer
STORE_ADDRESS_CHARACTERS_MAX = 262  # a host name of 255, a colon and a port, with room for brackets
