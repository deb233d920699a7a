"""Limits of sources."""

from storage.domain.limits._shared import DAY_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Sources
SOURCE_SECRETS_MAX = 2  # the second one during a rotation
SOURCE_SECRET_CHARACTERS_MIN = 8
SOURCE_SECRET_CHARACTERS_MAX = 512
SOURCE_SIGNATURES_MAX = 8  # of a request; Standard Webhooks and Stripe send one for each secret
SOURCE_HEADERS_MAX = 16  # that are stored with an event
SOURCE_HEADER_BYTES_MAX = 4 * KIB  # per value; a longer one is not stored
SOURCE_TOLERANCE_MS_MIN = SECOND_MS
SOURCE_TOLERANCE_MS_DEFAULT = 5 * MINUTE_MS  # as Stripe, Slack and Standard Webhooks recommend
SOURCE_TOLERANCE_MS_MAX = DAY_MS
SOURCE_DEDUP_MS_MIN = MINUTE_MS
SOURCE_DEDUP_MS_DEFAULT = 3 * DAY_MS  # the longest time for which providers retry
SOURCE_DEDUP_MS_MAX = 14 * DAY_MS
SOURCE_EVENT_IDS_MAX = 200_000  # remembered for each source, about 20 MB; the oldest are forgotten
SOURCE_EVENT_ID_CHARACTERS_MAX = 256  # a longer one is replaced by its SHA-256
SOURCE_KEY_POINTER_CHARACTERS_MAX = 256
SOURCE_FAILURES_MAX = 100  # rejected events of each source that are listed
SOURCE_FAILURE_MS = 7 * DAY_MS  # after which the list of a source without new failures is deleted
SOURCE_TOKEN_BYTES = 32
SOURCE_TOKEN_OVERLAP_MS_MAX = 30 * DAY_MS
SOURCE_PRODUCER_DAYS = 2  # after which the producer of a day is retired; clocks may differ
SOURCE_PRODUCERS_RETIRED_MAX = 30  # by the first sweep of a process, for the days without one
SOURCE_BLOCKED_MS = MINUTE_MS  # age of its oldest event from which a source counts as blocked
SOURCES_RETIRED_CACHED_MAX = 10_000  # sources whose last retired producer a process knows

# Outboxes
OUTBOX_SEQUENCES_PER_MS = 2048  # as accept_event.lua assigns them, from the time on
OUTBOX_BATCH_ENTRIES = 100  # of one transfer
OUTBOX_BATCH_BYTES = MIB
OUTBOX_BYTES_MAX = (
    64 * MIB
)  # that wait in one outbox; beyond, events are rejected and providers retry
