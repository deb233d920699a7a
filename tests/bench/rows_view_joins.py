"""Row of joins: a view of two streams, against a Structured Streaming query of the same join.

Measured as `rows_views` does. A batch has 100 records of each stream, and those of the last minute wait in both.
"""

from random import Random
from time import process_time

from pyspark.sql import functions as sf

from spark_worker.runtime.spark_session import Session, set_call_site
from spark_worker.views.executor import Executor, JoinSide, State
from spark_worker.views.inputs.join_records import admitted, since
from spark_worker.views.planning.planner import ViewPlanner
from spark_worker.views.planning.records import raw_table
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import LogRecord
from storage.domain.views.progress import FollowedStream, StreamProgress
from storage.domain.views.view import ViewInput, ViewQuery
from tests.bench.plan import VIEW_JOIN, Plan
from tests.bench.ratios import Measured
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_archive import cpu_seconds
from tests.bench.rows_source import spark_session
from tests.bench.servers import House
from tests.bench.wire import call

STREAMS = ("bench-join-a", "bench-join-b")
RECORDS = 100
BATCHES = 10
KEYS = 50
WAIT_S = 60
_WARM_UP = 5  # the JVM compiles what runs often; a scan and a query have no end
_START_MS = 1_790_000_000_000
_JOIN = (
    "select a.key, count(*) as pairs from a join b on a.key = b.key "
    f"and b.event_time between a.event_time and a.event_time + interval {WAIT_S} seconds group by a.key"
)


def measure(house: House, plan: Plan) -> list[Measured]:
    """Compute batches in rounds."""
    for stream in STREAMS:
        call(house.api.port, "PUT", f"/v1/streams/{stream}", {})
    try:
        with spark_session(house) as session:
            view, query = JoinView(session), JoinQuery(house, session)
            for _ in range(_WARM_UP):
                view.run()
                query.run()
            try:
                return interleave(plan.rounds, query.run, [Contestant(VIEW_JOIN, view.run)])
            finally:
                query.stop()
    finally:
        for stream in STREAMS:
            call(house.api.port, "DELETE", f"/v1/streams/{stream}")


class JoinView:
    """View that counts pairs by key, a second of each stream in a batch of 100 records."""

    def __init__(self, session: Session) -> None:
        self._session = session
        set_call_site(session.spark, _JOIN)
        planner = ViewPlanner(session.spark)
        inputs = {name: ViewInput(stream=name) for name in ("a", "b")}
        self._view = planner.prepare(ViewQuery(sql=_JOIN, inputs=inputs))
        self._followed = [
            FollowedStream(name, input_, StreamProgress()) for name, input_ in inputs.items()
        ]
        self._executor = Executor(planner.spark, planner.plans)
        self._buffered = {
            name: self._executor.parsed(self._view.joined[name], raw_table({}, None))
            for name in inputs
        }
        self._states: dict[str, State] = {}
        self._random = Random(7)
        self._batches = 0

    def run(self) -> float:
        """Batches for each second of one processor, with that of this driver."""
        before = cpu_seconds(self._session.jvm_pid) + process_time()
        for _ in range(BATCHES):
            self._batch()
        return BATCHES / (cpu_seconds(self._session.jvm_pid) + process_time() - before)

    def _batch(self) -> None:
        self._batches += 1
        now_ms = _START_MS + 1_000 * self._batches
        least_ms = now_ms - 1_000 * WAIT_S
        sides = {}
        for followed in self._followed:
            records = {0: _records(self._random, now_ms, self._batches * RECORDS)}
            parsed = self._executor.parsed(
                self._view.joined[followed.relation], raw_table(records, None)
            )
            sides[followed.relation] = JoinSide.of(
                since(self._buffered[followed.relation], least_ms),
                admitted(parsed, followed, least_ms),
            )
        partials = self._executor.join(self._view, sides)
        keys = {one.key for one in partials.states}  # both parts of the join may have one
        stored = [self._states[key] for key in keys if key in self._states]
        [rows] = self._executor.merge({0: self._view}, {0: [*partials.states, *stored]}).values()
        self._states |= {row.key: State(row.key, row.state) for row in rows}
        self._buffered = {name: side.all_records for name, side in sides.items()}


class JoinQuery:
    """Query of its own, which reads both streams in batches of as many records."""

    def __init__(self, house: House, session: Session) -> None:
        self._house = house
        self._session = session
        spark = session.spark.newSession()
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        for name, stream in zip(("a", "b"), STREAMS, strict=True):
            options = {
                "url": f"http://127.0.0.1:{house.api.port}",
                "stream": stream,
                "maxRecordsPerTrigger": str(RECORDS),
            }
            frame = spark.readStream.format("millstream").options(**options).load()
            seen = frame.select("key", sf.col("ts").alias("event_time"))
            seen.withWatermark("event_time", "1 second").createOrReplaceTempView(name)
        pairs = spark.sql(_JOIN.replace("count(*) as pairs", "1 as pairs").rpartition(" group")[0])
        writer = pairs.writeStream.format("noop").outputMode("append")
        location = str(house.data / "join-checkpoints")
        self._query = writer.option("checkpointLocation", location).start()

    def run(self) -> float:
        """Batches for each second of one processor."""
        before = cpu_seconds(self._session.jvm_pid)
        for stream in STREAMS:
            clicks = [
                {"data": f"click {nth}", "key": f"k{nth % KEYS}"}
                for nth in range(RECORDS * BATCHES)
            ]
            path = f"/v1/streams/{stream}/records"
            for first in range(0, len(clicks), 500):
                call(self._house.api.port, "POST", path, {"records": clicks[first : first + 500]})
        self._query.processAllAvailable()
        return BATCHES / (cpu_seconds(self._session.jvm_pid) - before)

    def stop(self) -> None:
        """End the query."""
        self._query.stop()


def _records(random: Random, now_ms: int, first: int) -> list[LogRecord]:
    return [
        LogRecord(
            first + nth,
            now_ms,
            Record(b"click", key=f"k{random.randrange(KEYS)}", event_time_ms=now_ms),
        )
        for nth in range(RECORDS)
    ]
