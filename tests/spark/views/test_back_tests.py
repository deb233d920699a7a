"""Back-tests: another configuration over the records that the rows of a view include."""

import asyncio
import json
from functools import partial
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import text

from spark_worker.main import HANDLERS
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import JobRefused, StorageBusy, ValidationFailed
from storage.domain.fault_points import arm
from storage.domain.jobs import JobKind, JobState
from storage.domain.log.record_batch import Record
from storage.domain.names import ViewName
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.changes import ChangeKind
from storage.domain.views.plan import ViewBackTestSpec
from storage.domain.views.progress import RevisionState
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.view import ViewSpec
from storage.views.back_tests import ViewBackTest
from tests.conditions import eventually
from tests.spark.views.test_scan import (
    CHANGES,
    CLICKS,
    VIEW,
    VIEW_JOBS,
    Clicks,
    by_page,
    click,
    messages_of,
    put_clicks,
    rows_at,
    spec,
)

pytestmark = pytest.mark.one_store

JOBS = VIEW_JOBS | {JobKind.VIEW_BACK_TEST: HANDLERS[JobKind.VIEW_BACK_TEST]}
UPPER = "select upper(page) as page, count(*) as clicks from c group by 1"
DOUBLE = "select page, 2 * count(*) as clicks, sum(ms) as ms from c where page <> 'b' group by page"
MINUTES = (
    "select window(event_time, '1 minute').start as since, count(*) as clicks from c group by 1"
)
ALERTS = ViewSink(queue="alerts", when="clicks >= 3", once_per_key=True)


@pytest.fixture
async def clicks(storage: Storage) -> Storage:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.catalog.put_stream(CHANGES, StreamSpec())
    return storage


@pytest.fixture
def tested(storage, ended):
    """Submit a back-test, and return it once its job is over."""

    async def run(configuration: ViewSpec, name: ViewName = VIEW) -> ViewBackTest:
        submitted = await storage.view_back_tests.submit(name, configuration)
        await ended(submitted.job.job_id)
        done: ViewBackTest = await storage.view_back_tests.get(name, submitted.job.job_id)
        return done

    return run


async def _is_swept(storage: Storage) -> bool:
    await storage.views.sweep()
    async with storage.views._rows._database.reading() as session:
        states = await session.execute(text("select state from view_revisions"))
        return {state for (state,) in states} <= {RevisionState.ACTIVE.value}


def differences(back_test: ViewBackTest) -> tuple[int, int, int]:
    report = back_test.result
    assert report is not None, back_test.job
    return report.added, report.removed, report.changed


async def test_same_configuration_has_the_same_rows(clicks, working, tested):
    async with working(JOBS):
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, await put_clicks(clicks, *map(click, "aabac")))
        same = await tested(spec())
        await eventually(partial(_is_swept, clicks), True)
        page = await rows_at(clicks, await put_clicks(clicks, click("a")))

    assert differences(same) == (0, 0, 0)
    assert (same.result.is_exact, same.result.records, same.result.former_records) == (True, 5, 5)
    assert by_page(page) == {"a": 4, "b": 1, "c": 1}


async def test_differences_and_messages_of_another_configuration(clicks, working, tested):
    async with working(JOBS):
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, await put_clicks(clicks, *map(click, "aabac")))
        double = await tested(replace(spec(DOUBLE), into=(ALERTS, ViewSink(stream="changes"))))
        upper = await tested(spec(UPPER))
        status = await clicks.views.status(VIEW)
        sent = await messages_of(clicks, CHANGES)

    assert differences(double) == (0, 1, 2)
    samples = {(one.before, one.after) for one in double.result.samples}
    assert ('{"page":"b","clicks":1,"ms":1}', None) in samples
    assert ('{"page":"c","clicks":1,"ms":1}', '{"page":"c","clicks":2,"ms":1}') in samples
    alerts, changes = double.result.sinks
    assert (alerts.sink, alerts.messages) == ("queue:alerts", 1)
    [alert] = alerts.samples
    assert (alert.change, alert.key, json.loads(alert.row)) == (
        ChangeKind.INSERT,
        "a",
        {"page": "a", "clicks": 6, "ms": 3},
    )
    assert (changes.sink, changes.messages) == ("stream:changes", 2)
    assert differences(upper) == (3, 3, 0)
    assert (status.active.number, status.building, status.sinks) == (1, None, [])
    assert sent == []


