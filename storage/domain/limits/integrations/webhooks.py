"""Limits of webhooks."""

from storage.domain.limits._shared import DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Webhooks
WEBHOOK_URL_CHARACTERS_MAX = 2_048
WEBHOOK_HEADERS_MAX = 32
WEBHOOK_HEADER_BYTES_MAX = 4 * KIB  # per value
WEBHOOK_CREDENTIAL_CHARACTERS_MAX = 4_096  # per id, secret, scope or parameter of an OAuth client
WEBHOOK_TOKEN_PARAMETERS_MAX = 32  # of a token request
WEBHOOK_TOKEN_RESPONSE_BYTES_MAX = 64 * KIB  # read from a token endpoint
WEBHOOK_TOKEN_BYTES_MAX = 8 * KIB  # most servers accept no longer header
WEBHOOK_TOKEN_AGE_MS_DEFAULT = 5 * MINUTE_MS  # of an access token without `expires_in`
WEBHOOK_TOKEN_AGE_MS_MAX = DAY_MS
WEBHOOK_TOKEN_MARGIN_MS = (
    30 * SECOND_MS
)  # an access token is replaced so long before its end, or for the last tenth of a shorter life
WEBHOOK_TIMEOUT_MS_MIN = 100
WEBHOOK_TIMEOUT_MS_MAX = 120 * SECOND_MS
WEBHOOK_TIMEOUT_MS_DEFAULT = 15 * SECOND_MS  # Standard Webhooks recommends 15 to 30
WEBHOOK_IN_FLIGHT_MAX = 1_000
WEBHOOK_IN_FLIGHT_DEFAULT = 10
WEBHOOK_RATE_MAX = 10_000  # per second
WEBHOOK_RETRIES_MAX = 50
WEBHOOK_RETRY_MS_MAX = DAY_MS
WEBHOOK_RETRY_DELAYS_MS = (  # of Standard Webhooks: no delay before the first attempt, then these
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
WEBHOOK_JITTER = (
    0.1  # of a delay, in both directions: deliveries that failed together are not retried together
)
WEBHOOK_DISABLE_AFTER_MS_DEFAULT = 5 * DAY_MS  # of failures without a success
WEBHOOK_DISABLE_AFTER_MS_MIN = MINUTE_MS
WEBHOOK_DISABLE_AFTER_MS_MAX = 30 * DAY_MS
WEBHOOK_RETRY_AFTER_MS_MAX = HOUR_MS  # the longest Retry-After of a receiver that is honored
WEBHOOK_THROTTLE_MS_MIN = (
    SECOND_MS  # after a 429 or 502 to 504 without Retry-After; doubled each time
)
WEBHOOK_THROTTLE_MS_MAX = MINUTE_MS
WEBHOOK_BREAKER_FAILURES = 10  # consecutive; then deliveries to the receiver are paused
WEBHOOK_BREAKER_MS_MIN = 10 * SECOND_MS
WEBHOOK_BREAKER_MS_MAX = 10 * MINUTE_MS
WEBHOOK_RESPONSE_BYTES_MAX = 4 * KIB  # read and stored
WEBHOOK_ERROR_CHARACTERS_MAX = 500
WEBHOOK_SECRET_BYTES = 32
WEBHOOK_SECRETS_MAX = 5  # that sign at the same time, during repeated rotations
WEBHOOK_OVERLAP_MS_DEFAULT = (
    DAY_MS  # how long a replaced secret still signs in addition to the new one
)
WEBHOOK_OVERLAP_MS_MAX = 30 * DAY_MS
WEBHOOK_LEASE_MS = (
    10 * SECOND_MS
)  # a killed deliverer's webhooks move to another within this plus one heartbeat
WEBHOOK_HEARTBEAT_MS = SECOND_MS
WEBHOOK_CHANGE_WAIT_MS = (
    WEBHOOK_LEASE_MS + WEBHOOK_HEARTBEAT_MS
)  # how long a change waits until no deliverer sends by the former configuration
WEBHOOK_IDLE_HEARTBEAT_MS = 8 * SECOND_MS  # of a deliverer while there are no active webhooks
WEBHOOK_CHANGE_POLL_MS = 50
WEBHOOK_MESSAGE_LEASE_MS = 15 * SECOND_MS  # of a message, extended during its delivery
WEBHOOK_EXTEND_MS = 5 * SECOND_MS
WEBHOOK_RECEIVE_MAX = 100
WEBHOOK_READ_RECORDS = 200  # of one shard, held in memory
WEBHOOK_READ_BYTES = 4 * MIB
WEBHOOK_COMMIT_MS = SECOND_MS  # records delivered within this may be delivered again after a crash
WEBHOOK_SOURCE_RETRY_MS = 5 * SECOND_MS  # the source was deleted, or the store is unreachable
WEBHOOK_LOG_ATTEMPTS_MAX = 20  # per delivery
WEBHOOK_LOG_MS_DEFAULT = 3 * DAY_MS
WEBHOOK_LOG_MS_MIN = MINUTE_MS
WEBHOOK_LOG_MS_MAX = 30 * DAY_MS
WEBHOOK_LOG_FLUSH_ROWS = 500  # of the delivery log, per statement
WEBHOOK_LOG_FLUSH_MS = 50  # how long a row waits for others to share its statement
WEBHOOK_LOG_BACKLOG_MAX = 5_000  # waiting rows; beyond it, deliveries wait too
WEBHOOK_LOG_DELETES = 5_000  # per statement
WEBHOOK_LOG_PAYLOAD_BYTES_MAX = 16 * KIB  # stored beside the log, of a message that left its queue
WEBHOOK_RESENDS_MAX = 100  # of one bulk call
WEBHOOK_RESEND_CONCURRENCY_MAX = 8  # of one bulk call
WEBHOOK_RESEND_MS_MAX = 15 * SECOND_MS  # after which a bulk call begins no other deliveries
WEBHOOK_DELIVERIES_COUNTED_MAX = 100_000  # by a dry run
WEBHOOK_MANUAL_DELIVERY_CONCURRENCY_MAX = 16  # manually requested, per API process
WEBHOOK_KEEPALIVE_MS = 4 * SECOND_MS  # of an idle connection: most servers close theirs after 5
WEBHOOK_STOP_MS = 5 * SECOND_MS  # how long a deliverer that stops waits for deliveries in progress
