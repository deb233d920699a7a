"""Contenders that keep windowed totals of clicks: a view of Millstream, and Kafka Streams.

All rounds of a contender are over one log of the same clicks, and after each the rows are compared with those that Python computes.
"""

import json
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from statistics import quantiles
from threading import Thread
from typing import Protocol
from urllib.parse import urlencode

from tests.bench.compare import clicks, processes
from tests.bench.compare.clicks import Click, Rows
from tests.bench.compare.results import Did
from tests.bench.compare.usage import usage
from tests.bench.ratios import Unmeasurable
from tests.bench.rows_archive import running_worker
from tests.bench.servers import House, house
from tests.bench.view_calls import (
    append_batch,
    append_clicks,
    create_view,
    delete_view,
    rows_including,
    wait_for,
)
from tests.bench.wire import HttpConnection, call

CLICKS, STEP_MS = 200_000, 10.0
LIVE_RATE, LIVE_S = 200, 20
STREAM = "compare-clicks"
ROWS_OF_PAGE = 1_000


class Processor(Protocol):
    """Computes rows of the clicks of a log."""

    clients: Sequence[int]

    def fill(self, chosen: Iterable[Click]) -> None:
        """Append clicks in order."""

    def start(self) -> AbstractContextManager[object]:
        """Start the processes that compute."""

    def drop(self) -> None:
        """Forget what was computed."""

    def compute(self, number: int) -> None:
        """Compute all rows from the oldest click on; return when the rows include this many."""

    def rows(self) -> Rows:
        """Read all rows."""

    def live(self, chosen: Sequence[Click]) -> list[float]:
        """Append clicks at LIVE_RATE; return the milliseconds from append to row."""


