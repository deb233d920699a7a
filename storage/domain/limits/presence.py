"""Limits of process heartbeats."""

from storage.domain.units import SECOND_MS

# Which processes there are, and who is connected to them
PRESENCE_BEAT_MS = 3 * SECOND_MS  # how often a process says that it is there
PRESENCE_STALE_MS = 10 * SECOND_MS  # one that was silent for three beats is gone
PRESENCE_SOCKETS_MAX = (
    500  # of a process, told with every beat at some 300 bytes each; the rest are counted
)
