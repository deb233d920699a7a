"""Limits of maintenance."""

from storage.domain.units import MINUTE_MS

# Maintenance
REPAIR_ATTEMPTS_MAX = 8  # times one call may find its log not ready before it fails
MAINTENANCE_TASK_MS_MAX = (
    5 * MINUTE_MS
)  # one round of a maintenance task; the remaining work waits for the next
TOMBSTONE_MS = 10 * MINUTE_MS  # ten times the maximum age of any cache
