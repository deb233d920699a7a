"""Definitions of all metrics.

Counters only increase and live in the process; with PROMETHEUS_MULTIPROC_DIR set, the processes of one deployment are
added up at each scrape.

The hot path counts in plain numbers (0.05 µs; a counter takes 0.4, and 0.9 where processes share a directory), which
`flush` adds to the metrics every half second, before each scrape and at the end.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from storage.domain.errors import ErrorCode
from storage.domain.histogram import STORE_SECONDS
from storage.domain.queues.message import ReceivedMessage, SettleAction
from storage.domain.webhooks import AttemptOutcome, SourceKind
from storage.operations.store_metrics import StoreMetrics
from storage.settings import Durability

LATENCY_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
JOB_BUCKETS_SECONDS = (0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)

MESSAGES_RECEIVED = Counter(
    "millstream_messages_received_total",
    "Messages and records sent by producers",
    ["kind", "protocol"],
)
RECEIVED_BYTES = Counter(
    "millstream_messages_received_bytes_total",
    "Bytes of the bodies sent by producers",
    ["kind", "protocol"],
)
MESSAGES_CONFIRMED = Counter(
    "millstream_messages_confirmed_total",
    "Messages and records acknowledged to their producers",
    ["kind", "durability"],
)
MESSAGES_DEDUPLICATED = Counter(
    "millstream_messages_deduplicated_total",
    "Duplicate messages and records",
    ["kind"],
)
MESSAGES_DELIVERED = Counter(
    "millstream_messages_delivered_total",
    "Messages and records delivered to consumers",
    ["kind", "mode", "ack"],
)
MESSAGES_REDELIVERED = Counter("millstream_messages_redelivered_total", "Redeliveries", ["kind"])
MESSAGES_ACKNOWLEDGED = Counter(
    "millstream_messages_acknowledged_total", "Deliveries acknowledged", ["kind"]
)
MESSAGES_NACKED = Counter("millstream_messages_nacked_total", "Deliveries that failed", ["kind"])
MESSAGES_REJECTED = Counter("millstream_messages_rejected_total", "Batch items rejected", ["code"])
RECEIVE_EMPTY = Counter(
    "millstream_receive_empty_total", "Receives and reads that returned nothing", ["kind"]
)
REQUEST_SECONDS = Histogram(
    "millstream_request_duration_seconds",
    "Time from the first byte of a request to its response",
    ["operation", "status_class", "protocol"],
    buckets=LATENCY_SECONDS,
)
END_TO_END_SECONDS = Histogram(
    "millstream_end_to_end_latency_seconds",
    "Time from the send of a message to its first delivery",
    ["kind"],
    buckets=LATENCY_SECONDS,
)
EVENT_LOOP_LAG_SECONDS = Histogram(
    "millstream_event_loop_lag_seconds",
    "Event-loop lag",
    buckets=LATENCY_SECONDS,
)
JOB_SECONDS = Histogram(
    "millstream_job_duration_seconds",
    "Duration of job attempts, by resulting job state; 'queued' will be retried",
    ["kind", "state"],
    buckets=JOB_BUCKETS_SECONDS,
)

WEBSOCKET_CONNECTIONS = Gauge(
    "millstream_websocket_connections", "Open WebSocket connections", multiprocess_mode="livesum"
)
WEBSOCKET_SESSIONS = Gauge(
    "millstream_websocket_sessions",
    "WebSocket sessions, including those that lost their connection and can still be resumed",
    multiprocess_mode="livesum",
)
WEBSOCKET_SUBSCRIPTIONS = Gauge(
    "millstream_websocket_subscriptions",
    "Subscriptions of all sessions",
    multiprocess_mode="livesum",
)
WEBSOCKET_CLOSED = Counter(
    "millstream_websocket_closed_total", "Closed WebSocket connections, by close code", ["code"]
)
WEBSOCKET_RESUMED = Counter(
    "millstream_websocket_resumed_total",
    "Requests to resume a session, by success",
    ["resumed"],
)
WEBSOCKET_SEND_QUEUE_BYTES = Gauge(
    "millstream_websocket_send_queue_bytes",
    "Bytes of frames queued for sending",
    multiprocess_mode="livesum",
)
WEBSOCKET_SLOW_CONSUMERS = Counter(
    "millstream_websocket_slow_consumers_total",
    "WebSocket connections closed because the client stopped reading",
)
WEBHOOK_ATTEMPTS = Counter("millstream_webhook_attempts_total", "Webhook requests", ["outcome"])
WEBHOOK_ENDPOINTS_DISABLED = Gauge(
    "millstream_webhook_endpoints_disabled",
    "Webhooks disabled because every delivery failed or the receiver returned 410",
    multiprocess_mode="livemax",
)

RATE_LIMITED = Counter(
    "millstream_rate_limited_total",
    "Calls, writes and connections rejected by a quota or the memory guard, by policy",
    ["policy"],
)

REDIS_SECONDS = Histogram(
    "millstream_redis_command_duration_seconds",
    "Time from a flush of commands to its last reply, by purpose",
    ["op"],
    buckets=STORE_SECONDS,
)
REDIS_ERRORS = Counter(
    "millstream_redis_errors_total",
    "Commands rejected by the store and flushes without a reply, by error type",
    ["kind"],
)
POSTGRES_SECONDS = Histogram(
    "millstream_postgres_query_duration_seconds",
    "Duration of Postgres transactions, including the wait for a connection",
    ["op"],
    buckets=STORE_SECONDS,
)
POSTGRES_POOL_IN_USE = Gauge(
    "millstream_postgres_pool_in_use",
    "Postgres connections in use by transactions",
    multiprocess_mode="livesum",
)
POSTGRES_POOL_WAITING = Gauge(
    "millstream_postgres_pool_waiting",
    "Transactions waiting for a Postgres connection",
    multiprocess_mode="livesum",
)
ARCHIVE_SEGMENTS = Counter("millstream_archive_segments_total", "Files added to the archive")
ARCHIVE_BYTES = Counter("millstream_archive_bytes_total", "Bytes of files added to the archive")
ARCHIVE_FAILURES = Counter("millstream_archive_failures_total", "Failed archive attempts")
REPLAY_RECORDS = Counter("millstream_replay_records_total", "Records sent by replays")

METRICS: tuple[Counter | Gauge | Histogram, ...] = (
    MESSAGES_RECEIVED,
    RECEIVED_BYTES,
    MESSAGES_CONFIRMED,
    MESSAGES_DEDUPLICATED,
    MESSAGES_DELIVERED,
    MESSAGES_REDELIVERED,
    MESSAGES_ACKNOWLEDGED,
    MESSAGES_NACKED,
    MESSAGES_REJECTED,
    RECEIVE_EMPTY,
    REQUEST_SECONDS,
    END_TO_END_SECONDS,
    EVENT_LOOP_LAG_SECONDS,
    JOB_SECONDS,
    WEBSOCKET_CONNECTIONS,
    WEBSOCKET_SESSIONS,
    WEBSOCKET_SUBSCRIPTIONS,
    WEBSOCKET_CLOSED,
    WEBSOCKET_RESUMED,
    WEBHOOK_ATTEMPTS,
    WEBHOOK_ENDPOINTS_DISABLED,
    RATE_LIMITED,
    WEBSOCKET_SEND_QUEUE_BYTES,
    WEBSOCKET_SLOW_CONSUMERS,
    REDIS_SECONDS,
    REDIS_ERRORS,
    POSTGRES_SECONDS,
    POSTGRES_POOL_IN_USE,
    POSTGRES_POOL_WAITING,
    ARCHIVE_SEGMENTS,
    ARCHIVE_BYTES,
    ARCHIVE_FAILURES,
    REPLAY_RECORDS,
)
"""All metrics that processes count. Those of the stores are in `api.observability.store_metrics`."""

_DURABILITY_WORDS: dict[Durability, str] = {"always": "fsync", "everysec": "memory"}


class CounterBuffer:
    """Pending increments of a counter, in a plain number."""

    __slots__ = ("_counter", "count")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.count = 0

    def flush(self) -> None:
        """Add the pending count to the counter."""
        if self.count:
            count, self.count = self.count, 0
            self._counter.inc(count)


class HistogramBuffer:
    """Pending observations of a histogram, in plain numbers."""

    __slots__ = ("_buckets", "_histogram", "_total_seconds")

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._buckets = [0] * (len(LATENCY_SECONDS) + 1)
        self._total_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count an observation in the first bucket whose bound is not below it."""
        self._buckets[bisect_left(LATENCY_SECONDS, seconds)] += 1
        self._total_seconds += seconds

    def flush(self) -> None:
        """Add the pending observations to the histogram."""
        if not any(self._buckets):
            return
        _add(self._histogram, self._buckets, self._total_seconds)
        self._buckets = [0] * len(self._buckets)
        self._total_seconds = 0.0


