"""Limits of backups."""

from storage.domain.units import MINUTE_MS

# Backups
SNAPSHOT_WAIT_MS_MAX = (
    2 * MINUTE_MS
)  # without a word of the store while it forks, or takes a large key
RESTORE_SKIPS_OFFSETS = (
    1 << 32
)  # what a log may have handed out since its backup; 2^53 holds two million restores
