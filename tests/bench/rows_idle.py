"""Rows of an idle server: wake-up latency, and the cost of waiting."""

import json
import resource
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import NamedTuple

from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import (
    IDLE_CONNECTIONS,
    IDLE_POLLS,
    IDLE_QUEUES,
    IDLE_SHARDS,
    WAITING_MESSAGES,
    WAKE_UP,
    Plan,
)
from tests.bench.ratios import Measured, Round, Row, Unmeasurable
from tests.bench.servers import House, Served
from tests.bench.wire import JSON, MSGPACK, HttpConnection, ScriptConnection, call, good, post_all

RAW = "application/octet-stream"
PAUSE_S = 0.01  # the server is idle before each sample
POLL_S = 20
SETTLE_S = 1.0
POLL_BYTES_MAX, SOCKET_BYTES_MAX = 3_584, 3 * 1024
QUEUE_BYTES_MAX, SHARD_BYTES_MAX, MESSAGE_BYTES_MAX = 1_280, 5 * 1024, 340
RING_SIZE = 2**128
BATCH, BATCHES = 1_000, 50
FILES_BESIDE = 200  # descriptors besides the connections


def percentile_99(samples: list[float]) -> float:
    """The 99th percentile."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


# ── Wake-up ──


def measure_wake_up(house: House, plan: Plan) -> list[Measured]:
    """A send to a waiting receive, against an echo and a synchronous script, in turn."""
    echoes, scripts, wakes = [], [], []
    with Waiting(house) as waiting:
        for _ in range(plan.latency_samples):
            echoes.append(waiting.echo())
            scripts.append(waiting.script())
            wakes.append(waiting.wake_up())
    echo, script, wake = (1e3 * percentile_99(samples) for samples in (echoes, scripts, wakes))
    medians = [1e3 * sorted(some)[len(some) // 2] for some in (echoes, scripts, wakes)]
    notes = (
        f"p99 of the echo {echo:.2f} ms, of a script {script:.2f} ms; medians: echo {medians[0]:.2f}, "
        f"script {medians[1]:.2f}, wake-up {medians[2]:.2f} ms; {len(wakes)} samples each",
    )
    return [Measured(row=WAKE_UP, rounds=[Round(wake, echo + 2 * script)], notes=notes)]


class Waiting:
    """Connections of the wake-up row; samples are in seconds."""

    PATH = "/v1/queues/bench-wake-up"
    KEY = b"bench:script"

    def __init__(self, house: House) -> None:
        call(house.api.port, "PUT", self.PATH, {})
        self._stack = ExitStack()
        enter = self._stack.enter_context
        self._echo = enter(HttpConnection(house.echo.port))
        self._sender = enter(HttpConnection(house.api.port))
        self._receiver = enter(HttpConnection(house.api.port))
        self._script = enter(ScriptConnection(house.valkey_socket))
        self._stack.callback(house.store.delete, self.KEY)

    def __enter__(self) -> "Waiting":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def echo(self) -> float:
        """A call of the echo server."""
        sleep(PAUSE_S)
        started = perf_counter()
        self._echo.call("POST", "/", payloads.BODY, RAW)
        return perf_counter() - started

    def script(self) -> float:
        """A script that appends 256 bytes, until its response after the fsync."""
        sleep(PAUSE_S)
        started = perf_counter()
        self._script.append(self.KEY, payloads.BODY)
        return perf_counter() - started

    def wake_up(self) -> float:
        """From a send to the response of the waiting receive; the message is then acknowledged."""
        body = json.dumps({"wait_seconds": POLL_S}).encode()
        self._receiver.send("POST", f"{self.PATH}/receive", body)
        sleep(PAUSE_S)
        started = perf_counter()
        self._sender.send("POST", f"{self.PATH}/messages", payloads.BODY, RAW)
        received = self._receiver.read()
        took = perf_counter() - started
        good(self._sender.read(), "a send")
        self._acknowledge(good(received, "a receive"))
        return took

    def _acknowledge(self, received: bytes) -> None:
        handles = [message["receipt_handle"] for message in json.loads(received)["messages"]]
        if len(handles) != 1:
            raise Unmeasurable(f"a waiting receive got {len(handles)} messages")
        self._sender.call("POST", f"{self.PATH}/settle", acknowledgement(handles[0]))


# ── Cost of waiting ──


def measure_connections(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Memory of idle connections and long polls in the API process, against the echo server's."""
    allow_files(plan.long_polls + FILES_BESIDE)
    path = "/v1/queues/bench-poll"
    call(house.api.port, "PUT", path, {})
    with house.fresh_api() as served:
        own = Polls(plan.long_polls, f"{path}/receive", f"{path}/receive").bytes_each(served)
    with house.fresh_echo() as served:
        bare = Polls(plan.long_polls, "/", "/wait").bytes_each(served)
    note = f"{plan.long_polls} of them, each of which has made a call"
    idle = Measured(row=IDLE_CONNECTIONS, rounds=[Round(own.idle, bare.idle)], notes=[note])
    note = (
        f"{plan.long_polls} polls; each takes {own.waiting:,.0f} B with its connection, of which the server's own are "
        f"the {bare.waiting:,.0f} B that a connection and a waiting request take of a bare application"
    )
    rounds = [Round(own.waiting - bare.waiting, POLL_BYTES_MAX)]
    polls = Measured(row=IDLE_POLLS, rounds=rounds, notes=[note])
    return [measured for measured in (idle, polls) if measured.row in wanted]


