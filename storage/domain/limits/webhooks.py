"""Limits of webhooks."""

from storage.domain.units import DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Webhooks
NACK_DELAY_MS_MAX = 2 * DAY_MS  # the longest wait of a retry schedule, with its jitter
WEBHOOK_URL_CHARACTERS_MAX = 2_048
WEBHOOK_HEADERS_MAX = 32
WEBHOOK_HEADER_BYTES_MAX = 4 * KIB  # of one value
WEBHOOK_TIMEOUT_MS_MIN = 100
WEBHOOK_TIMEOUT_MS_MAX = 120 * SECOND_MS
WEBHOOK_TIMEOUT_MS_DEFAULT = 15 * SECOND_MS  # as Standard Webhooks asks: 15 to 30
WEBHOOK_IN_FLIGHT_MAX = 1_000
WEBHOOK_IN_FLIGHT_DEFAULT = 10
WEBHOOK_RATE_MAX = 10_000  # a second
WEBHOOK_RETRIES_MAX = 50
WEBHOOK_RETRY_MS_MAX = DAY_MS
WEBHOOK_RETRY_DELAYS_MS = (  # of Standard Webhooks: before the first attempt nothing, then these
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
)
WEBHOOK_JITTER = 0.1  # of a delay, to either side: what failed together does not come back together
WEBHOOK_DISABLE_AFTER_MS_DEFAULT = 5 * DAY_MS  # of nothing but failure
WEBHOOK_DISABLE_AFTER_MS_MIN = MINUTE_MS
WEBHOOK_DISABLE_AFTER_MS_MAX = 30 * DAY_MS
WEBHOOK_RETRY_AFTER_MS_MAX = HOUR_MS  # of what a receiver's Retry-After may ask
WEBHOOK_THROTTLE_MS_MIN = (
    SECOND_MS  # after a 429 or 502 to 504 that says no time; doubled each time
)
WEBHOOK_THROTTLE_MS_MAX = MINUTE_MS
WEBHOOK_BREAKER_FAILURES = 10  # in a row: the receiver is left alone for a while
WEBHOOK_BREAKER_MS_MIN = 10 * SECOND_MS
WEBHOOK_BREAKER_MS_MAX = 10 * MINUTE_MS
WEBHOOK_RESPONSE_BYTES_MAX = 4 * KIB  # read, and kept
WEBHOOK_ERROR_CHARACTERS_MAX = 500
WEBHOOK_SECRET_BYTES = 32
WEBHOOK_SECRETS_MAX = 5  # that sign at one time, while they are changed again and again
WEBHOOK_OVERLAP_MS_DEFAULT = DAY_MS  # how long a secret that was replaced signs beside the new one
WEBHOOK_OVERLAP_MS_MAX = 30 * DAY_MS
WEBHOOK_LEASE_MS = 10 * SECOND_MS  # a killed deliverer's webhooks move on within this, and a beat
WEBHOOK_BEAT_MS = SECOND_MS
WEBHOOK_MESSAGE_LEASE_MS = 15 * SECOND_MS  # of a message, extended while its delivery is under way
WEBHOOK_EXTEND_MS = 5 * SECOND_MS
WEBHOOK_RECEIVE_MAX = 100
WEBHOOK_READ_RECORDS = 200  # of one shard that are held in memory
WEBHOOK_READ_BYTES = 4 * MIB
WEBHOOK_COMMIT_MS = SECOND_MS  # records delivered since may be delivered again after a kill
WEBHOOK_SOURCE_RETRY_MS = 5 * SECOND_MS  # a source that is gone, or a store that is away
WEBHOOK_ATTEMPTS_KEPT = 20  # of one delivery
WEBHOOK_LOG_MS_DEFAULT = 3 * DAY_MS
WEBHOOK_LOG_MS_MIN = MINUTE_MS
WEBHOOK_LOG_MS_MAX = 30 * DAY_MS
WEBHOOK_LOG_FLUSH_ROWS = 500  # of the log, in one statement
WEBHOOK_LOG_FLUSH_MS = 50  # how long a row waits for company
WEBHOOK_LOG_BACKLOG_MAX = 5_000  # rows that wait; beyond it deliveries wait as well
WEBHOOK_LOG_DELETES = 5_000  # in one statement
WEBHOOK_PAYLOAD_KEPT_BYTES = 16 * KIB  # beside the log, of a message that left its queue
WEBHOOK_SENDS_AT_ONCE = 16  # on request, by one API process
WEBHOOK_KEEPALIVE_MS = 4 * SECOND_MS  # of an idle connection: most servers close theirs after 5
WEBHOOK_STOP_MS = 5 * SECOND_MS  # what a deliverer gives deliveries under way at its end
