"""Limits of Postgres."""

from storage.domain.limits._shared import HOUR_MS, MINUTE_MS, SECOND_MS

# Postgres
POSTGRES_REPLY_MS_MAX = 5 * SECOND_MS  # one transaction, or its commit
POSTGRES_HOST_CONNECT_MS_MAX = 2 * SECOND_MS  # of several hosts; the driver's minimum
POSTGRES_CANCEL_MS_MAX = (
    SECOND_MS  # of a statement that was given up; then its connection is closed
)
POSTGRES_CONNECTION_WAIT_MS_MAX = 2 * SECOND_MS  # when all connections are in use; then 503
POSTGRES_IDLE_MS_MAX = (
    10 * SECOND_MS
)  # of a transaction whose process stalls: then its locks are free
POSTGRES_DECISION_MS_MAX = 30 * SECOND_MS  # deciding the store epoch also queries the hot store
POSTGRES_MIGRATION_WAIT_MS_MAX = MINUTE_MS  # while another process migrates
LISTEN_CHECK_MS = 5 * SECOND_MS  # maximum delay until a dead LISTEN connection is noticed
LISTEN_GRACE_MS = (
    5 * SECOND_MS
)  # cached values stay in use without it for this long: a restart takes less
POSTGRES_GRACE_MS = HOUR_MS  # and this long while the hot store shows that nothing has changed
CATALOG_WITNESS_MS = SECOND_MS  # interval at which the hot store is asked then, and for its answer
LISTEN_BACKOFF_MS_MAX = 5 * SECOND_MS
LISTEN_SETTLED_MS = 10 * SECOND_MS  # then others that lost theirs too have it back
