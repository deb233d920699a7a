"""Limits of a replica set and its controller."""

from storage.domain.limits._shared import MIB, SECOND_MS

# Replica set
REPLICA_SET_MEMBERS_MAX = (
    5  # five survive the loss of two; each more costs a copy and survives nothing more
)
MIN_INSYNC_REPLICAS_MIN = 2  # one would be acknowledged by a fenced primary alone
MEMBER_REPLY_MS_MAX = SECOND_MS  # of one member: others are asked beside it
MEMBER_LAG_BYTES_MAX = 16 * MIB  # a member that lags by more is behind
MEMBER_SILENT_MS_MAX = 2 * SECOND_MS  # the primary pings each second: two are missed then

# Controller
PROBE_PERIOD_MS = 150
PROBE_WAIT_MS = 400  # of a confirmed write, for WAIT and for WAITAOF
CONFIRM_REPLY_MS = 200  # of a confirmed write, besides what it waits
PRIMARY_FAILED_MS = SECOND_MS  # of failed probes, before a replica is asked about the primary
PRIMARY_ALONE_MS = (
    6 * SECOND_MS
)  # of a primary that only lacks replicas: after its promotion they need a second or two
TERM_UNFINISHED_MS = 2 * SECOND_MS  # of a phase, before another controller follows it
REPLICA_SET_READ_MS = SECOND_MS  # between reads of the row, whose changes are announced besides
CONTROLLER_LEASE_MS = 3 * SECOND_MS  # of the one that acts; two at once are safe, and slower
CONTROLLER_RENEWAL_MS = SECOND_MS
CONTROLLER_MARGIN_MS = SECOND_MS // 2
LINKS_CHECK_MS = SECOND_MS  # between attempts to detach a replica that is no member
CONTROLLER_ALONE_MS = 2 * SECOND_MS  # without a majority of members, before it lets another one act
REPLICATION_CONNECTIONS = 3  # to Postgres, per process: the row, the lease, an operation

# Operations on the replica set
SWITCH_OVER_WAIT_MS = 3 * SECOND_MS  # for the target to be at the primary's position
SWITCH_OVER_POLL_MS = 10
SWITCH_OVER_QUIET_MS = 50  # without a write, so that flushes in progress are confirmed
CONFIRM_WAIT_MS = 2 * SECOND_MS  # of the write that precedes the removal of a member

# Sentinel
SENTINEL_REPLY_MS_MAX = SECOND_MS

# Flushes to the primary
REPLICAS_CONFIRM_MS_MAX = (
    2 * SECOND_MS
)  # for WAIT, and as long for WAITAOF: both together below REDIS_REPLY_MS_MAX
REPLICAS_CONNECT_MS_MAX = SECOND_MS // 2  # until a new connection knows that there are enough
HOLD_BACK_MS = (
    5 * SECOND_MS
)  # of calls without a primary: a fail-over takes 1 to 2 s, of a primary that hangs 4 to 5
HOLD_BACK_RETRY_MS = 50
