"""Contenders of the comparison: how each is started, loaded and described."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.bench.compare import loads, processes, programs, views
from tests.bench.compare.loads import Native, Round
from tests.bench.compare.results import OPERATIONS, Contender, Durability, Subject
from tests.bench.servers import house

JVMS = {"elasticmq", "kafka", "kafka-flush"}

Enter = Callable[[Path], AbstractContextManager[dict[str, Round]]]


@contextmanager
def _millstream_rest(data: Path) -> Generator[dict[str, Round]]:
    with house(data) as served, served.background():
        yield loads.rest(served.api.port, data)


@contextmanager
def _millstream_aws(data: Path) -> Generator[dict[str, Round]]:
    with house(data) as served, served.background():
        port = served.api.port
        yield {**loads.sqs(port, data), **loads.kinesis(port, data)}


@contextmanager
def _elasticmq(data: Path) -> Generator[dict[str, Round]]:
    with processes.elasticmq(data) as port:
        yield loads.sqs(port, data)


@contextmanager
def _rabbitmq_queue(data: Path) -> Generator[dict[str, Round]]:
    client = programs.native_client()
    with processes.rabbitmq(data) as urls:
        yield Native(client, "rabbitmq", urls.amqp).operations("send", "work", "produce")


@contextmanager
def _rabbitmq_stream(data: Path) -> Generator[dict[str, Round]]:
    client = programs.native_client()
    with processes.rabbitmq(data) as urls:
        yield Native(client, "rabbitmq-stream", urls.stream).operations("send", "produce", "read")


def _native(
    broker: str, serve: Callable[[Path], AbstractContextManager[str]], *operations: str
) -> Enter:
    @contextmanager
    def enter(data: Path) -> Generator[dict[str, Round]]:
        client = programs.native_client()
        with serve(data) as url:
            yield Native(client, broker, url).operations(*(operations or OPERATIONS))

    return enter


def _topic(broker: str, serve: Callable[[Path], AbstractContextManager[str]]) -> Enter:
    @contextmanager
    def enter(data: Path) -> Generator[dict[str, Round]]:
        client = programs.native_client()
        with serve(data) as url:
            yield Native(client, broker, url).topic_operations()

    return enter


@contextmanager
def _millstream_url(data: Path) -> Generator[str]:
    with house(data) as served, served.background():
        yield f"http://127.0.0.1:{served.api.port}"


@contextmanager
def _amqp_url(data: Path) -> Generator[str]:
    with processes.rabbitmq(data) as urls:
        yield urls.amqp


_STREAMS = (
    "one node in KRaft mode without a replica, and one application with one thread, each a JVM with 1 GB of heap. It commits each 100 ms, its "
    "default for this guarantee. The clicks have their page as key, so nothing is repartitioned. A row is read from the output topic when its "
    "transaction is committed; serving it by key to other programs is left to the program. The log is in the page cache, which "
    "the memory does not include."
)
CONTENDERS: dict[str, tuple[Contender, Enter]] = {
    "millstream": (
        Contender(
            "Millstream, REST",
            "wrk, JSON and MessagePack",
            Durability.DISK,
            "one API process; a message has a visibility timeout, a receive count and a dead-letter queue. "
            "The client only formats and scans bytes.",
        ),
        _millstream_rest,
    ),
    "millstream-aws": (
        Contender(
            "Millstream, SQS and Kinesis",
            "wrk, JSON",
            Durability.DISK,
            "the same in Amazon's JSON, with bodies in base64 for Kinesis; signatures are not verified in open mode.",
        ),
        _millstream_aws,
    ),
    "elasticmq": (
        Contender(
            "ElasticMQ 1.7.1",
            "wrk, JSON",
            Durability.MEMORY,
            "a restart loses everything. It is made for tests, and has no streams.",
        ),
        _elasticmq,
    ),
    "rabbitmq-quorum": (
        Contender(
            "RabbitMQ 3.10, quorum queue",
            "amqp091-go",
            Durability.DISK,
            "Debian's version, one node without a replica. Deliveries are pushed, with a prefetch of 100, so the "
            "latency of a receive is the time until ten had arrived.",
        ),
        _rabbitmq_queue,
    ),
    "rabbitmq-stream": (
        Contender(
            "RabbitMQ 3.10, stream",
            "rabbitmq-stream-go-client",
            Durability.WRITTEN,
            "Debian's version, one node; it never waits for the disk and relies on replicas. Readers are pushed to, "
            "so the latency of a read is that of the client's buffer, and a message is not acknowledged by itself.",
        ),
        _rabbitmq_stream,
    ),
    "nats": (
        Contender(
            "NATS JetStream 2.15",
            "nats.go",
            Durability.WRITTEN,
            "a power failure loses up to two minutes. Acknowledgements are not confirmed, so some may be lost. "
            "Readers fetch ahead.",
        ),
        _native("nats", lambda data: processes.nats(data, programs.nats())),
    ),
    "nats-always": (
        Contender(
            "NATS JetStream 2.15, `sync: always`",
            "nats.go",
            Durability.DISK,
            "the same with an fsync for each message. Acknowledgements are not confirmed.",
        ),
        _native("nats", lambda data: processes.nats(data, programs.nats(), "always")),
    ),
    "nats-work-queue": (
        Contender(
            "NATS JetStream 2.15, work queue, `sync: always`",
            "nats.go",
            Durability.DISK,
            "a stream that removes messages when they are acknowledged. Acknowledgements are not confirmed.",
        ),
        _native(
            "nats-work-queue",
            lambda data: processes.nats(data, programs.nats(), "always"),
            "send",
            "work",
            "produce",
        ),
    ),
    "kafka": (
        Contender(
            "Kafka 4.1",
            "franz-go",
            Durability.WRITTEN,
            "one node in KRaft mode without a replica, `acks=all`, no linger; it relies on replicas. Callers share "
            "a producer, which batches them. Readers fetch ahead, so the latency of a read is that of the client's "
            "buffer, and a message is not acknowledged by itself.",
        ),
        _native("kafka", processes.kafka, "send", "produce", "read"),
    ),
    "kafka-flush": (
        Contender(
            "Kafka 4.1, `flush.messages=1`",
            "franz-go",
            Durability.DISK,
            "the same with an fsync for each batch of a producer.",
        ),
        _native("kafka", lambda data: processes.kafka(data, 1), "send", "produce", "read"),
    ),
    "redis": (
        Contender(
            "Redis Streams, `appendfsync always`",
            "rueidis",
            Durability.DISK,
            "raw XADD, XREADGROUP, XACK and XRANGE on Millstream's Valkey, pipelined for all callers. Nothing is "
            "redelivered, limited, checked or removed: what a queue must do is left to the program.",
        ),
        _native("redis", lambda data: processes.redis_streams(data, "always")),
    ),
    "redis-everysec": (
        Contender(
            "Redis Streams, `appendfsync everysec`",
            "rueidis",
            Durability.WRITTEN,
            "the same; a power failure loses up to two seconds.",
        ),
        _native("redis", lambda data: processes.redis_streams(data, "everysec")),
    ),
    "postgres": (
        Contender(
            "Postgres, `SKIP LOCKED`",
            "pgx",
            Durability.DISK,
            "a table and the statements of pgmq. Rounds of seconds do not show what vacuum costs a queue that is "
            "never empty, nor a transaction that stays open.",
        ),
        _native("postgres", processes.postgres),
    ),
    "millstream-topic": (
        Contender(
            "Millstream, topic with ten routes to queues",
            "net/http, JSON",
            Durability.DISK,
            "one API process and one deliverer, which copies messages after they were acknowledged. Receives and "
            "acknowledgements of up to 100 copies are two calls.",
            subject=Subject.TOPICS,
        ),
        _topic("millstream", _millstream_url),
    ),
    "rabbitmq-topic": (
        Contender(
            "RabbitMQ 3.10, topic exchange to ten quorum queues",
            "amqp091-go",
            Durability.DISK,
            "Debian's version, one node without a replica. A message is confirmed when all ten queues have it. "
            "Deliveries are pushed, with a prefetch of 1000, and acknowledged 100 at a time.",
            subject=Subject.TOPICS,
        ),
        _topic("rabbitmq-topic", _amqp_url),
    ),
    "nats-topic": (
        Contender(
            "NATS JetStream 2.15, ten consumers, `sync: always`",
            "nats.go",
            Durability.DISK,
            "a stream that has each message once, until all ten durable consumers have acknowledged it: there are no "
            "copies. Consumers fetch 100 at a time. Acknowledgements are not confirmed.",
            subject=Subject.TOPICS,
        ),
        _topic("nats-topic", lambda data: processes.nats(data, programs.nats(), "always")),
    ),
    "millstream-view": (
        Contender(
            "Millstream, view",
            "HTTP",
            Durability.DISK,
            "one API process and one worker, whose Spark has 1 GB of heap and all cores. A row is in Postgres when its batch is committed, and is "
            "read over HTTP by its key. Memory includes the records, which Valkey has in memory.",
            Subject.VIEWS,
        ),
        views.millstream,
    ),
    "kafka-streams": (
        Contender(
            "Kafka Streams 4.1, `exactly_once_v2`",
            "kafka-clients",
            Durability.WRITTEN,
            f"{_STREAMS} It relies on replicas.",
            Subject.VIEWS,
        ),
        views.kafka_streams,
    ),
    "kafka-streams-flush": (
        Contender(
            "Kafka Streams 4.1, `exactly_once_v2`, `flush.messages=1`",
            "kafka-clients",
            Durability.DISK,
            "the same with an fsync of the broker for each batch of a producer, so also for changelogs and rows.",
            Subject.VIEWS,
        ),
        lambda data: views.kafka_streams(data, 1),
    ),
}
ABSENT = {
    Subject.LOGS: (
        "**LocalStack**, **Pulsar**, **Redpanda**, **pgmq** as an extension and **RabbitMQ 4** are not in the table: no "
        "package index that is used here has them, and Docker is not available.",
    ),
    Subject.VIEWS: (
        "**ksqlDB**, **Materialize** and **RisingWave** are not in the table: no package index that is used here has them, "
        "and Docker is not available.",
    ),
}
