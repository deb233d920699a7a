"""Rows of scans of views: idle, over an archive, and after a kill; each against Spark alone."""

import time
from time import monotonic, sleep

from spark_worker.runtime.spark_session import Session
from tests.bench.compare import clicks
from tests.bench.plan import VIEW_BACKFILL, VIEW_IDLE, VIEW_RESTART, Plan
from tests.bench.ratios import Measured, Round
from tests.bench.rows_archive import archive_all, cpu_seconds, let_go, running_worker
from tests.bench.rows_source import archived_files, spark_session
from tests.bench.servers import House
from tests.bench.view_calls import append_clicks, create_view, delete_view, wait_for
from tests.bench.wire import call

STREAM = "bench-view-scans"
VIEWS = 20
RECORDS = 500
STEP_MS = 10.0
POLLS_PER_S = 10  # more than a query makes, for a difference that can be measured
ROUNDS_MAX = 2  # each starts Spark twice
SETTLE_S = 15.0
SQL = "select page, count(*) as clicks, sum(ms) as ms from c where ms <> %d group by page"
BATCH_SQL = (
    "select c.page, window(event_ts, '10 seconds').start as since, count(*) as clicks, sum(c.ms) as ms, max(c.n) as newest "
    f"from (select event_ts, from_json(cast(data as string), '{clicks.COLUMNS}') as c from files) group by 1, 2"
)


# ── Idle ──


def measure_idle(house: House, plan: Plan) -> list[Measured]:
    """Measure what the views add to an idle worker, and polls to an idle session."""
    port, seconds = house.api.port, plan.idle_seconds / 2
    last = _fill(port, RECORDS)
    with running_worker(house) as worker:
        views = [f"bench-idle-{nth}" for nth in range(VIEWS)]
        for nth, view in enumerate(views):
            create_view(port, view, SQL % nth, STREAM, clicks.COLUMNS)
        for view in views:
            wait_for(port, view, last)
        scanning_ms = _idle_ms(worker.pid, seconds)
        for view in views:
            delete_view(port, view)
        waiting_ms = _idle_ms(worker.pid, seconds)
    polling_ms, without_ms = _polling_ms(house, seconds)
    call(port, "DELETE", f"/v1/streams/{STREAM}")
    notes = [
        f"a worker with views {scanning_ms:.1f} ms, without {waiting_ms:.1f}; "
        f"a session with {POLLS_PER_S} polls a second {polling_ms:.1f} ms, without {without_ms:.1f}"
    ]
    poll_ms = (polling_ms - without_ms) / POLLS_PER_S
    return [Measured(row=VIEW_IDLE, rounds=[Round(scanning_ms - waiting_ms, poll_ms)], notes=notes)]


def _polling_ms(house: House, seconds: float) -> tuple[float, float]:
    """Processor time of a session with a query that has no news, and before it, for each second.

    Not after it: the time of the query's Python, which ends at some time, would be missing.
    """
    options = {"url": f"http://127.0.0.1:{house.api.port}", "stream": STREAM}
    with spark_session(house) as session:
        session.spark.range(1).count()
        without_ms = _idle_ms(session.jvm_pid, seconds)
        frame = session.spark.readStream.format("millstream").options(**options).load()
        writer = frame.writeStream.format("noop")
        writer = writer.trigger(processingTime=f"{1_000 // POLLS_PER_S} milliseconds")
        query = writer.option("checkpointLocation", str(house.data / "idle-checkpoints")).start()
        query.processAllAvailable()
        polling_ms = _idle_ms(session.jvm_pid, seconds)
        query.stop()
    return polling_ms, without_ms


def _idle_ms(pid: int, seconds: float) -> float:
    """Processor time of each second of a process and its children, once they have settled."""
    sleep(SETTLE_S)
    began_s, before_s = monotonic(), cpu_seconds(pid)
    sleep(seconds)
    return 1e3 * (cpu_seconds(pid) - before_s) / (monotonic() - began_s)


