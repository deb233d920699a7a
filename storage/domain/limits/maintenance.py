"""Limits of maintenance."""

from storage.domain.units import MINUTE_MS

# Maintenance
REPAIR_ATTEMPTS_MAX = 8  # times one call may find its log not ready before it gives up
DUTY_MS_MAX = 5 * MINUTE_MS  # one round of a sweep; what is left waits for the next
TOMBSTONE_MS = 10 * MINUTE_MS  # ten times what any cache can be behind
