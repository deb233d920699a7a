"""`make bench` (`python -m tests.bench`): measure, print a table, write JSON.

Exit codes: 0 everything chosen was measured, whether a bar was met or not; 1 a row could not be
measured; 2 a wrong option; 4 a program is missing.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import (
    machine,
    rows_archive,
    rows_deployment,
    rows_executors,
    rows_http,
    rows_idle,
    rows_keys,
    rows_kinesis,
    rows_latency,
    rows_listeners,
    rows_push,
    rows_records,
    rows_replay,
    rows_replicated,
    rows_requests,
    rows_source,
    rows_sqs,
    rows_start,
    rows_state,
    rows_topics,
    rows_view_joins,
    rows_view_reads,
    rows_view_scans,
    rows_views,
    rows_webhooks,
)
from tests.bench.load import missing_packages
from tests.bench.plan import (
    ARCHIVE,
    CLI_CALL,
    CLI_HELP,
    COMMIT_GROUPS,
    DEEP_BACKLOG,
    DEEP_BACKLOG_ROW,
    EXECUTORS_ARCHIVE,
    EXECUTORS_REPLAY,
    FAIR,
    FAN_OUT,
    FAN_OUT_FIFO,
    FAN_OUT_QUEUES,
    FAN_OUT_RECORDS,
    FAN_OUT_SLOW,
    FAN_OUT_SPREAD,
    FAN_OUT_STREAMS,
    FIFO,
    FORWARD,
    IDLE_CONNECTIONS,
    IDLE_CPU,
    IDLE_MEMORY,
    IDLE_POLLS,
    IDLE_QUEUES,
    IDLE_SHARDS,
    IDLE_SOCKETS,
    IDLE_TOPICS,
    KEYS_SEND,
    KEYS_WORK,
    KINESIS_GET,
    KINESIS_PUT_1,
    KINESIS_PUT_16,
    LATENCIES,
    PRODUCE_1,
    PRODUCE_16,
    PUBLISH,
    PUBLISH_BATCH,
    PUBLISH_ROUTES,
    PUSH_WAKE_UP,
    QUICK,
    READ_GROUPS,
    READ_HOT,
    READ_TIERED,
    RECEIVE_SETTLE,
    REPLAY,
    REPLAY_SMALL,
    REPLICATED_LATENCY,
    REPLICATED_READ,
    REPLICATED_SEND,
    REQUEST_REPLY,
    ROWS,
    SEND_HTTP2,
    SEND_JSON,
    SEND_RAW,
    SIGV4_BATCH,
    SIGV4_SEND,
    SOURCE_ARCHIVE,
    SOURCE_HOT,
    SQS_SEND,
    SQS_WORK,
    STALL,
    START,
    TOPIC_LISTEN,
    TOPIC_WAKE_UP,
    VIEW_APPENDS,
    VIEW_BACKFILL,
    VIEW_BATCHES,
    VIEW_IDLE,
    VIEW_JOIN,
    VIEW_LATENCY,
    VIEW_RESTART,
    VIEW_ROW,
    WAITING_MESSAGES,
    WAKE_UP,
    WEBHOOKS,
    Plan,
)
from tests.bench.ratios import Measured, Row, Unmeasurable, as_json, table
from tests.bench.servers import House, house

NOT_MEASURED, UNAVAILABLE = 1, 4
RESULTS = Path("bench-results.json")

Part = Callable[[House, Plan, Collection[Row]], Iterable[Measured]]
"""Measure rows that share a reference; called with the wanted rows."""


def _alone(measure: Callable[[House, Plan], list[Measured]]) -> Part:
    return lambda served, plan, _: measure(served, plan)


# Idle rows come first, so that they do not include leftovers of a load. The deep backlog is last:
# its leftovers end with the store.
PARTS: tuple[tuple[tuple[Row, ...], Part], ...] = (
    ((START,), _alone(rows_start.measure_start)),
    ((CLI_HELP, CLI_CALL), _alone(rows_start.measure_commands)),
    ((IDLE_CPU, IDLE_MEMORY), _alone(rows_deployment.measure_idle_deployment)),
    ((IDLE_CONNECTIONS, IDLE_POLLS), rows_idle.measure_connections),
    ((IDLE_SOCKETS,), _alone(rows_push.measure_idle_sockets)),
    ((WAKE_UP,), _alone(rows_idle.measure_wake_up)),
    ((PUSH_WAKE_UP,), _alone(rows_push.measure_wake_up)),
    ((WAITING_MESSAGES,), _alone(rows_idle.measure_waiting_messages)),
    ((IDLE_QUEUES,), _alone(rows_idle.measure_idle_queues)),
    ((IDLE_SHARDS,), _alone(rows_idle.measure_idle_shards)),
    ((SEND_JSON, SEND_RAW, RECEIVE_SETTLE), rows_http.measure),
    ((SEND_HTTP2,), _alone(rows_http.measure_http2)),
    ((SQS_SEND, SQS_WORK), rows_sqs.measure),
    ((KEYS_SEND, KEYS_WORK, SIGV4_SEND, SIGV4_BATCH), rows_keys.measure),
    ((PRODUCE_1, PRODUCE_16, READ_HOT, READ_GROUPS, COMMIT_GROUPS), rows_records.measure),
    ((KINESIS_PUT_1, KINESIS_PUT_16, KINESIS_GET), rows_kinesis.measure),
    ((FAN_OUT,), rows_push.measure_fan_out),
    ((PUBLISH, PUBLISH_ROUTES), rows_topics.measure),
    (
        (
            PUBLISH_BATCH,
            FAN_OUT_QUEUES,
            FAN_OUT_FIFO,
            FAN_OUT_STREAMS,
            FAN_OUT_SPREAD,
            FAN_OUT_RECORDS,
            FORWARD,
            FAN_OUT_SLOW,
        ),
        rows_topics.measure_copies,
    ),
    ((TOPIC_LISTEN,), rows_listeners.measure),
    ((TOPIC_WAKE_UP,), _alone(rows_topics.measure_wake_up)),
    ((IDLE_TOPICS,), _alone(rows_topics.measure_idle_topics)),
    ((REQUEST_REPLY,), _alone(rows_requests.measure_request_reply)),
    ((FIFO, FAIR), rows_state.measure_groups),
    ((ARCHIVE, READ_TIERED, REPLAY), rows_archive.measure),
    ((REPLAY_SMALL,), _alone(rows_replay.measure)),
    ((EXECUTORS_ARCHIVE, EXECUTORS_REPLAY), rows_executors.measure),
    ((REPLICATED_SEND, REPLICATED_LATENCY, REPLICATED_READ), rows_replicated.measure),
    ((SOURCE_HOT, SOURCE_ARCHIVE), rows_source.measure),
    ((VIEW_BATCHES,), _alone(rows_views.measure)),
    ((VIEW_JOIN,), _alone(rows_view_joins.measure)),
    ((VIEW_APPENDS, VIEW_LATENCY, VIEW_ROW), rows_view_reads.measure),
    ((VIEW_IDLE,), _alone(rows_view_scans.measure_idle)),
    ((VIEW_BACKFILL,), _alone(rows_view_scans.measure_backfill)),
    ((VIEW_RESTART,), _alone(rows_view_scans.measure_restart)),
    ((WEBHOOKS,), rows_webhooks.measure),
    ((*LATENCIES.values(),), rows_latency.measure_latency),
    ((STALL,), _alone(rows_latency.measure_stall)),
    ((DEEP_BACKLOG_ROW,), _alone(rows_state.measure_depth)),
)


def main() -> int:
    """Measure the chosen rows, and return the exit code."""
    options = _options()
    if missing := missing_packages():
        _say(f"the bench needs {' and '.join(missing)}: apt-get install {' '.join(missing)}")
        return UNAVAILABLE
    chosen, plan = _chosen(options.rows), _plan(options)
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        data = Path(folder)
        told: dict[str, Any] = {
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.facts(data),
            "plan": asdict(plan),
        }
        with house(data) as served:
            measured = _in_order(_measured(served, plan, chosen))
    sys.stdout.write(f"{table(measured)}\nThe store's allocator: {told['machine']['allocator']}\n")
    _write(options.json, told | {"rows": [as_json(measurement) for measurement in measured]})
    return NOT_MEASURED if any(measurement.trouble for measurement in measured) else 0


def _options() -> argparse.Namespace:
    names = ", ".join(row.name for row in ROWS)
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure Millstream against references in the same run.",
        epilog=f"Rows: {names}.",
    )
    parser.add_argument("--quick", action="store_true", help="one short round: does it run at all?")
    parser.add_argument("--rows", metavar="NAME,...", help="only these rows")
    parser.add_argument("--json", metavar="FILE", type=Path, default=RESULTS)
    parser.add_argument("--rounds", type=int, help="rounds of each row")
    parser.add_argument("--seconds", type=int, help="seconds of each load in a round")
    parser.add_argument(
        "--deep", action="store_true", help=f"a backlog of {DEEP_BACKLOG:,} messages"
    )
    options = parser.parse_args()
    unknown = set((options.rows or "").split(",")) - {row.name for row in ROWS} - {""}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {names}")
    return options


def _chosen(names: str | None) -> Collection[Row]:
    return [row for row in ROWS if not names or row.name in names.split(",")]


def _plan(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else Plan()
    changes: dict[str, int] = {"backlog": DEEP_BACKLOG} if options.deep else {}
    for name in ("rounds", "seconds"):
        if getattr(options, name):
            changes[name] = getattr(options, name)
    return replace(plan, **changes)


def _measured(served: House, plan: Plan, chosen: Collection[Row]) -> Iterator[Measured]:
    for rows, part in PARTS:
        expected_rows = [row for row in rows if row in chosen]
        if not expected_rows:
            continue
        _say(f"measuring {', '.join(row.name for row in expected_rows)}")
        try:
            yield from part(served, plan, expected_rows)
        except (Unmeasurable, OSError) as error:
            for row in expected_rows:
                yield Measured(row=row, trouble=str(error))


def _in_order(measured: Iterator[Measured]) -> list[Measured]:
    """Sort rows as in the design."""
    return sorted(measured, key=lambda one: ROWS.index(one.row))


def _write(path: Path, told: dict[str, Any]) -> None:
    path.write_text(json.dumps(told, indent=2) + "\n")
    _say(f"written to {path}")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
