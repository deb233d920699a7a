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
from tests.bench.compare.loads import Round
from tests.bench.compare.results import (
    Contender,
    Did,
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
FAST, SLOW = 40_000, 600  # deliveries per second
FEW = 8  # connections: with more, calls take longer than a round

Enter = Callable[[Path], AbstractContextManager[dict[str, Round]]]


@contextmanager
def _millstream_rest(data: Path) -> Generator[dict[str, Round]]:
    with house(data) as served:
        yield loads.rest(served.api.port, data, FAST)


@contextmanager
def _millstream_aws(data: Path) -> Generator[dict[str, Round]]:
    with house(data) as served:
        port = served.api.port
        yield {**loads.sqs(port, data, FAST), **loads.kinesis(port, data)}


@contextmanager
def _moto(data: Path) -> Generator[dict[str, Round]]:
    with processes.moto(data) as port:
        yield {**loads.sqs(port, data, SLOW, FEW), **loads.kinesis(port, data)}


@contextmanager
def _kinesalite(data: Path) -> Generator[dict[str, Round]]:
    with processes.kinesalite(data) as port:
        yield loads.kinesis(port, data)


@contextmanager
def _elasticmq(data: Path) -> Generator[dict[str, Round]]:
    with processes.elasticmq(data) as port:
        yield loads.sqs(port, data, FAST)


def _rabbitmq(kind: str) -> Enter:
    @contextmanager
    def enter(data: Path) -> Generator[dict[str, Round]]:
        client = programs.native_client()
        with processes.rabbitmq(data) as url:
            yield loads.native(client, "rabbitmq", url, kind)

    return enter


def _nats(sync: str) -> Enter:
    @contextmanager
    def enter(data: Path) -> Generator[dict[str, Round]]:
        client = programs.native_client()
        program = programs.nats_of_today() if sync else programs.nats()
        with processes.nats(data, program, sync) as url:
            yield loads.native(client, "nats", url)

    return enter


CONTENDERS: dict[str, tuple[Contender, Enter]] = {
    "millstream": (
        Contender("Millstream, REST", "wrk", "on disk (`appendfsync always`)"),
        _millstream_rest,
    ),
    "millstream-aws": (
        Contender("Millstream, SQS and Kinesis", "wrk, JSON", "on disk (`appendfsync always`)"),
        _millstream_aws,
    ),
    "moto": (Contender("moto server", "wrk, JSON", "in memory"), _moto),
    "elasticmq": (Contender("ElasticMQ 1.7.1", "wrk, JSON", "in memory"), _elasticmq),
    "kinesalite": (
        Contender("kinesalite 3.3.3", "wrk, JSON", "in LevelDB, written without waiting"),
        _kinesalite,
    ),
    "rabbitmq-quorum": (
        Contender("RabbitMQ, quorum queue", "amqp091-go", "on disk of the one node (confirms)"),
        _rabbitmq("quorum"),
    ),
    "rabbitmq-classic": (
        Contender(
            "RabbitMQ, durable classic queue", "amqp091-go", "on disk (persistent, confirms)"
        ),
        _rabbitmq("classic"),
    ),
    "nats": (
        Contender("NATS JetStream, as it comes", "nats.go", "written; on disk within 2 minutes"),
        _nats(""),
    ),
    "nats-always": (
        Contender("NATS JetStream 2.11, `sync: always`", "nats.go", "on disk"),
        _nats("always"),
    ),
}


def main() -> int:
    """Measure the chosen contenders, and return the exit code."""
    options = _options()
    if missing := missing_packages():
        _say(f"the comparison needs {' and '.join(missing)}")
        return UNAVAILABLE
    body = json.loads(options.past.read_text()) if options.past else _measured(options)
    standings = [from_json(standing) for standing in body["standings"]]
    text = described(standings)
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
                    measure(seconds)  # warm-up: compilers at run time, caches
                    did[operation] = [measure(seconds) for _ in range(rounds)]
                except Unmeasurable as error:
                    troubles.append(f"{operation}: {error}")
    except (Unmeasurable, OSError, subprocess.SubprocessError) as error:
        troubles.append(str(error))
    return Standing(contender, {**did}, "; ".join(troubles))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
