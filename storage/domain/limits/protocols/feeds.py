"""Limits of feeds and server-sent events."""

from storage.domain.limits._shared import MIB, SECOND_MS

# Feeds that readers share, and server-sent events
FEED_READ_RECORDS = 1_000  # per read: encoded in one pass
EVENTS_HEARTBEAT_MS = 15 * SECOND_MS  # below the idle time-out of common proxies
EVENT_READERS_MAX = 10_000  # per process
FEED_READ_BYTES = 1 * MIB  # or one larger record
FEEDS_BYTES_MAX = 64 * MIB  # records that all feeds of a process buffer, with their encoded forms
