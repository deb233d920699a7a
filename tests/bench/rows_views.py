"""Row of views: twenty on a stream, against a Structured Streaming query for one of them.

Measured in processor time of Spark (JVM and Python), and of the driver, which plans and merges; that of the query waits only. The views compute their batches as a scan does, without the reads and commits.
"""

from collections.abc import Sequence
from random import Random
from time import process_time

from pyspark.sql import functions as sf

from spark_worker.runtime.spark_session import Session, set_call_site
from spark_worker.views.executor import State
from spark_worker.views.inputs.backlog import BatchRecords
from spark_worker.views.session import ViewSession
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import LogRecord, ShardRead, StreamRead
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import RevisionState, ViewRevision
from storage.domain.views.view import ViewInput, ViewQuery
from tests.bench.plan import VIEW_BATCHES, Plan
from tests.bench.ratios import Measured
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_archive import cpu_seconds
from tests.bench.rows_source import spark_session
from tests.bench.servers import House
from tests.bench.wire import call

STREAM = "bench-views"
VIEWS = 20
RECORDS = 100
BATCHES = 10
_WARM_UP = 10  # the JVM compiles what runs often; a scan and a query have no end


def measure(house: House, plan: Plan) -> list[Measured]:
    """Compute batches in rounds."""
    call(house.api.port, "PUT", f"/v1/streams/{STREAM}", {})
    try:
        with spark_session(house) as session:
            views, query = Batches(session), StreamingQuery(house, session)
            for _ in range(_WARM_UP):
                views.run()
                query.run()
            try:
                contestant = Contestant(VIEW_BATCHES, views.run)
                return interleave(plan.rounds, query.run, [contestant])
            finally:
                query.stop()
    finally:
        call(house.api.port, "DELETE", f"/v1/streams/{STREAM}")


class Batches:
    """Twenty views, each of which counts the clicks of a key."""

    def __init__(self, session: Session) -> None:
        self._session = session
        set_call_site(session.spark, STREAM)
        self._views = ViewSession(session.spark)
        self._revisions = [_revision(nth) for nth in range(VIEWS)]
        self._states: dict[str, Sequence[State]] = {}
        self._random = Random(7)
        for revision in self._revisions:
            self._views.prepare(revision)

    def run(self) -> float:
        """Batches of one view for each second of one processor, with that of this driver."""
        before = cpu_seconds(self._session.jvm_pid) + process_time()
        for _ in range(BATCHES):
            self._batch()
        return BATCHES * VIEWS / (cpu_seconds(self._session.jvm_pid) + process_time() - before)

    def _batch(self) -> None:
        partials = self._views.partials(self._revisions, BatchRecords([_read(self._random)]))
        states = {
            one: [*result.states, *self._states.get(one, ())] for one, result in partials.items()
        }
        merged = self._views.merge(self._revisions, states)
        self._states = {
            one: [State(row.key, row.state, row.window_end_ms) for row in rows]
            for one, rows in merged.items()
        }


class StreamingQuery:
    """A query of its own, which reads the stream in batches of as many records."""

    def __init__(self, house: House, session: Session) -> None:
        self._house = house
        self._session = session
        spark = session.spark.newSession()
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        options = {
            "url": f"http://127.0.0.1:{house.api.port}",
            "stream": STREAM,
            "maxRecordsPerTrigger": str(RECORDS),
        }
        frame = spark.readStream.format("millstream").options(**options).load()
        counted = frame.groupBy("key").agg(sf.count("*").alias("clicks"))
        writer = counted.writeStream.format("noop").outputMode("update")
        location = str(house.data / "checkpoints")
        self._query = writer.option("checkpointLocation", location).start()

    def run(self) -> float:
        """Batches for each second of one processor."""
        before = cpu_seconds(self._session.jvm_pid)
        _append(self._house, RECORDS * BATCHES)
        self._query.processAllAvailable()
        return BATCHES / (cpu_seconds(self._session.jvm_pid) - before)

    def stop(self) -> None:
        """End the query."""
        self._query.stop()


def _append(house: House, records: int) -> None:
    clicks = [{"data": f"click {nth}", "key": f"k{nth % 9}"} for nth in range(records)]
    path = f"/v1/streams/{STREAM}/records"
    for first in range(0, records, 500):
        call(house.api.port, "POST", path, {"records": clicks[first : first + 500]})


def _revision(nth: int) -> ViewRevision:
    columns = "page string, ms bigint"
    sql = f"select key, count(*) as clicks, sum(ms) as ms from c where ms <> {nth} group by key"
    query = ViewQuery(sql=sql, inputs={"c": ViewInput(stream=STREAM, columns=columns)})
    return ViewRevision(
        revision_id=f"r{nth}",
        view_id=f"v{nth}",
        number=1,
        query=query,
        plan=ViewPlan(columns=(), key=()),
        stream_id="bench",
        state=RevisionState.ACTIVE,
    )


def _read(random: Random) -> StreamRead:
    records = [
        LogRecord(
            offset,
            1_790_000_000_000 + offset,
            Record(b'{"page": "/", "ms": %d}' % random.randrange(1000), key=f"k{offset % 9}"),
        )
        for offset in range(RECORDS)
    ]
    shard = ShardRead(0, records, RECORDS, 0, RECORDS, 0)
    return StreamRead([shard], {0: RECORDS}, "bench")
