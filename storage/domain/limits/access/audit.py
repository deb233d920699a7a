"""Limits of the audit log."""

from storage.domain.limits._shared import KIB, MINUTE_MS

# Audit log
AUDIT_TEXT_CHARACTERS_MAX = 512  # of text that callers supply about themselves or the resource
AUDIT_VALUE_BYTES_MAX = 64 * KIB  # of each side of a change; a larger one is recorded as its digest
AUDIT_ENTRY_MS_MAX = (
    MINUTE_MS  # the longest that an entry waits for its turn; its intent exists for longer
)
AUDIT_INTENT_MS = (
    10 * MINUTE_MS
)  # longer than any call takes: the process crashed before the call ended
AUDIT_REFUSALS_PER_MINUTE = 60  # per process: guessing credentials cannot fill the disk
AUDIT_INTENTS_PER_ROUND = 1_000
