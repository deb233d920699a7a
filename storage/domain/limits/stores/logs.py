"""Limits of a log: its entries, offsets and the work of one script call."""

from storage.domain.limits._shared import HOUR_MS, MIB, SECOND_MS

# Entries of a log
ENTRY_RECORDS_MAX = 1_000  # a reader that needs one record decodes at most this many
ENTRY_BYTES_MAX = 1 * MIB  # or one larger record

# Offsets
OFFSET_MAX = (
    2**53 - 1
)  # the largest integer that a double represents exactly, and so Lua and JavaScript
RESERVATION_OFFSETS_MIN = 1_000_000  # numbers, not bytes: a fail-over of the store skips them
RESERVATION_OFFSETS_MAX = 2**40  # so that thousands of fail-overs stay below OFFSET_MAX
RESERVATIONS_CACHED_MAX = 100_000  # logs whose last reservation a process caches
RESERVATION_MS = HOUR_MS  # an outage of Postgres in which a log's reservation lasts, at its rate
RESERVATION_RETRY_MS = SECOND_MS  # between attempts to reserve ahead while Postgres refuses

# Work that one script call does beside its own, bounded so that no call stalls the server
DUE_MOVES_PER_CALL = 200
EXPIRED_PER_CALL = 500
SKIPS_PER_CALL = 1_000
