"""`make compare` (`python -m tests.bench.compare`): the same work for several systems.

Each starts alone, works for some rounds, and ends. Exit codes: 0 always, except 2 for a wrong
option and 4 without wrk.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import machine
from tests.bench.compare import loads, processes, programs
from tests.bench.compare.loads import Native, Round
from tests.bench.compare.results import (
    OPERATIONS,
    Contender,
    Did,
    Durability,
    Standing,
    as_json,
    described,
    from_json,
)
from tests.bench.load import missing_packages
from tests.bench.ratios import Unmeasurable
from tests.bench.scale.publish import publish_text, when
from tests.bench.servers import house

UNAVAILABLE = 4
RESULTS = Path("compare-results.json")
JVMS = {"elasticmq", "kafka", "kafka-flush"}
WARM_UPS_MAX, JVM_WARM_UPS_MAX = 2, 6  # rounds; compilers at run time need several
SETTLED = 0.05  # two rounds that differ by less are warm

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
}
ABSENT = (
    "**LocalStack**, **Pulsar**, **Redpanda**, **pgmq** as an extension and **RabbitMQ 4** are not in the table: no "
    "package index that is used here has them, and Docker is not available.",
)


def main() -> int:
    """Measure the chosen contenders, and return the exit code."""
    options = _options()
    if missing := missing_packages():
        _say(f"the comparison needs {' and '.join(missing)}")
        return UNAVAILABLE
    body = json.loads(options.past.read_text()) if options.past else _measured(options)
    standings = [from_json(standing) for standing in body["standings"]]
    text = described(standings, ABSENT)
    sys.stdout.write(text)
    if options.publish:
        publish_text("compare", f"{text}\n*{when(body['machine'], body['started_at'])}*\n")
    return 0


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    chosen = [name for name in CONTENDERS if not options.only or name in options.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="millstream-compare-") as folder:
        data = Path(folder)
        told: dict[str, Any] = {
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.facts(data),
            "standings": [],
        }
        for name in chosen:
            standing = _standing(name, data, options.seconds, options.rounds)
            told["standings"].append(as_json(standing))
            options.json.write_text(json.dumps(told, indent=1) + "\n")
    return told


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.compare", epilog=f"Contenders: {', '.join(CONTENDERS)}."
    )
    parser.add_argument("--seconds", type=int, default=2, help="of one round of one operation")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="NAME,...", help="only these")
    parser.add_argument("--json", metavar="FILE", type=Path, default=RESULTS)
    parser.add_argument("--publish", action="store_true", help="into docs/performance.md")
    parser.add_argument("--from", metavar="FILE", type=Path, dest="past", help="of an earlier run")
    options = parser.parse_args()
    unknown = set((options.only or "").split(",")) - CONTENDERS.keys() - {""}
    if unknown:
        parser.error(f"no such contender: {', '.join(sorted(unknown))}")
    return options


def _standing(name: str, data: Path, seconds: int, rounds: int) -> Standing:
    contender, enter = CONTENDERS[name]
    _say(f"{name}")
    folder = data / name
    folder.mkdir()
    did: dict[str, list[Did]] = {}
    troubles = []
    try:
        with enter(folder) as operations:
            for operation, measure in operations.items():
                try:
                    _warm_up(measure, seconds, JVM_WARM_UPS_MAX if name in JVMS else WARM_UPS_MAX)
                    did[operation] = [measure(seconds) for _ in range(rounds)]
                except Unmeasurable as error:
                    troubles.append(f"{operation}: {error}")
    except (Unmeasurable, OSError, subprocess.SubprocessError) as error:
        troubles.append(str(error))
    return Standing(contender, {**did}, "; ".join(troubles))


def _warm_up(measure: Round, seconds: int, rounds_max: int) -> None:
    """Run until two rounds differ little."""
    rate = measure(seconds).messages_s
    for _ in range(rounds_max - 1):
        before, rate = rate, measure(seconds).messages_s
        if abs(rate - before) < SETTLED * rate:
            return


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
