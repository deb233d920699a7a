"""Limits of WebSocket sessions."""

from storage.domain.limits._shared import KIB, MIB, SECOND_MS

# WebSocket sessions
PUSH_ID_CHARACTERS_MAX = 128
HELLO_MS_MAX = 10 * SECOND_MS  # a socket that sends nothing within this is closed
PUSH_HEARTBEAT_MS = 25 * SECOND_MS  # below the idle time-out of common proxies
PUSH_PONG_MS_MAX = 8 * SECOND_MS
RESUME_MS = (
    30 * SECOND_MS
)  # how long an interrupted session can be resumed and keeps its deliveries
CREDIT_MESSAGES_DEFAULT = 100
CREDIT_MESSAGES_MAX = 10_000
CREDIT_BYTES_DEFAULT = 1 * MIB
CREDIT_BYTES_MAX = 64 * MIB
SUBSCRIPTIONS_MAX = 128  # per session
SOCKETS_MAX = 10_000  # per process
FRAME_BYTES_MAX = 2 * MIB  # from a client; a message of 1 MiB in base64 fits
PUSH_BYTES_MAX = 256 * KIB  # of bodies per frame; a single message may be larger
PUSH_RECORDS_MAX = 1_000  # per frame
PUSH_SKIPPED_RECORDS_MAX = (
    10_000  # records that a filter skips before the client is sent the position of its reader
)
PUSH_UNCONFIRMED_BYTES_MAX = (
    4 * MIB
)  # of deliveries that a session buffers until the client confirms them
PUSH_UNCONFIRMED_FRAMES_MAX = 4_096
PUSH_PENDING_MAX = (
    256  # waiting publishes and settlements per session; beyond it, its socket is not read
)
PUSH_REQUESTS_MAX = 256  # that wait for replies per session; further ones are refused
AUTO_EXTEND_TIMEOUT_MS_MIN = (
    3 * SECOND_MS
)  # of deliveries that are extended: a shorter timeout could end before the check that extends it
PUSH_TICK_MS = SECOND_MS  # how often sessions are checked for work that is due
PUSH_BACKOFF_MS_MIN = 200  # before a subscription retries after an outage
PUSH_BACKOFF_MS_MAX = 5 * SECOND_MS
DRAIN_SPREAD_MS = (
    5 * SECOND_MS
)  # within which the clients of a server that shuts down are asked to reconnect
SLOW_CONSUMER_MS = 10 * SECOND_MS  # no pending data could be sent for this long
