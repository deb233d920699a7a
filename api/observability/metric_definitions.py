"""Definitions of the metrics that processes count.

Counters only increase and live in the process; with PROMETHEUS_MULTIPROC_DIR set, the processes of one deployment are
added up at each scrape.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from storage.domain.histogram import STORE_SECONDS

LATENCY_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
VIEW_BUCKETS_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
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
SOURCE_REQUESTS = Counter(
    "millstream_source_requests_total", "Requests to sources, by outcome", ["outcome"]
)
TOPIC_COPIES = Counter(
    "millstream_topic_copies_total",
    "Copies of messages of topics, by what became of them: delivered, dropped or dead_lettered",
    ["outcome"],
)
WEBHOOK_ATTEMPTS = Counter("millstream_webhook_attempts_total", "Webhook requests", ["outcome"])
WEBHOOK_ENDPOINTS_DISABLED = Gauge(
    "millstream_webhook_endpoints_disabled",
    "Webhooks disabled because every delivery failed or the receiver returned 410",
    multiprocess_mode="livemax",
)

MAINTENANCE_ROUNDS = Counter(
    "millstream_maintenance_rounds_total",
    "Rounds of maintenance tasks, by how they ended",
    ["task", "outcome"],
)
MAINTENANCE_SECONDS = Counter(
    "millstream_maintenance_seconds_total", "Duration of rounds of maintenance tasks", ["task"]
)
MAINTENANCE_ITEMS = Counter(
    "millstream_maintenance_items_total",
    "Work that maintenance tasks found, such as the queues that idle_queues deleted",
    ["task"],
)
MAINTENANCE_LAST_SUCCESS = Gauge(
    "millstream_maintenance_last_success_timestamp_seconds",
    "Time of the last completed round of a maintenance task",
    ["task"],
    multiprocess_mode="max",
)
MAINTENANCE_LEADERS = Gauge(
    "millstream_maintenance_leaders",
    "Sweepers that lead the maintenance tasks of a store: 1, or 0 during a takeover",
    ["store"],
    multiprocess_mode="livesum",
)

RATE_LIMITED = Counter(
    "millstream_rate_limited_total",
    "Calls, writes and connections rejected by a quota or the memory guard, by policy",
    ["policy"],
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
STORE_CONFIRM_SECONDS = Histogram(
    "millstream_store_confirm_duration_seconds",
    "Time from the primary's reply to a flush of writes until enough replicas have it on disk",
    buckets=STORE_SECONDS,
)
STORE_FAILOVERS = Counter(
    "millstream_store_failovers_total",
    "Changes of the primary of replicated stores that these processes made, by kind",
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
POSTGRES_AWAY = Gauge(
    "millstream_postgres_away",
    "Processes that serve what they know while Postgres is away",
    multiprocess_mode="livesum",
)
ARCHIVE_SEGMENTS = Counter("millstream_archive_segments_total", "Files added to the archive")
ARCHIVE_BYTES = Counter("millstream_archive_bytes_total", "Bytes of files added to the archive")
ARCHIVE_FAILURES = Counter("millstream_archive_failures_total", "Failed archive attempts")
REPLAY_RECORDS = Counter("millstream_replay_records_total", "Records sent by replays")
BACK_TEST_MESSAGES = Counter(
    "millstream_backtest_messages_total", "Messages evaluated by jobs that back-test a match"
)
VIEW_BACK_TEST_RECORDS = Counter(
    "millstream_view_backtest_records_total", "Records that back-tests of views have evaluated"
)
QUERY_RECORDS = Counter("millstream_query_records_total", "Records and rows that queries have read")
VIEW_RECORDS = Counter(
    "millstream_view_records_total",
    "Records that batches of views have read, by outcome: all, and of these the late and the bad ones",
    ["namespace", "outcome"],
)
VIEW_ROWS_CHANGED = Counter(
    "millstream_view_rows_changed_total", "Rows that batches of views have changed", ["namespace"]
)
VIEW_SINK_MESSAGES = Counter(
    "millstream_view_sink_messages_total", "Messages sent to the sinks of views", ["namespace"]
)
VIEW_BATCH_SECONDS = Histogram(
    "millstream_view_batch_duration_seconds",
    "Duration of batches of views, from the read to the commit",
    ["namespace"],
    buckets=VIEW_BUCKETS_SECONDS,
)


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
