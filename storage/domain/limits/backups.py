"""Limits of backups."""

from storage.domain.limits._shared import MINUTE_MS

# Backups
SNAPSHOT_WAIT_MS_MAX = (
    2 * MINUTE_MS
)  # without data from the store while it forks or loads a large key
RESTORE_SKIPS_OFFSETS = (
    1 << 32
)  # that a log may have assigned since its backup; 2^53 is enough for two million restores