class ConnectionBytes(NamedTuple):
    """Memory of a connection that has made a call, and of one that waits in the next one."""

    idle: float
    waiting: float


@dataclass(frozen=True, slots=True)
class Polls:
    """Connections to a fresh process; each makes one call, and then all wait."""

    count: int
    path: str
    waiting_path: str

    def bytes_each(self, served: Served) -> ConnectionBytes:
        """Measure them after their first call, and in their second."""
        with ExitStack() as stack:
            first = stack.enter_context(HttpConnection(served.port))
            first.call("POST", self.path, b"{}")  # first-use allocations do not count
            before = settled_bytes(served)
            connections = [
                stack.enter_context(HttpConnection(served.port)) for _ in range(self.count)
            ]
            for connection in connections:
                connection.call("POST", self.path, b"{}")
            idle = settled_bytes(served)
            for connection in connections:
                connection.send("POST", self.waiting_path, b'{"wait_seconds":%d}' % POLL_S)
            waiting = settled_bytes(served)
            if any(connection.has_news() for connection in connections):
                raise Unmeasurable("a poll did not wait, or its connection was closed before it")
        return ConnectionBytes((idle - before) / self.count, (waiting - before) / self.count)


def settled_bytes(served: Served) -> int:
    """The memory of a process after a short rest."""
    sleep(SETTLE_S)
    return served.resident_bytes


def allow_files(count: int) -> None:
    """Raise the limit of open files, which children inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        if hard != resource.RLIM_INFINITY and hard < count:
            raise Unmeasurable(f"{count} open files are needed, and {hard} are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def measure_waiting_messages(house: House, plan: Plan) -> list[Measured]:
    """Send messages one by one, which share the entries of a flush, and in batches."""
    path = "/v1/queues/bench-waiting"
    call(house.api.port, "PUT", path, {})
    call(house.api.port, "POST", f"{path}/messages", {"body": "x"})  # the keys do not count
    before = house.used_memory()
    file = house.file("waiting-message.json", payloads.message_as_json())
    words = ("POST", JSON, JSON, file, f"{path}/messages", "1", "0")
    wrk(house.api.port, "fixed.lua", *words, seconds=plan.seconds)
    sent = call(house.api.port, "GET", f"{path}/stats")["ready"] - 1
    between = house.used_memory()
    batch = (f"{path}/messages", payloads.messages(BATCH), MSGPACK)
    post_all(house.api.port, [batch] * BATCHES)
    batched = (house.used_memory() - between) / (BATCH * BATCHES)
    call(house.api.port, "DELETE", path)
    note = f"{sent:,} messages; in batches of {BATCH:,} each takes {batched:.0f} B"
    rounds = [Round((between - before) / sent, MESSAGE_BYTES_MAX)]
    return [Measured(row=WAITING_MESSAGES, rounds=rounds, notes=[note])]


def measure_idle_queues(house: House, plan: Plan) -> list[Measured]:
    """Create queues that had one message, which was acknowledged."""
    with HttpConnection(house.api.port) as connection:
        _use_once(
            connection, "/v1/queues/bench-idle"
        )  # first-use allocations of the store do not count
        before = house.used_memory()
        for number in range(plan.idle_queues):
            _use_once(connection, f"/v1/queues/bench-idle-{number}")
        each = (house.used_memory() - before) / plan.idle_queues
    note = f"{plan.idle_queues} queues, each used once"
    return [Measured(row=IDLE_QUEUES, rounds=[Round(each, QUEUE_BYTES_MAX)], notes=[note])]


def _use_once(connection: HttpConnection, path: str) -> None:
    connection.call("PUT", path, b"{}")
    connection.call("POST", f"{path}/messages", payloads.BODY, RAW)
    [message] = json.loads(connection.call("POST", f"{path}/receive", b"{}"))["messages"]
    connection.call("POST", f"{path}/settle", acknowledgement(message["receipt_handle"]))


def measure_idle_shards(house: House, plan: Plan) -> list[Measured]:
    """Create a stream with one record per shard."""
    count = plan.idle_shards
    with HttpConnection(house.api.port) as connection:
        _fill_shards(connection, "/v1/streams/bench-idle", 1)
        before = house.used_memory()
        _fill_shards(connection, "/v1/streams/bench-idle-shards", count)
        each = (house.used_memory() - before) / count
    note = f"{count} shards of one stream, each with one record"
    return [Measured(row=IDLE_SHARDS, rounds=[Round(each, SHARD_BYTES_MAX)], notes=[note])]


def _fill_shards(connection: HttpConnection, path: str, count: int) -> None:
    connection.call("PUT", path, json.dumps({"shards": count}).encode())
    width = RING_SIZE // count
    records = [
        {"data": payloads.BODY.decode(), "hash_key": str(width * nth)} for nth in range(count)
    ]
    connection.call("POST", f"{path}/records", json.dumps({"records": records}).encode())


def acknowledgement(receipt_handle: str) -> bytes:
    """The body of a settle call."""
    verdict = {"receipt_handle": receipt_handle, "action": "ack"}
    return json.dumps({"settlements": [verdict]}).encode()
