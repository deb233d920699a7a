"""Limits of alerts."""

from storage.domain.limits._shared import DAY_MS, MINUTE_MS

# Alerts
GROWTH_WINDOW_MS = 5 * MINUTE_MS  # over which the growth of what waits is measured
ALERT_MUTES_MAX = 1_000  # of a namespace
ALERT_MUTE_MS_MIN = MINUTE_MS
ALERT_MUTE_MS_MAX = 30 * DAY_MS  # a mute without an end would be forgotten
ALERT_OBJECT_CHARACTERS_MAX = 256
