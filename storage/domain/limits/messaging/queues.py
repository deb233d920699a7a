"""Limits of queues."""

from storage.domain.limits._shared import DAY_MS, HOUR_MS, MIB, MINUTE_MS, SECOND_MS

# Queues
RECEIVE_MESSAGES_MAX = 1_000
RECEIVE_BYTES_MAX = 8 * MIB  # per receive; at least one message is always returned
SETTLEMENTS_MAX = 1_000
VISIBILITY_TIMEOUT_MS_MAX = 12 * HOUR_MS  # also the longest total extension of one delivery
NACK_DELAY_MS_MAX = (
    2 * DAY_MS
)  # of a nack, in every protocol; covers the retry schedule of webhooks
VISIBILITY_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
DELAY_MS_MAX = 3650 * DAY_MS
TTL_MS_MAX = 3650 * DAY_MS
QUEUE_RETENTION_MS_MIN = MINUTE_MS
QUEUE_RETENTION_MS_MAX = 365 * DAY_MS
QUEUE_RETENTION_MS_DEFAULT = 4 * DAY_MS
QUEUE_IDLE_MS_MIN = (
    MINUTE_MS  # after which an unused queue is deleted: several rechecks of a waiting receive
)
QUEUE_IDLE_MS_MAX = 365 * DAY_MS
QUEUE_EXPIRY_PERIOD_MS = 10 * SECOND_MS  # how often unused queues are looked for
DEAD_LETTER_RETENTION_MS_DEFAULT = 14 * DAY_MS
ATTEMPTS_MAX_DEFAULT = 10
ATTEMPTS_MAX_MAX = 1_000
RECEIVES_MAX_MAX = 1_000  # as maxReceiveCount
IN_FLIGHT_MAX_MAX = 10_000_000
IN_FLIGHT_MAX_DEFAULT = IN_FLIGHT_MAX_MAX
REDRIVE_SOURCES_MAX = 10  # as SQS byQueue
PRIORITY_MAX = 9
QUEUE_PARTITIONS_MAX = 64
PARTITION_TURNS_CACHED_MAX = 10_000  # queues with partitions, per process
PARTITIONS_TRIED_MAX = 2  # others that a send tries while the store of its partition is away
PARTITION_OFFSETS = (
    2**46
)  # of each partition in the offsets of its queue, which stay below OFFSET_MAX
PARTITION_MEMORY_MS = (
    20 * MINUTE_MS
)  # after a change, former partitions are asked for idempotency keys: twice their window
QUEUE_MESSAGES_MAX = 10**12  # a higher cap could never be reached
QUEUE_BYTES_MAX = 2**50
GROUP_WEIGHTS_MAX = 100  # each is compared with the group whose turn it is
GROUP_WEIGHT_MAX = 1_000  # consecutive messages of one group
DEATH_REASONS_COUNTED_MAX = (
    5_000  # dead letters whose reasons a page counts on each request: five calls
)
DEATH_REASONS_TTL_MS = 15 * SECOND_MS  # maximum age of the counts on a page if there are more
BROWSE_SCANNED_MAX = 1_000  # messages that one browse call examines
BROWSE_BYTES_MAX = (
    RECEIVE_BYTES_MAX  # messages or dead letters per page; at least one is always returned
)
COPY_CHANGES_MAX = 1_000  # of a queue that is copied, per call
COPY_MESSAGES_MAX = 500  # of a queue that is copied, per call
COPY_DROPS_MAX = 1_000  # messages that one call drops from a copy
COPY_CHANGES_RETENTION_MS = DAY_MS  # that changes are recorded for while no copy reads them
COPY_POLL_MS = 500  # between looks for changes while a call waits: acknowledgements wake nobody
BACKOFF_MULTIPLIER_MAX = 100
BACKOFF_DELAYS_MAX = 100
ARRIVAL_WINDOW_MS = (
    10 * MINUTE_MS
)  # how long a queue remembers messages that were moved from another queue
MOVE_STEP_MS_MAX = (
    MINUTE_MS  # older lists of moving messages are discarded: well within ARRIVAL_WINDOW_MS
)
MOVE_BATCH_MESSAGES = 100
MOVE_RATE_MAX = 500  # messages per second, as SQS
DEDUP_WINDOW_MS = 5 * MINUTE_MS  # as SQS FIFO
ATTEMPT_WINDOW_MS = 5 * MINUTE_MS  # as SQS FIFO's ReceiveRequestAttemptId
ATTEMPT_ID_CHARACTERS_MAX = 128

# Consumers of a queue
CONSUMER_WINDOW_MS = 5 * MINUTE_MS  # a consumer is listed for as long after its last receive
CONSUMER_REPORT_MS = 10 * SECOND_MS
CONSUMER_REFRESH_MS = MINUTE_MS  # of a consumer that waits, and receives nothing
CONSUMER_RETENTION_MS = DAY_MS  # within which a message's last consumer is known by name
CONSUMER_CLIENT_CHARACTERS_MAX = 100
QUEUE_CONSUMERS_MAX = 500  # of one queue; the longest inactive are forgotten first
CONSUMERS_TRACKED_MAX = 10_000  # of all queues, per process
CONSUMER_IN_FLIGHT_COUNTED_MAX = (
    5_000  # messages; with more, the number of each consumer is estimated
)

# Time from send to acknowledgement
ACKNOWLEDGE_TIMES_SUB_BITS = 3  # a percentile is at most an eighth too high
ACKNOWLEDGE_TIMES_RETENTION_MS = HOUR_MS  # without acknowledgements
ACKNOWLEDGE_TIMES_QUEUES_MAX = 10_000  # per process, between two reports

# Message history
HISTORY_EVENTS_MAX = 50_000  # of all messages of a queue: about 60 bytes each, at most 400
HISTORY_SCANNED_MAX = 2_000  # events that one call skips; the hot store is blocked meanwhile
