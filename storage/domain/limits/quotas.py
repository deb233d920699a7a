"""Limits of namespaces, rates and connections."""

from storage.domain.units import MINUTE_MS, SECOND_MS

# Quotas
NAMESPACES_MAX = 10_000  # every process knows them all
RATE_MIN = 0.001  # a second: one in a quarter of an hour
RATE_MAX = 1e12
BURST_SECONDS_MIN = 0.1
BURST_SECONDS_MAX = 3_600
RESOURCE_RATES_MAX = (
    100  # globs of a namespace: each is looked at when a process first meets a name
)
LEASE_SHARE_SECONDS = 0.1  # of a rate that a process takes at a time: ten round trips a second
LEASE_MS = SECOND_MS  # what a process took and did not spend is void after this
LOW_SHARE = 0.2  # of a bucket: below it callers are told how they stand
POLICIES_KEPT_MAX = 20_000  # callers and resources that a process remembers the policies of
NAMESPACES_AGE_MS_MAX = MINUTE_MS  # all are read again after this, whatever was heard
NAMESPACES_RETRY_MS = SECOND_MS  # before a read that failed is repeated
PLACES_MS = 30 * SECOND_MS  # the connections of a process that was killed count so long
PLACES_SAY_MS = 10 * SECOND_MS
WEIGHED_AT_ONCE = 50  # logs
STORED_BYTES_RETRY_S = 5  # how often a namespace is weighed, so when it may be let in again