class RateLimitBuffer:
    """Requests that the rate limiter has refused since the last flush, by policy."""

    __slots__ = ("_counts",)

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def flush(self) -> None:
        """Add the pending counts to the metric."""
        for policy, count in self._counts.items():
            RATE_LIMITED.labels(policy).inc(count)
        self._counts.clear()


class StoreMetricsBuffer:
    """Measurements of a process's storage calls since the last flush."""

    __slots__ = ("_meters", "_timed")

    def __init__(self, meters: StoreMetrics) -> None:
        self._meters = meters
        self._timed = [
            *((REDIS_SECONDS.labels(op), timings) for op, timings in meters.redis.items()),
            *((POSTGRES_SECONDS.labels(op), timings) for op, timings in meters.postgres.items()),
        ]

    def flush(self) -> None:
        """Add the pending measurements to the metrics."""
        for histogram, timings in self._timed:
            counts = timings.take()
            if any(counts.buckets):
                _add(histogram, counts.buckets, counts.total_seconds)
        for kind, count in self._meters.redis_errors.items():
            REDIS_ERRORS.labels(kind).inc(count)
        self._meters.redis_errors.clear()
        POSTGRES_POOL_IN_USE.set(self._meters.postgres_in_use())
        POSTGRES_POOL_WAITING.set(self._meters.postgres_waiting())


