"""Limits of WebSocket sessions."""

from storage.domain.units import KIB, MIB, SECOND_MS

# Push
PUSH_ID_CHARACTERS_MAX = 128
HELLO_MS_MAX = 10 * SECOND_MS  # a socket that says nothing is not kept
PUSH_HEARTBEAT_MS = 25 * SECOND_MS  # below the idle time-out of common proxies
PUSH_PONG_MS_MAX = 8 * SECOND_MS
RESUME_MS = (
    30 * SECOND_MS
)  # how long a broken session may be taken up again, and keeps its deliveries
CREDIT_MESSAGES_DEFAULT = 100
CREDIT_MESSAGES_MAX = 10_000
CREDIT_BYTES_DEFAULT = 1 * MIB
CREDIT_BYTES_MAX = 64 * MIB
SUBSCRIPTIONS_MAX = 128  # of one session
SOCKETS_MAX = 10_000  # of one process
FRAME_BYTES_MAX = 2 * MIB  # from a client; a message of 1 MiB in base64 fits
PUSH_BYTES_MAX = 256 * KIB  # of bodies in one frame; one message may be larger
PUSH_RECORDS_MAX = 1_000  # in one frame
PUSH_SKIPPED_TOLD = (
    10_000  # records that a filter left out: then the client hears how far its reading is
)
PUSH_KEPT_BYTES = 4 * MIB  # of deliveries that a session keeps until their arrival is known
PUSH_KEPT_FRAMES = 4_096
PUSH_PENDING_MAX = (
    256  # publishes and settlements of a session that wait; then its socket is not read
)
PUSH_TICK_MS = SECOND_MS  # how often sessions are looked at for what is due
PUSH_BACKOFF_MS_MIN = 200  # before a subscription asks again that met an outage
PUSH_BACKOFF_MS_MAX = 5 * SECOND_MS
DRAIN_SPREAD_MS = (
    5 * SECOND_MS
)  # within which the clients of a server that ends are asked to come back
SLOW_CONSUMER_MS = 10 * SECOND_MS  # nothing of what waits could be sent for so long