@pytest.mark.parametrize("seed", [1, 2])
async def test_messages_are_counted_once_across_failed_attempts(
    seed, clicks, working, tested, monkeypatch
):
    """The rows that the messages add up to are those of the back-test, however its batches are cut."""
    random, some = Random(seed), Clicks(clicks, f"attempts-{seed}")
    async with working(JOBS):
        await clicks.views.put(VIEW, spec(UPPER))
        for _ in range(3):
            await some.put()
        await rows_at(clicks, some.offsets)
        read = partial(clicks.record_reader.read, records_max=random.randrange(5, 20))
        monkeypatch.setattr(clicks.record_reader, "read", read)
        monkeypatch.setattr(limits, "VIEW_SINK_SAMPLES", 1_000)
        monkeypatch.setattr(limits, "JOB_BACKOFF_MS_MIN", 10)
        arm("view_back_test.saved:raise")
        running = asyncio.create_task(tested(replace(spec(), into=(ViewSink(stream="changes"),))))
        try:
            await eventually(partial(_has_failed, clicks), True)
        finally:
            arm("")
        done = await running

    assert done.job.failures == 0
    assert done.result.is_exact
    [changes] = done.result.sinks
    folded = {}
    for message in changes.samples:
        folded[message.key] = message.row and json.loads(message.row)["clicks"]
    assert changes.messages == len(changes.samples)
    assert folded == some.expected
    assert differences(done)[0] == len(some.expected)


async def _has_failed(storage: Storage) -> bool:
    jobs = await storage.jobs.list(kind=JobKind.VIEW_BACK_TEST)
    return any(job.failure for job in jobs)


async def test_records_behind_the_snapshot_are_not_included(clicks, working, tested, monkeypatch):
    async with working(JOBS):
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, await put_clicks(clicks, *map(click, "aab")))
        begin = clicks.view_scans._rows.begin_back_test

        async def begin_and_append(*args):
            begun = await begin(*args)
            await rows_at(clicks, await put_clicks(clicks, *map(click, "zzz")))
            return begun

        monkeypatch.setattr(clicks.view_scans._rows, "begin_back_test", begin_and_append)
        same = await tested(spec())

    assert differences(same) == (0, 0, 0)
    assert (same.result.is_exact, same.result.records) == (True, 3)


@pytest.mark.parametrize("is_ahead", [False, True])
async def test_reshards_leave_it_exact(is_ahead, clicks, working, tested, monkeypatch):
    """Positions of two readers of the same records differ by the ends of closed shards.

    `is_ahead`: those of the view are in the children already, which have no records.
    """
    begin = clicks.view_scans._rows.begin_back_test

    async def in_open_shards(*args):
        own, snapshot = await begin(*args)
        stream = await clicks.catalog.fresh_stream(CLICKS)
        if is_ahead and len(stream.open_shards) == 3:
            positions = {shard.index: 0 for shard in stream.open_shards}
            snapshot = replace(snapshot, progress=replace(snapshot.progress, positions=positions))
        return own, snapshot

    monkeypatch.setattr(clicks.view_scans._rows, "begin_back_test", in_open_shards)
    async with working(JOBS):
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, await put_clicks(clicks, *map(click, "aab")))
        before = await tested(spec())
        await clicks.streams.resharder.set_shard_count(CLICKS, 3)
        closed = await tested(spec())
        await clicks.streams.resharder.set_shard_count(CLICKS, 1)
        await rows_at(clicks, await put_clicks(clicks, *map(click, "cab")))
        merged = await tested(spec())

    for back_test, records in ((before, 3), (closed, 3), (merged, 6)):
        assert differences(back_test) == (0, 0, 0)
        assert (back_test.result.is_exact, back_test.result.records) == (True, records)


