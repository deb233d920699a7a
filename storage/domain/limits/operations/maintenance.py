"""Limits of maintenance."""

from storage.domain.limits._shared import MINUTE_MS, SECOND_MS

# Maintenance
REPAIR_ATTEMPTS_MAX = 8  # times one call may find its log not ready before it fails
MAINTENANCE_TASK_MS_MAX = (
    5 * MINUTE_MS
)  # one round of a maintenance task; the remaining work waits for the next
MAINTENANCE_CONCURRENCY_MAX = 50  # objects that a task visits at once
TOMBSTONE_MS = 10 * MINUTE_MS  # ten times the maximum age of any cache

# Objects that fail by themselves
ISOLATION_BACKOFF_MS = SECOND_MS  # after the first failure; doubled with each further one
ISOLATION_BACKOFF_DOUBLINGS_MAX = 9  # up to four minutes between visits
ISOLATED_FAILURES_MAX = (
    1_000  # objects whose failures a process remembers; beyond it the oldest is evicted
)
ISOLATED_FAILURE_AGE_MS = (
    15 * MINUTE_MS
)  # a failing object that was not visited for this long was deleted
ISOLATED_STORE_FAILURES_MAX = 3  # objects in a row for which the store fails before a round ends
ISOLATED_STORE_OUTAGE_MS = 5 * SECOND_MS  # without an object served, before a round ends
ISOLATED_REASON_CHARACTERS_MAX = 500

# Leaders of maintenance
LEADER_LEASE_MS = 10 * SECOND_MS  # after a kill, another process leads within this time
LEADER_RENEWAL_MS = 3 * SECOND_MS  # interval of renewals, of which two may fail
LEADER_MARGIN_MS = SECOND_MS  # a leader stops this long before its lease ends
