"""Limits of a log: its entries, offsets and the work of one script call."""

from storage.domain.units import MIB, MINUTE_MS

# One entry of a log
ENTRY_RECORDS_MAX = 1_000  # a reader that wants one record decodes at most this many
ENTRY_BYTES_MAX = 1 * MIB  # or one larger record

# Offsets
OFFSET_MAX = 2**53 - 1  # what a double, and so Lua and JavaScript, counts exactly
RESERVATION_OFFSETS_MIN = 10_000
RESERVATION_MS = MINUTE_MS  # a reservation covers a minute of the log's rate

# Work of one script call
DUE_MOVES_PER_CALL = 200
EXPIRED_PER_CALL = 500
SKIPS_PER_CALL = 1_000