class Rounds:
    """Rounds of a contender; the processes that compute are started for a cold round, and once for all others."""

    def __init__(self, processor: Processor, stack: ExitStack) -> None:
        self._processor = processor
        self._stack = stack
        self._is_started = False
        start_ms = int(time.time() * 1_000 - CLICKS * STEP_MS)
        self._clicks = [*clicks.generate(0, CLICKS, start_ms, STEP_MS)]
        processor.fill(self._clicks)

    def operations(self) -> dict[str, Callable[[int], Did]]:
        """All operations, in an order in which each finds what it needs."""
        return {"cold": self.cold, "warm": self.warm, "live": self.live}

    def cold(self, _: int) -> Did:
        """Start the processes, and compute."""
        with ExitStack() as stack:
            return self._backlog(lambda: stack.enter_context(self._processor.start()))

    def warm(self, _: int) -> Did:
        """Compute by processes that have done it before."""
        self._start()
        return self._backlog(lambda: None)

    def live(self, _: int) -> Did:
        """Append, and wait for the row of each click."""
        self._start()
        first, start_ms = len(self._clicks), int(time.time() * 1_000)
        chosen = clicks.generate(first, LIVE_RATE * LIVE_S, start_ms, 1_000 / LIVE_RATE)
        appended = [*chosen]
        began_s = time.monotonic()
        with usage(self._processor.clients) as used:
            latencies = self._processor.live(appended)
        rate = len(appended) / (time.monotonic() - began_s)
        self._clicks += appended
        self._check()
        percentiles = quantiles(latencies, n=100)
        processor_us = 1e6 * used.processor_s / len(appended)
        return Did(rate, percentiles[49], percentiles[98], processor_us, used.peak_mb)

    def _start(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._stack.enter_context(self._processor.start())
            self._backlog(lambda: None)

    def _backlog(self, start: Callable[[], object]) -> Did:
        self._processor.drop()
        began_s, number = time.monotonic(), len(self._clicks)
        with usage(self._processor.clients) as used:
            start()
            self._processor.compute(number)
            seconds = time.monotonic() - began_s
        self._check()
        processor_us = 1e6 * used.processor_s / number
        return Did(number / seconds, 1e3 * seconds, 1e3 * seconds, processor_us, used.peak_mb)

    def _check(self) -> None:
        if wrong := clicks.difference(self._processor.rows(), clicks.totals(self._clicks)):
            raise Unmeasurable(wrong)


@contextmanager
def millstream(data: Path) -> Generator[dict[str, Callable[[int], Did]]]:
    """Run a deployment, whose worker is started by the rounds."""
    with ExitStack() as stack:
        served = stack.enter_context(house(data))
        stack.enter_context(served.background())
        yield Rounds(View(served), stack).operations()


class View:
    """A view of Millstream; each time another one."""

    def __init__(self, served: House) -> None:
        self.clients: Sequence[int] = [served.echo.pid]
        self._house = served
        self._port = served.api.port
        self._names = (f"compare-clicks-{number}" for number in count())
        self._name, self._former = "", ""
        spec = {"archive": False, "hot_retention_seconds": 0, "hot_bytes_max": None}
        call(self._port, "PUT", f"/v1/streams/{STREAM}", spec)

    def fill(self, chosen: Iterable[Click]) -> None:
        """Append all."""
        append_clicks(self._port, STREAM, chosen)

    def start(self) -> AbstractContextManager[object]:
        """Start a worker, whose Spark may use all cores, as that of `millstream up`."""
        return running_worker(self._house, spark_master="local[*]")

    def drop(self) -> None:
        """Delete the view before the last one, so that the stream has a view, and its scan goes on."""
        if self._former:
            delete_view(self._port, self._former)
        self._former = self._name

    def compute(self, number: int) -> None:
        """Create a view, and wait for the last record."""
        self._name = next(self._names)
        watermark_seconds = clicks.GRACE_MS // 1_000
        create_view(
            self._port,
            self._name,
            clicks.SQL,
            STREAM,
            clicks.COLUMNS,
            watermark_seconds=watermark_seconds,
        )
        wait_for(self._port, self._name, number - 1)

    def rows(self) -> Rows:
        """Read page after page."""
        rows: Rows = {}
        words = {"limit": str(ROWS_OF_PAGE)}
        path = f"/v1/views/{self._name}/rows"
        with HttpConnection(self._port) as connection:
            while True:
                page = json.loads(connection.call("GET", f"{path}?{urlencode(words)}"))
                for row in page["rows"]:
                    since_ms = int(datetime.fromisoformat(row["since"]).timestamp() * 1_000)
                    values = (row[name] for name in clicks.Total._fields)
                    rows |= [clicks.row_of(row["page"], since_ms, *values)]
                if not page.get("next_cursor"):
                    return rows
                words["cursor"] = page["next_cursor"]

    def live(self, chosen: Sequence[Click]) -> list[float]:
        """Append one record a call, and follow the positions of the rows, of one view alone."""
        if self._former:
            delete_view(self._port, self._former)
            self._former = ""
        first, sent_s = chosen[0].number, list[float]()
        appender = Thread(target=self._append_live, args=(chosen, sent_s))
        appender.start()
        latencies: list[float] = []
        with HttpConnection(self._port) as connection:
            while len(latencies) < len(chosen):
                answer = rows_including(connection, self._name, first + len(latencies))
                now_s = time.monotonic()
                included = answer["as_of"]["positions"]["0"] - first
                latencies += [1e3 * (now_s - at) for at in sent_s[len(latencies) : included]]
        appender.join()
        return latencies

    def _append_live(self, chosen: Sequence[Click], sent_s: list[float]) -> None:
        began_s = time.monotonic()
        with HttpConnection(self._port) as connection:
            for nth, click in enumerate(chosen):
                time.sleep(max(0.0, began_s + nth / LIVE_RATE - time.monotonic()))
                sent_s.append(time.monotonic())
                append_batch(connection, STREAM, [click])


@contextmanager
def kafka_streams(
    data: Path, flush_messages: int = 0
) -> Generator[dict[str, Callable[[int], Did]]]:
    """Run a broker and the client, whose application is started by the rounds."""
    with ExitStack() as stack:
        broker = stack.enter_context(processes.kafka(data, flush_messages))
        client = stack.enter_context(processes.clicks_program(data, "client", broker))
        yield Rounds(Streams(data, broker, client), stack).operations()


class Streams:
    """An application of Kafka Streams; each time with another id and output."""

    def __init__(self, data: Path, broker: str, client: processes.Dialogue) -> None:
        self.clients: Sequence[int] = [client.pid]
        self._data = data
        self._broker = broker
        self._client = client
        self._numbers = count()
        self._name = ""
        self._app: processes.Dialogue | None = None
        client.ask("create", STREAM)

    def fill(self, chosen: Iterable[Click]) -> None:
        """Append all."""
        self._client.ask("fill", STREAM, self._file(chosen))

    def _file(self, chosen: Iterable[Click]) -> Path:
        path = self._data / "clicks"
        lines = (f"{click.page}\t{click.time_ms}\t{click.data}\n" for click in chosen)
        path.write_text("".join(lines))
        return path

    @contextmanager
    def start(self) -> Generator[None]:
        """Start a JVM."""
        state = str(self._data / "state")
        with processes.clicks_program(self._data, "app", self._broker, state) as self._app:
            yield
        self._app = None

    def drop(self) -> None:
        """Stop the application before, and follow a new output."""
        if self._app is not None:
            self._app.ask("stop")
        self._name = f"{STREAM}-{next(self._numbers)}"
        self._client.ask("create", self._name)
        self._client.ask("follow", self._name)

    def compute(self, number: int) -> None:
        """Run the application, and wait until the committed rows have as many clicks."""
        assert self._app is not None
        self._app.ask("start", self._name, STREAM, self._name)
        self._client.ask("complete", number)

    def rows(self) -> Rows:
        """Return the rows that the client has."""
        return dict(clicks.row_of(*row) for row in json.loads(self._client.ask("rows")))

    def live(self, chosen: Sequence[Click]) -> list[float]:
        """Let the client append, and wait for the rows."""
        answer = self._client.ask("live", STREAM, self._file(chosen), LIVE_RATE)
        return [*map(float, json.loads(answer))]
