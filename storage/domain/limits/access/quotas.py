"""Limits of namespaces, rates and connections."""

from storage.domain.limits._shared import MINUTE_MS, SECOND_MS

# Quotas, namespaces and connections
NAMESPACES_MAX = 10_000  # every process caches all of them
RATE_MIN = 0.001  # per second: about one in a quarter of an hour
RATE_MAX = 1e12
BURST_SECONDS_MIN = 0.1
BURST_SECONDS_MAX = 3_600
RESOURCE_RATES_MAX = 100  # globs per namespace: each is compared when a process first sees a name
LEASE_SHARE_SECONDS = 0.1  # of a rate, leased by a process at a time: ten round trips per second
LEASE_MS = SECOND_MS  # tokens that a process leased and did not spend expire after this
LOW_SHARE = 0.2  # of a bucket: below it, responses carry RateLimit headers
POLICIES_CACHED_MAX = 20_000  # callers and resources whose policies a process caches
NAMESPACES_AGE_MS_MAX = MINUTE_MS  # all are read again after this, regardless of notifications
NAMESPACES_RETRY_MS = SECOND_MS  # before a failed read is repeated
CONNECTION_SLOTS_TTL_MS = (
    30 * SECOND_MS
)  # the connections of a killed process are counted for this long
CONNECTION_SLOTS_PUBLISH_MS = (
    10 * SECOND_MS
)  # interval at which a process publishes its connections
USAGE_MEASURE_CONCURRENCY_MAX = 50  # measured concurrently
STORED_BYTES_RETRY_S = 5  # how often a namespace is measured, and so when it may send again
