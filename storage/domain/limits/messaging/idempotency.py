"""Limits of producers and idempotency keys."""

from storage.domain.limits._shared import DAY_MS, MINUTE_MS

# Idempotency and producer state, per log
IDEMPOTENCY_WINDOW_MS = 10 * MINUTE_MS
IDEMPOTENCY_LOOKUP_MS = (
    IDEMPOTENCY_WINDOW_MS + MINUTE_MS
)  # shards closed within this are searched too; clocks may differ
IDEMPOTENCY_KEYS_MAX = 100_000  # per log; beyond it, the oldest half is forgotten early
PRODUCER_IDLE_MS = DAY_MS  # as Kafka's producer.id.expiration.ms
PRODUCERS_MAX = 10_000  # per log; beyond it, the idle half is forgotten early
PRODUCER_BATCHES_MAX = 5  # as Kafka's NUM_BATCHES_TO_RETAIN
MONOTONIC_WRITERS_MAX = (
    10_000  # per log; beyond it, new writers are rejected, since none may be forgotten
)
MONOTONIC_WRITERS_RETIRED_MS = DAY_MS  # no attempt that was stopped runs longer than this
MONOTONIC_WRITERS_RETIRED_MAX = 100_000  # per log; beyond it, the oldest half is forgotten early
ANCESTOR_WATERMARKS_CACHED_MAX = 10_000  # logs whose ancestors' watermarks a process caches