def _add(histogram: Histogram, counts: Sequence[int], total_seconds: float) -> None:
    """Add many observations in one step; a histogram's own `observe` adds one at a time."""
    for own, bucket in zip(counts, histogram._buckets, strict=True):
        if own:
            bucket.inc(own)
    histogram._sum.inc(total_seconds)


class MetricBuffers:
    """Pending counts of one application, in plain numbers."""

    def __init__(self) -> None:
        self._pending: list[
            CounterBuffer | HistogramBuffer | RateLimitBuffer | StoreMetricsBuffer
        ] = []

    def add(self, pending: RateLimitBuffer | StoreMetricsBuffer) -> None:
        """Include these in each flush."""
        self._pending.append(pending)

    def counter(self, counter: Counter) -> CounterBuffer:
        """Return a new tally for a counter with its labels."""
        tally = CounterBuffer(counter)
        self._pending.append(tally)
        return tally

    def histogram(self, histogram: Histogram) -> HistogramBuffer:
        """Return new observations for a histogram with its labels."""
        observations = HistogramBuffer(histogram)
        self._pending.append(observations)
        return observations

    def flush(self) -> None:
        """Add all pending counts to the metrics."""
        for pending in self._pending:
            pending.flush()


class ProtocolMetrics:
    """Metrics of one protocol for one kind ('queue' or 'stream'), with labels resolved once."""

    def __init__(
        self,
        counts: MetricBuffers,
        kind: str,
        protocol: str,
        durability: Durability,
        mode: str = "poll",
    ) -> None:
        self._received = counts.counter(MESSAGES_RECEIVED.labels(kind, protocol))
        self._received_bytes = counts.counter(RECEIVED_BYTES.labels(kind, protocol))
        confirmed_by = _DURABILITY_WORDS[durability]
        self._confirmed = counts.counter(MESSAGES_CONFIRMED.labels(kind, confirmed_by))
        self._deduplicated = counts.counter(MESSAGES_DEDUPLICATED.labels(kind))
        self._delivered = counts.counter(MESSAGES_DELIVERED.labels(kind, mode, "manual"))
        self._redelivered = counts.counter(MESSAGES_REDELIVERED.labels(kind))
        self._empty = counts.counter(RECEIVE_EMPTY.labels(kind))
        self._end_to_end = counts.histogram(END_TO_END_SECONDS.labels(kind))
        self._settled = {
            SettleAction.ACK: counts.counter(MESSAGES_ACKNOWLEDGED.labels(kind)),
            SettleAction.NACK: counts.counter(MESSAGES_NACKED.labels(kind)),
        }

    def received(self, count: int, size_bytes: int) -> None:
        """Count items that producers sent."""
        self._received.count += count
        self._received_bytes.count += size_bytes

    def confirmed(self, count: int, duplicates: int) -> None:
        """Count items that the store accepted, of which `duplicates` existed before."""
        self._confirmed.count += count
        self._deduplicated.count += duplicates

    def read(self, count: int) -> None:
        """Count records that a consumer received."""
        if count:
            self._delivered.count += count
        else:
            self._empty.count += 1

    def delivered(self, messages: Sequence[ReceivedMessage]) -> None:
        """Count messages that a consumer received."""
        self.read(len(messages))
        for message in messages:
            if message.receives > 1:
                self._redelivered.count += 1
            else:
                self._end_to_end.observe((message.first_received_at_ms - message.sent_at_ms) / 1000)

    def settled(self, action: SettleAction, count: int) -> None:
        """Count deliveries settled with an action."""
        if tally := self._settled.get(action):
            tally.count += count