async def test_rows_of_ended_windows_are_final(clicks, working, tested):
    times = [0, 10, 70, 200, 900]
    records = [
        Record(b'{"page":"a"}', key="a", event_time_ms=1_767_225_600_000 + 1_000 * at)
        for at in times
    ]
    final = replace(
        spec(MINUTES, watermark_ms=0), into=(ViewSink(stream="changes", emit=Emit.FINAL),)
    )
    async with working(JOBS):
        await clicks.views.put(VIEW, spec(MINUTES, watermark_ms=0))
        await rows_at(clicks, await put_clicks(clicks, *records))
        done = await tested(final)

    [changes] = done.result.sinks
    rows = [json.loads(message.row) for message in changes.samples]
    assert [row["clicks"] for row in rows] == [2, 1, 1]
    assert differences(done) == (0, 0, 0)


async def test_back_test_that_cannot_be_completed_fails_alone(clicks, working, tested, ended):
    async with working(JOBS):
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, await put_clicks(clicks, *map(click, "abc")))
        large = await tested(replace(spec(UPPER), rows_max=2))
        job_id, test = large.job.job_id, msgspec.convert(large.job.spec, ViewBackTestSpec)
        await clicks.views._rows.end_back_tests()
        with pytest.raises(StorageBusy):
            await clicks.view_scans.begin_back_test(job_id, test)
        await eventually(partial(_is_swept, clicks), True)
        await clicks.jobs.retry(job_id)
        again = await ended(job_id)
        page = await rows_at(clicks, await put_clicks(clicks, click("d")))

    assert large.job.state is JobState.FAILED
    assert large.job.failure == again.failure == "The view would have 3 rows, more than 2."
    assert by_page(page) == {"a": 1, "b": 1, "c": 1, "d": 1}


async def test_refused_back_tests(clicks, working):
    async with working({kind: VIEW_JOBS[kind] for kind in (JobKind.VIEW_PLAN, JobKind.VIEW_SCAN)}):
        await clicks.views.put(VIEW, spec())
        with pytest.raises(ValidationFailed) as other:
            await clicks.view_back_tests.submit(VIEW, spec(stream="changes"))
        refused = replace(spec(), into=(ViewSink(queue="alerts", when="nothing > 1"),))
        with pytest.raises(ValidationFailed) as unknown:
            await clicks.view_back_tests.submit(VIEW, refused)
        first = await clicks.view_back_tests.submit(VIEW, spec(UPPER))
        again = await clicks.view_back_tests.submit(VIEW, spec(UPPER))
        with pytest.raises(JobRefused):
            await clicks.view_back_tests.submit(VIEW, spec())

    assert other.value.faults[0].pointer == "/from/c/stream"
    assert unknown.value.faults[0].pointer == "/into/0/when"
    assert first.job.job_id == again.job.job_id
    assert [one.job.job_id for one in await clicks.view_back_tests.recent(VIEW, 5)] == [
        first.job.job_id
    ]


async def test_back_test_of_a_deleted_view_fails(clicks, working, ended):
    planning = {kind: VIEW_JOBS[kind] for kind in (JobKind.VIEW_PLAN, JobKind.VIEW_SCAN)}
    async with working(planning):
        await clicks.views.put(VIEW, spec())
        submitted = await clicks.view_back_tests.submit(VIEW, spec())
        await clicks.views.delete(VIEW)
    async with working(JOBS):
        job = await ended(submitted.job.job_id)

    assert (job.state, job.failure) == (JobState.FAILED, "The view was deleted.")
