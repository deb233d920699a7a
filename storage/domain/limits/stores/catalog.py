"""Limits of the catalog of definitions."""

from storage.domain.limits._shared import MINUTE_MS, SECOND_MS

# Definitions of queues, streams and groups
DEFINITION_AGE_MS_MAX = (
    MINUTE_MS  # a cached definition is read again after this, regardless of notifications
)
DEFINITION_NEW_MS = (
    MINUTE_MS  # maintenance checks created or changed definitions in every round for this long
)
DEFINITION_REPLICA_AGE_MS_MAX = (
    5 * MINUTE_MS
)  # maintenance reads all definitions again after this, regardless of notifications
DEFINITION_CHANGES_MAX = 1_000  # changes after which maintenance reads all definitions again
DEFINITION_BATCH_NAMES_MAX = 500  # definitions that share a statement
DEFINITION_BACKLOG_MAX = 20_000  # names waiting for a statement; beyond it, calls get 503
CACHE_WARM_MS = MINUTE_MS  # interval at which caches are checked for what they lack
CACHE_WARM_LINGER_MS = 200  # changes within this are read together
CACHE_WARM_RETRY_MS = 5 * SECOND_MS
DEFINITIONS_CACHED_MAX = 100_000  # of each kind; beyond it, the oldest is read again
