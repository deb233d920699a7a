"""Limits of process heartbeats."""

from storage.domain.limits._shared import SECOND_MS

# Processes and their connections
PRESENCE_HEARTBEAT_MS = 3 * SECOND_MS
PRESENCE_STALE_MS = (
    10 * SECOND_MS
)  # a process without a heartbeat for this long, about three of them, is removed
PRESENCE_FAILING_MAX = 20  # objects that a process cannot serve, sent with each heartbeat
PRESENCE_SOCKETS_MAX = (
    500  # per process, sent with each heartbeat at about 300 bytes each; the rest are counted
)
