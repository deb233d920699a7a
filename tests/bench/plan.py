"""Sizes and durations of a run, and the existing rows of the design."""

import os
from dataclasses import dataclass

from tests.bench.ratios import Bar, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The sizes of a run; `seconds` is the duration of one load in one round."""

    rounds: int = 5
    seconds: int = 2
    backlog: int = 1_000_000
    in_flight: int = 100_000
    latency_samples: int = 400
    latency_seconds: float = 6.0
    stall_seconds: float = 6.0
    rewritten: int = 500_000
    long_polls: int = 2_000
    idle_sockets: int = 1_000
    fanned_out: int = 10_000
    listened: int = 100_000
    idle_queues: int = 1_000
    idle_resources: int = 50
    idle_seconds: float = 60.0
    idle_shards: int = 1_000
    idle_topics: int = 1_000
    archived: int = 10_000_000
    replayed: int = 1_000_000
    scanned: int = 1_000_000
    delivered: int = 10_000
    routes: int = 10_000
    copied: int = 20_000


QUICK = Plan(
    rounds=1,
    seconds=1,
    backlog=50_000,
    in_flight=2_000,
    latency_samples=50,
    latency_seconds=1.0,
    stall_seconds=3.0,
    rewritten=50_000,
    long_polls=300,
    idle_sockets=100,
    fanned_out=1_000,
    listened=5_000,
    idle_queues=50,
    idle_resources=5,
    idle_seconds=10.0,
    idle_shards=50,
    idle_topics=50,
    archived=200_000,
    replayed=150_000,
    scanned=100_000,
    delivered=2_000,
    routes=500,
    copied=5_000,
)
DEEP_BACKLOG = 10_000_000

SEND_JSON = Row(
    name="send-json",
    what="REST: send one message of 256 B, as JSON",
    unit="calls/s",
    reference="echo",
    bar=Bar(0.5),
)
SEND_RAW = Row(
    name="send-raw",
    what="REST: send one message of 256 B, as a raw body",
    unit="calls/s",
    reference="echo",
    bar=Bar(0.5),
)
SEND_HTTP2 = Row(
    name="send-http2",
    what="REST: send one message of 256 B, as a raw body, over HTTP/2",
    unit="calls/s",
    reference="the same over HTTP/1.1",
)
RECEIVE_SETTLE = Row(
    name="receive-settle",
    what="REST: receive 10 messages, acknowledge 10 in one call",
    unit="calls/s",
    reference="echo",
    bar=Bar(0.25),
)
SQS_SEND = Row(
    name="sqs-send",
    what="SQS: SendMessage of 256 B",
    unit="calls/s",
    reference="echo",
    bar=Bar(0.4),
)
SQS_WORK = Row(
    name="sqs-work",
    what="SQS: ReceiveMessage of 10, DeleteMessageBatch of 10",
    unit="calls/s",
    reference="echo",
    bar=Bar(0.25),
)
PRODUCE_1 = Row(
    name="produce-1",
    what="append 500 records of 256 B, as columns in MessagePack, to a stream of 1 shard",
    unit="records/s",
    reference="R",
    bar=Bar(3),
)
PRODUCE_16 = Row(
    name="produce-16",
    what="append 500 records of 256 B, as columns in MessagePack, to a stream of 16 shards",
    unit="records/s",
    reference="R",
    bar=Bar(1.6),
)
READ_HOT = Row(
    name="read-hot",
    what="read 500 records of 256 B of one shard, in MessagePack",
    unit="records/s",
    reference="R",
)
READ_GROUPS = Row(
    name="read-groups",
    what="100 groups, a member each, read 500 records of 256 B of one shard, in MessagePack",
    unit="records/s",
    reference="R",
)
COMMIT_GROUPS = Row(
    name="commit-groups",
    what="100 groups commit an offset of one shard, each in a call",
    unit="calls/s",
    reference="R",
)
KINESIS_PUT_1 = Row(
    name="kinesis-put-1",
    what="Kinesis: PutRecords of 500 records of 256 B to a stream of 1 shard",
    unit="records/s",
    reference="R",
    bar=Bar(0.8),
)
KINESIS_PUT_16 = Row(
    name="kinesis-put-16",
    what="Kinesis: PutRecords of 500 records of 256 B to a stream of 16 shards",
    unit="records/s",
    reference="R",
    bar=Bar(0.8),
)
KINESIS_GET = Row(
    name="kinesis-get",
    what="Kinesis: GetRecords of 500 records of 256 B of one shard",
    unit="records/s",
    reference="R",
    bar=Bar(1.2),
)
DEEP_BACKLOG_ROW = Row(
    name="deep-backlog",
    what="receive 10 from a queue with a deep backlog and many in flight",
    unit="calls/s",
    reference="1000 waiting",
    bar=Bar(0.9),
)
FIFO = Row(
    name="fifo",
    what="send 10, receive 10, acknowledge 10: a fifo queue of 1000 groups",
    unit="messages/s",
    reference="standard",
    bar=Bar(0.7),
)
FAIR = Row(
    name="fair",
    what="send 10, receive 10, acknowledge 10: a standard queue with 1000 groups, which take turns",
    unit="messages/s",
    reference="standard",
    bar=Bar(0.7),
)
WAKE_UP = Row(
    name="wake-up",
    what="p99 from a send to the answer of a waiting receive, on an idle server",
    unit="ms",
    reference="echo + 2 scripts",
    bar=Bar(1.5, at_most=True),
)
LATENCIES = {
    load: Row(
        name=f"latency-{100 * load:.0f}",
        what=f"p99 from the time that a send is due to its receipt, at {load:.0%} of the highest rate",
        unit="ms",
        reference="echo",
    )
    for load in (0.1, 0.5, 0.8)
}
STALL = Row(
    name="stall",
    what="longest time without an answer at half load, while the append-only file is rewritten, "
    "maintenance runs, and long polls connect, whose objects make garbage be collected",
    unit="ms",
    reference="echo + 20 ms",
    bar=Bar(1, at_most=True),
)
REPLICATED_SEND = Row(
    name="replicated-send",
    what="send one message of 256 B to three stores on one disk, two of which have it when it is acknowledged",
    unit="calls/s",
    reference="one store",
    bar=Bar(0.5),
)
REPLICATED_LATENCY = Row(
    name="replicated-latency",
    what="median time of the same, on one connection",
    unit="ms",
    reference="one store",
    bar=Bar(2.5, at_most=True),
)
REPLICATED_READ = Row(
    name="replicated-read",
    what="read 5 records, none of which a fail-over may lose, on one connection",
    unit="calls/s",
    reference="one store",
    bar=Bar(0.85),
)
START = Row(
    name="start",
    what="a new deployment without Spark, until it is ready: processor time of all its processes",
    unit="s",
    reference="6 s",
    bar=Bar(1, at_most=True),
)
CLI_HELP = Row(
    name="cli-help",
    what="`millstream --help`: processor time",
    unit="s",
    reference="0.15 s",
    bar=Bar(1, at_most=True),
)
CLI_CALL = Row(
    name="cli-call",
    what="`millstream queue ls`: processor time",
    unit="s",
    reference="0.3 s",
    bar=Bar(1, at_most=True),
)
IDLE_POLLS = Row(
    name="idle-polls",
    what="memory of the API process for each idle long poll, beyond its connection's",
    unit="B",
    reference="3.5 KB",
    bar=Bar(1, at_most=True),
)
IDLE_CONNECTIONS = Row(
    name="idle-connections",
    what="memory of the API process for each idle HTTP connection that has made a call",
    unit="B",
    reference="bare server",
    bar=Bar(1, at_most=True),
)
WAITING_MESSAGES = Row(
    name="waiting-messages",
    what="memory of the store for each waiting message of 256 B, sent one by one",
    unit="B",
    reference="340 B",
    bar=Bar(1, at_most=True),
)
IDLE_SOCKETS = Row(
    name="idle-sockets",
    what="memory of the API process for each socket that waits, beyond what one takes of a bare server",
    unit="B",
    reference="3 KB",
    bar=Bar(1, at_most=True),
)
PUSH_WAKE_UP = Row(
    name="push-wake-up",
    what="p99 from a send to the message at a waiting socket, on an idle server",
    unit="ms",
    reference="echo + 2 scripts",
    bar=Bar(2, at_most=True),
)
FAN_OUT = Row(
    name="fan-out",
    what="push records of 256 B of one stream to 100 sockets, in MessagePack, by one process",
    unit="records/s",
    reference="R",
    bar=Bar(0.5),
)
PUBLISH = Row(
    name="publish",
    what="REST: publish one message of 256 B as JSON; one route takes it by its subject",
    unit="calls/s",
    reference="echo",
    bar=Bar(0.5),
)
PUBLISH_ROUTES = Row(
    name="publish-routes",
    what="the same with 10 000 routes by a field of the body, one of which takes it",
    unit="calls/s",
    reference="publish",
    bar=Bar(0.65),
)
PUBLISH_BATCH = Row(
    name="publish-batch",
    what="publish 500 messages of 256 B a call, each of which ten routes take by its subject",
    unit="messages/s",
    reference="R",
    bar=Bar(0.6),
)
FAN_OUT_QUEUES = Row(
    name="fan-out-queues",
    what="publish 500 messages of 256 B a call, until ten queues have a copy of each",
    unit="copies/s",
    reference="R",
    bar=Bar(0.35),
)
FAN_OUT_FIFO = Row(
    name="fan-out-fifo",
    what="publish 500 messages of 256 B of 100 keys a call to a FIFO topic, until ten FIFO queues have a copy of each",
    unit="copies/s",
    reference="R",
    bar=Bar(0.1),
)
FAN_OUT_STREAMS = Row(
    name="fan-out-streams",
    what="publish 500 messages of 256 B a call, until ten streams have a copy of each",
    unit="copies/s",
    reference="R",
    bar=Bar(1),
)
FAN_OUT_SPREAD = Row(
    name="fan-out-spread",
    what="publish 500 messages of 256 B of 100 keys a call, until the ten queues of a spread have one copy of each together",
    unit="copies/s",
    reference="R",
    bar=Bar(0.06),
)
FAN_OUT_RECORDS = Row(
    name="fan-out-records",
    what="append 500 records of 256 B a call to a stream, until ten queues have a copy of each",
    unit="copies/s",
    reference="R",
    bar=Bar(0.3),
)
FORWARD = Row(
    name="forward",
    what="send 500 messages of 256 B a call to a queue with a route, until another queue has each",
    unit="messages/s",
    reference="R",
    bar=Bar(0.05),
)
FAN_OUT_SLOW = Row(
    name="fan-out-slow",
    what="the same to nine queues, while a tenth refuses everything",
    unit="copies/s",
    reference="fan-out-queues",
    bar=Bar(0.9),
)
TOPIC_LISTEN = Row(
    name="topic-listen",
    what="publish 500 messages of 256 B a call, until ten sockets have each what its match selects, a tenth",
    unit="messages/s",
    reference="R",
    bar=Bar(0.06),
)
TOPIC_WAKE_UP = Row(
    name="topic-wake-up",
    what="p99 from a publication to the answer of a waiting receive, on an idle server",
    unit="ms",
    reference="a send to the queue",
    bar=Bar(2.2, at_most=True),
)
IDLE_TOPICS = Row(
    name="idle-topics",
    what="memory of the store and of the router for each idle topic with a route that had one message",
    unit="B",
    reference="10 KB",
    bar=Bar(1, at_most=True),
)
REQUEST_REPLY = Row(
    name="request-reply",
    what="p99 from a request to its reply by a waiting worker, on an idle server",
    unit="ms",
    reference="wake-up by a send",
    bar=Bar(2.5, at_most=True),
)
IDLE_CPU = Row(
    name="idle-cpu",
    what="processor time of an idle deployment with all its processes, without Spark",
    unit="%",
    reference="1 % of a core",
    bar=Bar(1, at_most=True),
)
IDLE_MEMORY = Row(
    name="idle-memory",
    what="memory of an idle deployment with all its processes, without Spark",
    unit="MB",
    reference="350 MB",
    bar=Bar(1, at_most=True),
)
IDLE_QUEUES = Row(
    name="idle-queues",
    what="memory of the store for each idle queue",
    unit="B",
    reference="1.25 KB",
    bar=Bar(1, at_most=True),
)
IDLE_SHARDS = Row(
    name="idle-shards",
    what="memory of the store for each idle shard that has one record of 256 B",
    unit="B",
    reference="5 KB",
    bar=Bar(1, at_most=True),
)
ARCHIVE = Row(
    name="archive",
    what="archive 10 million records of 256 B on Spark, for each second of one processor",
    unit="records/s",
    reference="pyarrow writing",
    bar=Bar(0.5),
)
REPLAY = Row(
    name="replay",
    what="replay archived records of 256 B of one shard to a stream of 4 shards",
    unit="records/s",
    reference="R",
)
REPLAY_SMALL = Row(
    name="replay-small",
    what="from the call that starts a replay of 1000 records to the first one in its target, without Spark",
    unit="ms",
    reference="2 s",
    bar=Bar(1, at_most=True),
)
CORES = os.cpu_count() or 1
EXECUTORS_CORES_MIN = 4  # of two executors, the stores and the driver
_EXECUTORS_BAR = Bar(1.7) if CORES >= EXECUTORS_CORES_MIN else None
EXECUTORS_ARCHIVE = Row(
    name="executors-archive",
    what="archive records of 256 B of 4 shards on a Spark cluster, with two executors of one core each",
    unit="records/s",
    reference="one executor",
    bar=_EXECUTORS_BAR,
)
EXECUTORS_REPLAY = Row(
    name="executors-replay",
    what="replay archived records of 256 B of 4 shards on a Spark cluster, with two executors of one core each",
    unit="records/s",
    reference="one executor",
    bar=_EXECUTORS_BAR,
)
READ_TIERED = Row(
    name="read-tiered",
    what="read 500 records of 256 B of one shard from the archive, one call behind the other, in MessagePack",
    unit="records/s",
    reference="hot read",
    bar=Bar(0.8),
)
VIEW_BATCHES = Row(
    name="view-batches",
    what="compute a batch of 100 records for each of 20 views on a stream, for each second of one processor",
    unit="view batches/s",
    reference="micro-batches of a Structured Streaming query of its own",
    bar=Bar(12),
)
VIEW_JOIN = Row(
    name="view-join",
    what="compute a batch of 100 records of each of two streams that a view joins, for each second of one processor",
    unit="batches/s",
    reference="micro-batches of a Structured Streaming query of the same join",
    bar=Bar(1),
)
VIEW_APPENDS = Row(
    name="view-appends",
    what="append 500 clicks a call to a stream, which 20 views follow",
    unit="records/s",
    reference="the same without views",
    bar=Bar(0.9),
)
VIEW_LATENCY = Row(
    name="view-latency",
    what="median time from an append to the read of a row that includes its record",
    unit="ms",
    reference="pace + a hot query of one row",
    bar=Bar(3, at_most=True),
)
VIEW_ROW = Row(
    name="view-row",
    what="median time to read a row of a view by its key, of 1000",
    unit="ms",
    reference="the latest record of a key",
    bar=Bar(2, at_most=True),
)
VIEW_IDLE = Row(
    name="view-idle",
    what="processor time of a scan of an idle stream with 20 views, for each second",
    unit="ms",
    reference="a poll of the source by a Structured Streaming query",
    bar=Bar(0.05, at_most=True),
)
VIEW_BACKFILL = Row(
    name="view-backfill",
    what="windowed totals of archived clicks by a new view, for each second of one processor",
    unit="records/s",
    reference="spark.read.parquet of the same files",
    bar=Bar(0.8),
)
VIEW_RESTART = Row(
    name="view-restart",
    what="from a kill of the worker until a row includes the next record, by another worker",
    unit="s",
    reference="start of Spark",
    bar=Bar(1.5, at_most=True),
)
SOURCE_HOT = Row(
    name="source-hot",
    what="read a stream of 256 B records with Spark, from memory, for each second of one processor",
    unit="records/s",
    reference="pyarrow reading",
)
SOURCE_ARCHIVE = Row(
    name="source-archive",
    what="read a stream of 256 B records with Spark, from the archive, for each second of one processor",
    unit="records/s",
    reference="pyarrow reading",
)
WEBHOOKS = Row(
    name="webhooks",
    what="deliver messages of 256 B of a queue to a receiver on this machine, 64 at a time, signed and logged",
    unit="deliveries/s",
    reference="httpx",
)

KEYS_SEND = Row(
    name="keys-send",
    what="REST: send one message of 256 B, with an API key and quotas",
    unit="calls/s",
    reference="open mode",
    bar=Bar(0.9),
)
KEYS_WORK = Row(
    name="keys-receive-settle",
    what="REST: receive 10 messages, acknowledge 10 in one call, with an API key and quotas",
    unit="calls/s",
    reference="open mode",
    bar=Bar(0.9),
)
SIGV4_SEND = Row(
    name="sigv4-send",
    what="SQS: SendMessage of 256 B, signed, with quotas",
    unit="calls/s",
    reference="open mode",
    bar=Bar(0.8),
)
SIGV4_BATCH = Row(
    name="sigv4-batch",
    what="Kinesis: PutRecords of 500 records of 256 B, signed, with quotas",
    unit="records/s",
    reference="open mode + SHA-256",
    bar=Bar(0.95),
)

ROWS = (
    SEND_JSON,
    SEND_RAW,
    SEND_HTTP2,
    RECEIVE_SETTLE,
    SQS_SEND,
    SQS_WORK,
    PRODUCE_1,
    PRODUCE_16,
    READ_HOT,
    READ_GROUPS,
    COMMIT_GROUPS,
    KINESIS_PUT_1,
    KINESIS_PUT_16,
    KINESIS_GET,
    DEEP_BACKLOG_ROW,
    FIFO,
    FAIR,
    FAN_OUT,
    PUBLISH,
    PUBLISH_ROUTES,
    PUBLISH_BATCH,
    FAN_OUT_QUEUES,
    FAN_OUT_FIFO,
    FAN_OUT_STREAMS,
    FAN_OUT_SPREAD,
    FAN_OUT_RECORDS,
    FORWARD,
    FAN_OUT_SLOW,
    TOPIC_LISTEN,
    WAKE_UP,
    TOPIC_WAKE_UP,
    IDLE_TOPICS,
    REQUEST_REPLY,
    PUSH_WAKE_UP,
    *LATENCIES.values(),
    STALL,
    START,
    CLI_HELP,
    CLI_CALL,
    IDLE_CPU,
    IDLE_MEMORY,
    IDLE_CONNECTIONS,
    IDLE_POLLS,
    IDLE_SOCKETS,
    WAITING_MESSAGES,
    IDLE_QUEUES,
    IDLE_SHARDS,
    ARCHIVE,
    READ_TIERED,
    REPLAY,
    REPLAY_SMALL,
    EXECUTORS_ARCHIVE,
    EXECUTORS_REPLAY,
    REPLICATED_SEND,
    REPLICATED_LATENCY,
    REPLICATED_READ,
    SOURCE_HOT,
    SOURCE_ARCHIVE,
    VIEW_BATCHES,
    VIEW_JOIN,
    VIEW_APPENDS,
    VIEW_LATENCY,
    VIEW_ROW,
    VIEW_IDLE,
    VIEW_BACKFILL,
    VIEW_RESTART,
    WEBHOOKS,
    KEYS_SEND,
    KEYS_WORK,
    SIGV4_SEND,
    SIGV4_BATCH,
)