# ── Archive ──


def measure_backfill(house: House, plan: Plan) -> list[Measured]:
    """Compute totals of an archived stream, by a batch of Spark and by views."""
    port, records = house.api.port, plan.scanned // 4
    rounds = plan.rounds + 1  # the first ones warm up
    others = archived_files(house)
    last = _fill(port, records, archive=True)
    with running_worker(house) as worker:
        archive_all(port, STREAM)
        let_go(house, STREAM, records)
        views = [_backfilled(port, worker.pid, last, nth) for nth in range(rounds)]
    files = [*map(str, archived_files(house) - others)]
    with spark_session(house) as session:
        batches = [_batch(session, files, records) for _ in range(rounds)]
    delete_view(port, f"bench-backfill-{rounds - 1}")
    call(port, "DELETE", f"/v1/streams/{STREAM}")
    pairs = zip(views[1:], batches[1:], strict=True)
    return [Measured(row=VIEW_BACKFILL, rounds=[Round(*pair) for pair in pairs])]


def _backfilled(port: int, worker: int, last: int, nth: int) -> float:
    name = f"bench-backfill-{nth}"
    before_s = cpu_seconds(worker)
    create_view(port, name, clicks.SQL, STREAM, clicks.COLUMNS)
    wait_for(port, name, last)
    seconds = cpu_seconds(worker) - before_s
    if nth:  # not before: the scan of a stream without views ends
        delete_view(port, f"bench-backfill-{nth - 1}")
    return (last + 1) / seconds


def _batch(session: Session, files: list[str], records: int) -> float:
    before_s = cpu_seconds(session.jvm_pid)
    session.spark.read.parquet(*files).createOrReplaceTempView("files")
    session.spark.sql(BATCH_SQL).write.format("noop").mode("overwrite").save()
    return records / (cpu_seconds(session.jvm_pid) - before_s)


# ── Kill ──


def measure_restart(house: House, plan: Plan) -> list[Measured]:
    """Kill the worker in the middle of its views, and start another one at once."""
    _fill(house.api.port, RECORDS)
    numbers = range(min(plan.rounds, ROUNDS_MAX))
    rounds = [Round(_restarted_s(house, number), _started_s(house)) for number in numbers]
    call(house.api.port, "DELETE", f"/v1/streams/{STREAM}")
    note = "the other worker takes the scan over once the connection of the killed one has ended"
    return [Measured(row=VIEW_RESTART, rounds=rounds, notes=[note])]


def _restarted_s(house: House, nth: int) -> float:
    port, name = house.api.port, f"bench-restart-{nth}"
    with running_worker(house) as worker:
        create_view(port, name, clicks.SQL, STREAM, clicks.COLUMNS)
        wait_for(port, name, _append(port, RECORDS, 1))
        worker.kill()
        began_s = monotonic()
        worker.wait()
        with running_worker(house):
            wait_for(port, name, _append(port, RECORDS, 1))
            seconds = monotonic() - began_s
    delete_view(port, name)
    return seconds


def _started_s(house: House) -> float:
    began_s = monotonic()
    with spark_session(house) as session:
        session.spark.range(1).count()
        return monotonic() - began_s


def _append(port: int, first: int, count: int) -> int:
    """Append clicks, and return the last offset."""
    start_ms = int(time.time() * 1_000 - count * STEP_MS)
    chosen = clicks.generate(first, count, start_ms, STEP_MS)
    return append_clicks(port, STREAM, chosen)


def _fill(port: int, count: int, *, archive: bool = False) -> int:
    """Create the stream with clicks, which stay in memory until they are trimmed."""
    spec = {"archive": archive, "hot_retention_seconds": 0, "hot_bytes_max": None}
    call(port, "PUT", f"/v1/streams/{STREAM}", spec)
    return _append(port, 0, count)
