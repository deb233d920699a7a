"""Limits of producers and idempotency keys."""

from storage.domain.units import DAY_MS, MINUTE_MS

# What a log remembers of its writers
IDEMPOTENCY_WINDOW_MS = 10 * MINUTE_MS
KEYS_ASKED_MS = IDEMPOTENCY_WINDOW_MS + MINUTE_MS  # of shards that are closed; clocks may differ
IDEMPOTENCY_KEYS_MAX = 100_000  # per log; beyond it the oldest half is forgotten early
PRODUCER_IDLE_MS = DAY_MS  # as Kafka's producer.id.expiration.ms
PRODUCERS_MAX = 10_000  # per log; beyond it the idle half is forgotten early
PRODUCER_BATCHES_KEPT = 5  # as Kafka's NUM_BATCHES_TO_RETAIN
RISING_PRODUCERS_MAX = 10_000  # per log; one more is refused, since none may be forgotten
RISING_OVER_MS = DAY_MS  # no attempt that was stopped lives longer than this
RISING_OVER_MAX = 100_000  # per log; beyond it the oldest half is forgotten early
RISING_FLOORS_KNOWN_MAX = 10_000  # logs of which a process knows what their ancestors took
