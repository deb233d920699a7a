"""Limits of Postgres."""

from storage.domain.units import MINUTE_MS, SECOND_MS

# Postgres
POSTGRES_REPLY_MS_MAX = 5 * SECOND_MS  # one transaction, or its commit
POSTGRES_CONNECTION_WAIT_MS_MAX = 2 * SECOND_MS  # every connection is in use; then 503
POSTGRES_DECISION_MS_MAX = 30 * SECOND_MS  # deciding the store epoch asks the hot store as well
POSTGRES_MIGRATION_WAIT_MS_MAX = MINUTE_MS  # another process is migrating
LISTEN_CHECK_MS = 5 * SECOND_MS  # how soon a dead LISTEN connection is noticed
LISTEN_GRACE_MS = 5 * SECOND_MS  # what is known stays in use without it: a restart takes less
LISTEN_BACKOFF_MS_MAX = 5 * SECOND_MS
