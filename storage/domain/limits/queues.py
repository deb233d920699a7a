"""Limits of queues."""

from storage.domain.units import DAY_MS, HOUR_MS, MIB, MINUTE_MS, SECOND_MS

# Queues
RECEIVE_MESSAGES_MAX = 1_000
RECEIVE_BYTES_MAX = 8 * MIB  # what one receive reads; at least one message is always returned
SETTLEMENTS_MAX = 1_000
VISIBILITY_TIMEOUT_MS_MAX = 12 * HOUR_MS  # also the longest one delivery may be extended to
VISIBILITY_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
DELAY_MS_MAX = 3650 * DAY_MS
TTL_MS_MAX = 3650 * DAY_MS
QUEUE_RETENTION_MS_MIN = MINUTE_MS
QUEUE_RETENTION_MS_MAX = 365 * DAY_MS
QUEUE_RETENTION_MS_DEFAULT = 4 * DAY_MS
DEAD_LETTER_RETENTION_MS_DEFAULT = 14 * DAY_MS
ATTEMPTS_MAX_DEFAULT = 10
ATTEMPTS_MAX_MAX = 1_000
RECEIVES_MAX_MAX = 1_000  # as maxReceiveCount
IN_FLIGHT_MAX_MAX = 10_000_000
IN_FLIGHT_MAX_DEFAULT = IN_FLIGHT_MAX_MAX
REDRIVE_SOURCES_MAX = 10  # as SQS byQueue
PRIORITY_MAX = 9
QUEUE_MESSAGES_MAX = 10**12  # a cap beyond it would never be met
QUEUE_BYTES_MAX = 2**50
GROUP_WEIGHTS_MAX = 100  # each is compared with a group whose turn it is
GROUP_WEIGHT_MAX = 1_000  # messages of one group in a row
DEATH_REASONS_COUNTED_MAX = 5_000  # dead letters that a page counts by reason each time: five calls
DEATH_REASONS_TTL_MS = 15 * SECOND_MS  # how old the counts of more may be on a page
BROWSE_LOOKS_MAX = 1_000  # messages that one call of browsing looks at
BROWSE_BYTES_MAX = (
    RECEIVE_BYTES_MAX  # of messages or dead letters in a page; at least one is always shown
)
BACKOFF_MULTIPLIER_MAX = 100
BACKOFF_DELAYS_MAX = 100
ARRIVAL_WINDOW_MS = 10 * MINUTE_MS  # how long a queue remembers what came from another one
MOVE_STEP_MS_MAX = MINUTE_MS  # older news of what is moving is not acted on: well within the window
MOVE_BATCH_MESSAGES = 100
MOVE_RATE_MAX = 500  # messages a second, as SQS
DEDUP_WINDOW_MS = 5 * MINUTE_MS  # as SQS FIFO
ATTEMPT_WINDOW_MS = 5 * MINUTE_MS  # as SQS FIFO's ReceiveRequestAttemptId
ATTEMPT_ID_CHARACTERS_MAX = 128

# The history of a queue's messages
HISTORY_EVENTS_MAX = 50_000  # of all messages of a queue: some 60 bytes each, 400 at most
HISTORY_LOOKS_MAX = (
    2_000  # of these that one call passes by, as the hot store does nothing else meanwhile
)