def count_rejected(code: ErrorCode) -> None:
    """Count a refused item of a batch."""
    MESSAGES_REJECTED.labels(code.value).inc()


class RequestMetrics:
    """Durations of requests, by operation and class of status."""

    def __init__(self, counts: MetricBuffers, protocol: str) -> None:
        self._counts = counts
        self._protocol = protocol
        self._series: dict[tuple[str, int], HistogramBuffer] = {}

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """Count a response. There are as many operations as routes."""
        key = (operation, status // 100)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = self._new_series(operation, status // 100)
        series.observe(seconds)

    def _new_series(self, operation: str, status_class: int) -> HistogramBuffer:
        labels = (operation, f"{status_class}xx", self._protocol)
        return self._counts.histogram(REQUEST_SECONDS.labels(*labels))


class WebhookMetrics:
    """Metrics of a webhook deliverer."""

    def __init__(self) -> None:
        self._attempts = {
            outcome: WEBHOOK_ATTEMPTS.labels(outcome.value) for outcome in AttemptOutcome
        }
        self._delivered = {
            kind: MESSAGES_DELIVERED.labels(noun, "webhook", "manual")
            for kind, noun in _NOUNS.items()
        }

    def attempted(self, kind: SourceKind, outcome: AttemptOutcome) -> None:
        """Count a finished request to a receiver."""
        self._attempts[outcome].inc()
        self._delivered[kind].inc()

    def disabled(self, count: int) -> None:
        """Set the number of webhooks that the service has disabled."""
        WEBHOOK_ENDPOINTS_DISABLED.set(count)


_NOUNS = {SourceKind.QUEUE: "queue", SourceKind.GROUP: "stream"}


def collect_counted() -> Iterator[Metric]:
    """Collect the counted metrics, of all processes if they share a directory."""
    registry = CollectorRegistry()
    try:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    except ValueError:  # PROMETHEUS_MULTIPROC_DIR is not set: there is only this process
        registry = REGISTRY
    return iter(registry.collect())


class _Families:
    """Metrics that are encoded as if a registry had collected them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def render(families: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """Encode metrics, in OpenMetrics if the client accepts it; return bytes and content type."""
    encode, content_type = choose_encoder(accept)
    return encode(_Families(families)), content_type
