"""Limits of feeds and server-sent events."""

from storage.domain.units import MIB, SECOND_MS

# Feeds, which many readers share
FEED_READ_RECORDS = 1_000  # of one read: what is encoded in one go
EVENTS_HEARTBEAT_MS = 15 * SECOND_MS  # below the idle time-out of common proxies
EVENT_READERS_MAX = 10_000  # of one process
FEED_READ_BYTES = 1 * MIB  # or one larger record
FEEDS_BYTES_MAX = 64 * MIB  # that all feeds of a process remember, with what was encoded of it
