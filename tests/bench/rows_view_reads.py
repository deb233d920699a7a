"""Rows of a worker's views: appends beside twenty of them, and reads of a row.

Reads of a row do not need the worker, and are measured when it has ended.
"""

import json
from collections.abc import Collection
from itertools import count
from random import Random
from statistics import median
from time import monotonic, perf_counter, sleep

import msgspec

from storage.domain import limits
from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import VIEW_APPENDS, VIEW_LATENCY, VIEW_ROW, Plan
from tests.bench.ratios import Measured, Round, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_archive import cpu_seconds, running_worker
from tests.bench.rows_idle import percentile_99
from tests.bench.rows_source import spark_session
from tests.bench.servers import House
from tests.bench.view_calls import create_view, delete_view, rows_including, wait_for
from tests.bench.wire import MSGPACK, HttpConnection, call

STREAM, VIEW = "bench-view-reads", "bench-view-reads"
PAGES = 1_000
VIEWS, VIEWED_PAGES, APPENDERS = 20, 50, 8
COLUMNS = "page string, ms bigint"
SQL = "select page, count(*) as clicks, sum(ms) as ms from c where ms <> %d group by page"
APPEND_ROUNDS_MAX = 3  # each creates and deletes its views
QUIET_CPU_S, QUIET_S_MAX = 0.1, 120.0
COUNTS = 40  # of one row by Spark, the first half of which warms up
PAUSE_S_MAX = 2 * limits.VIEW_PACE_MS / limits.SECOND_MS
WARM_UP = 10


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Measure with one worker, and reads of rows after it."""
    measured = []
    counted_ms = _counted_ms(house) if VIEW_LATENCY in wanted else 0.0
    with running_worker(house) as worker:
        if VIEW_APPENDS in wanted:
            appends = Appends(house, worker.pid, plan.seconds)
            contestant = Contestant(VIEW_APPENDS, appends.beside_views)
            rounds = min(plan.rounds, APPEND_ROUNDS_MAX)
            measured += interleave(rounds, appends.alone, [contestant])
        pages = Pages(house.api.port)
        if VIEW_LATENCY in wanted:
            measured.append(pages.latency(plan.latency_samples // 4, counted_ms))
    if VIEW_ROW in wanted:
        pages.reconnect()
        samples = plan.latency_samples
        pages.record_ms(samples), pages.row_ms(samples)
        contestant = Contestant(VIEW_ROW, lambda: pages.row_ms(samples))
        measured += interleave(plan.rounds, lambda: pages.record_ms(samples), [contestant])
    pages.close()
    return measured


def _counted_ms(house: House) -> float:
    """Return the median time of a small query that the session has run before."""
    times = []
    with spark_session(house) as session:
        for _ in range(COUNTS):
            began_s = perf_counter()
            session.spark.range(1).count()
            times.append(1e3 * (perf_counter() - began_s))
    return median(times[COUNTS // 2 :])


class Appends:
    """Appends to a stream that has twenty views or none; each round uses new ones."""

    def __init__(self, house: House, worker: int, seconds: int) -> None:
        self._port = house.api.port
        self._worker = worker
        self._seconds = seconds
        self._names = (f"bench-view-appends-{number}" for number in count())
        self._file = house.file("clicks", _columns())

    def alone(self) -> float:
        """Records per second, without views."""
        stream = self._new_stream()
        rate = self._rate(stream)
        call(self._port, "DELETE", f"/v1/streams/{stream}")
        return rate

    def beside_views(self) -> float:
        """Records per second, while twenty views follow; returns when the worker has ended their batches."""
        stream = self._new_stream()
        views = [f"{stream}-{nth}" for nth in range(VIEWS)]
        for nth, view in enumerate(views):
            create_view(self._port, view, SQL % nth, stream, COLUMNS)
        [appended] = _append(self._port, stream, [_click(0)])
        for view in views:
            wait_for(self._port, view, appended)
        rate = self._rate(stream)
        for view in views:
            delete_view(self._port, view)
        call(self._port, "DELETE", f"/v1/streams/{stream}")
        self._wait_until_quiet()
        return rate

    def _new_stream(self) -> str:
        name = next(self._names)
        call(self._port, "PUT", f"/v1/streams/{name}", {"archive": False})
        return name

    def _rate(self, stream: str) -> float:
        words = ("POST", MSGPACK, MSGPACK, self._file, f"/v1/streams/{stream}/columns", "1", "0")
        load = wrk(self._port, "fixed.lua", *words, seconds=self._seconds, connections=APPENDERS)
        return load.rate * payloads.RECORDS

    def _wait_until_quiet(self) -> None:
        """Wait until the worker uses little processor time."""
        give_up_at = monotonic() + QUIET_S_MAX
        while monotonic() < give_up_at:
            before_s = cpu_seconds(self._worker)
            sleep(1.0)
            if cpu_seconds(self._worker) - before_s < QUIET_CPU_S:
                return
        raise Unmeasurable("the worker went on without views")


class Pages:
    """Clicks of a thousand pages, whose rows and latest records are read."""

    def __init__(self, port: int) -> None:
        self._random = Random(5)
        self._connection = HttpConnection(port)
        self._port = port
        call(port, "PUT", f"/v1/streams/{STREAM}", {"archive": False, "key_index": True})
        create_view(port, VIEW, SQL % 0, STREAM, COLUMNS)
        for first in range(0, PAGES, payloads.RECORDS):
            numbers = range(first, first + payloads.RECORDS)
            self._last = _append(port, STREAM, [_click(number) for number in numbers])[-1]
        wait_for(port, VIEW, self._last)

    def reconnect(self) -> None:
        """Open a new connection, of which the server has not waited for a request meanwhile."""
        self._connection.close()
        self._connection = HttpConnection(self._port)

    def close(self) -> None:
        """Delete everything."""
        self._connection.close()
        delete_view(self._port, VIEW)
        call(self._port, "DELETE", f"/v1/streams/{STREAM}")

    def latency(self, samples: int, counted_ms: float) -> Measured:
        """Append a record at a random time, and wait for its row."""
        for _ in range(WARM_UP):
            self._latency_ms()
        latencies = [self._latency_ms() for _ in range(samples)]
        note = (
            f"p99 {percentile_99(latencies):.0f} ms, of {samples} records; "
            f"the query of one row took {counted_ms:.0f} ms"
        )
        rounds = [Round(median(latencies), counted_ms + limits.VIEW_PACE_MS)]
        return Measured(row=VIEW_LATENCY, rounds=rounds, notes=[note])

    def _latency_ms(self) -> float:
        sleep(self._random.random() * PAUSE_S_MAX)
        number = self._random.randrange(PAGES)
        began_s = perf_counter()
        path = f"/v1/streams/{STREAM}/records"
        body = json.dumps({"records": [_click(number)]}).encode()
        appended = json.loads(self._connection.call("POST", path, body))["records"][0]["offset"]
        rows_including(self._connection, VIEW, appended, {"key": f"/products/{number}"})
        return 1e3 * (perf_counter() - began_s)

    def row_ms(self, samples: int) -> float:
        """The median time to read a row by its key."""
        return self._median_ms(samples, f"/v1/views/{VIEW}/rows?key=/products/%d")

    def record_ms(self, samples: int) -> float:
        """The median time to read the latest record of a key."""
        return self._median_ms(samples, f"/v1/streams/{STREAM}/keys//products/%d")

    def _median_ms(self, samples: int, path: str) -> float:
        times = []
        for _ in range(samples):
            chosen = path % self._random.randrange(PAGES)
            began_s = perf_counter()
            self._connection.call("GET", chosen)
            times.append(1e3 * (perf_counter() - began_s))
        return median(times)


def _append(port: int, stream: str, clicks: list[dict[str, object]]) -> list[int]:
    answer = call(port, "POST", f"/v1/streams/{stream}/records", {"records": clicks})
    return [record["offset"] for record in answer["records"]]


def _click(number: int) -> dict[str, object]:
    page = f"/products/{number}"
    return {"key": page, "data": {"page": page, "ms": number + 1}}


def _columns() -> bytes:
    """A batch of clicks in columns."""
    clicks = [_click(nth % VIEWED_PAGES) for nth in range(payloads.RECORDS)]
    data = [json.dumps(click["data"]).encode() for click in clicks]
    return msgspec.msgpack.encode({"data": data, "keys": [click["key"] for click in clicks]})
