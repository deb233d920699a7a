"""Limits of the audit log."""

from storage.domain.units import KIB, MINUTE_MS

# The audit log
AUDIT_TEXT_CHARACTERS_MAX = 512  # of what callers say of themselves and of what they want
AUDIT_SHOWN_BYTES_MAX = 64 * KIB  # of one side of a change; a larger one is told by its digest
AUDIT_ENTRY_MS_MAX = MINUTE_MS  # an entry waits so long for its turn; its intent outlives that
AUDIT_INTENT_MS = 10 * MINUTE_MS  # longer than any call takes: its process did not live to its end
AUDIT_REFUSALS_PER_MINUTE = 60  # of one process: who guesses cannot fill the disk
AUDIT_INTENTS_PER_ROUND = 1_000
