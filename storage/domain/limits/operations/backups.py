"""Limits of backups."""

from storage.domain.limits._shared import MINUTE_MS, SECOND_MS

# Backups
SNAPSHOT_WAIT_MS_MAX = (
    2 * MINUTE_MS
)  # without data from the store while it forks or loads a large key
CLUSTER_PAUSE_MS_MAX = (
    3 * SECOND_MS
)  # writes to a cluster wait while its primaries fork; below REDIS_REPLY_MS_MAX, so that none is unanswered
CLUSTER_SNAPSHOT_ATTEMPTS_MAX = 3  # at a common moment of the primaries
RESTORE_SKIPS_OFFSETS = (
    1 << 32
)  # that a log may have assigned since its backup; 2^53 is enough for two million restores
