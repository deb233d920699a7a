"""Scans: rows of views follow their stream, exactly, and each view on its own."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from spark_worker.main import HANDLERS
from storage.bootstrap import Storage
from storage.domain.errors import ValidationFailed, ViewBehind
from storage.domain.fault_points import arm
from storage.domain.jobs import JobKind, JobSlots
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import Appended, ReadFrom, StreamSpec
from storage.domain.views.rows import IncludedRecord, RowPage, RowQuery
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.sources import SourceMode
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec, ViewTable
from storage.views.engine import ViewStatus
from tests.conditions import SPARK_S, eventually
from tests.spark.workers import worker_process

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
VIEW, OTHER = ViewName("clicks-per-page"), ViewName("other")
COUNT = "select page, count(*) as clicks, sum(ms) as ms from c group by page"
VIEW_JOBS = {kind: HANDLERS[kind] for kind in HANDLERS if kind.slots is JobSlots.VIEWS}


def spec(sql: str = COUNT, **fields: Any) -> ViewSpec:
    columns = {"stream": "clicks", "columns": "page string, ms bigint, at timestamp"}
    return ViewSpec(query=ViewQuery(sql=sql, inputs={"c": ViewInput(**{**columns, **fields})}))


def tracked(spec: ViewSpec) -> ViewSpec:
    return replace(spec, query=replace(spec.query, sources=SourceMode.RANGE))


def click(page: str, ms: int = 1) -> Record:
    return Record(json.dumps({"page": page, "ms": ms}).encode(), key=page)


@pytest.fixture
async def clicks(storage: Storage) -> Storage:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    return storage


async def put_clicks(storage: Storage, *records: Record) -> dict[int, int]:
    """Append records; return the greatest offset of each shard."""
    appended = await storage.streams.append(CLICKS, [*records])
    offsets: dict[int, int] = {}
    for each in appended:
        assert isinstance(each, Appended)
        offsets[each.shard] = max(offsets.get(each.shard, 0), each.offset)
    return offsets


async def rows_at(storage: Storage, offsets: dict[int, int], name: ViewName = VIEW) -> RowPage:
    """Read all rows once they include these records."""
    page = None
    for shard, offset in offsets.items():
        query = RowQuery(includes=IncludedRecord(shard, offset), wait_ms=60_000, limit=1_000)
        page = await storage.view_rows.read(name, query)
    assert page is not None
    return page


def anyone(_: StreamName) -> None:
    """Authorise everybody to read a stream."""


async def until(
    storage: Storage,
    name: ViewName,
    is_met: Callable[[ViewStatus], bool],
    within_s: float = SPARK_S,
) -> None:
    """Wait until the status of a view meets a condition."""
    async with asyncio.timeout(within_s):
        while not is_met(await storage.views.status(name)):  # noqa: ASYNC110  Postgres has no event for it
            await asyncio.sleep(0.05)


def by_page(page: RowPage) -> dict[str, int]:
    return {row["page"]: row["clicks"] for row in map(json.loads, page.rows)}


async def test_rows_include_what_was_appended(clicks, working):
    async with working(VIEW_JOBS):
        first = await put_clicks(clicks, *map(click, "aab"))
        put = await clicks.views.put(VIEW, spec())
        assert put.created
        assert by_page(await rows_at(clicks, first)) == {"a": 2, "b": 1}

        second = await put_clicks(clicks, *map(click, "bcb"))
        page = await rows_at(clicks, second)

    assert by_page(page) == {"a": 2, "b": 3, "c": 1}
    assert page.revision.progress.counts.records == 6
    assert page.revision.progress.rows == 3
    batches = await clicks.views.batches(VIEW, 10)
    assert sum(batch.counts.records for batch in batches) == 6


async def test_history_is_read_in_larger_batches(clicks, working):
    pages = Counter[str]()
    for nth in range(24):
        some = [f"p{(nth * one) % 7}" for one in range(500)]
        pages.update(some)
        offsets = await put_clicks(clicks, *map(click, some))
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec()))
        page = await rows_at(clicks, offsets)
        sources = await clicks.view_sources.read(VIEW, ["p1"], limit=10, authorise=anyone)

    assert by_page(page) == pages
    batches = await clicks.views.batches(VIEW, 10)
    assert [batch.counts.records for batch in batches] == [24 * 500]  # more than a read has
    assert sum(one.records for one in sources.ranges.values()) == pages["p1"]


async def test_read_of_a_record_that_is_not_included_is_refused(clicks, working):
    async with working(VIEW_JOBS):
        offsets = await put_clicks(clicks, click("a"))
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, offsets)
    [(shard, offset)] = offsets.items()

    with pytest.raises(ViewBehind):
        await clicks.view_rows.read(
            VIEW, RowQuery(includes=IncludedRecord(shard, offset + 1), wait_ms=100)
        )


async def test_refused_query_stores_nothing(clicks, working):
    async with working(VIEW_JOBS):
        with pytest.raises(ValidationFailed) as caught:
            await clicks.views.put(VIEW, spec("select reflect('a', 'b') from c"))

    assert caught.value.faults[0].pointer == "/sql"
    assert caught.value.faults[0].code == "sql_refused"
    assert await clicks.views.list_views("default", prefix="", after="", limit=10) == []


async def test_failing_view_stops_and_the_others_go_on(clicks, working):
    failing = ViewName("failing")
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, spec())
        await clicks.views.put(failing, spec("select page, sum(1 / ms) r from c group by page"))
        await rows_at(clicks, await put_clicks(clicks, click("a")))
        await rows_at(clicks, await put_clicks(clicks, click("a")), failing)
        page = await rows_at(clicks, await put_clicks(clicks, click("a", ms=0)))
        await until(clicks, failing, lambda status: bool(status.active.failure))
        status = await clicks.views.status(failing)

    assert by_page(page) == {"a": 3}
    assert "DIVIDE_BY_ZERO" in status.active.failure
    assert status.active.progress.counts.records == 2


async def test_view_starts_at_its_creation_if_asked(clicks, working):
    async with working(VIEW_JOBS):
        await put_clicks(clicks, click("old"))
        await clicks.views.put(VIEW, spec(start=StartAt.LATEST))
        await until(clicks, VIEW, lambda status: status.active.progress.batch > 0)
        page = await rows_at(clicks, await put_clicks(clicks, click("new")))
        await clicks.views.rebuild(VIEW)
        await until(clicks, VIEW, lambda status: status.active.report is not None)
        report = (await clicks.views.status(VIEW)).active.report

    assert by_page(page) == {"new": 1}
    assert report is not None
    assert (report.is_exact, report.records, report.removed) == (True, 1, 0)


async def test_another_query_answers_once_it_has_caught_up(clicks, working):
    other = "select upper(page) as page, count(*) as clicks from c group by 1"
    async with working(VIEW_JOBS):
        offsets = await put_clicks(clicks, *map(click, "ab"))
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, offsets)

        await clicks.views.put(VIEW, spec(other))
        assert by_page(await rows_at(clicks, offsets)).keys() in ({"a", "b"}, {"A", "B"})
        await until(clicks, VIEW, lambda status: status.building is None)
        page = await rows_at(clicks, await put_clicks(clicks, click("b")))

    assert by_page(page) == {"A": 1, "B": 2}
    assert page.revision.number == 2


async def test_paused_view_stands_and_goes_on_where_it_was(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, spec())
        await rows_at(clicks, await put_clicks(clicks, click("a")))
        await clicks.views.pause(VIEW, paused=True)
        offsets = await put_clicks(clicks, click("a"))
        [(shard, offset)] = offsets.items()
        with pytest.raises(ViewBehind):
            await clicks.view_rows.read(
                VIEW, RowQuery(includes=IncludedRecord(shard, offset), wait_ms=3_000)
            )

        await clicks.views.pause(VIEW, paused=False)
        page = await rows_at(clicks, offsets)

    assert by_page(page) == {"a": 2}


async def test_windows_are_deleted_behind_the_watermark(clicks, working):
    sql = "select window(event_time, '1 minute').start s, count(*) clicks from c group by 1"
    kept = replace(spec(sql, watermark_ms=0), keep_ms=120_000)
    start = 1_790_000_000_000 // 60_000 * 60_000
    records = [replace(click("a"), event_time_ms=start + minute * 60_000) for minute in range(10)]
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, kept)
        for record in records:
            page = await rows_at(clicks, await put_clicks(clicks, record))

    assert page.revision.progress.watermark_ms == start + 9 * 60_000
    assert len(page.rows) == page.revision.progress.rows == 3
    late = await put_clicks(clicks, records[0])
    async with working(VIEW_JOBS):
        page = await rows_at(clicks, late)
    assert page.revision.progress.counts.late == 1


USERS = StreamName("users")
JOIN = "select u.plan, count(*) as clicks from c left join u on c.page = u.key group by u.plan"


async def put_user(storage: Storage, name: str, data: bytes) -> None:
    await storage.streams.append(USERS, [Record(data, key=name)])


async def put_join(storage: Storage) -> None:
    tables = {"u": ViewTable(stream=USERS.name, columns="plan string")}
    put = spec(JOIN)
    await storage.catalog.put_stream(USERS, StreamSpec(shards=2))
    await storage.views.put(VIEW, replace(put, query=replace(put.query, tables=tables)))


async def clicks_of_plans(storage: Storage, *pages: str) -> dict[str | None, int]:
    """Click pages; return the clicks of each plan."""
    page = await rows_at(storage, await put_clicks(storage, *map(click, pages)))
    return {row["plan"]: row["clicks"] for row in map(json.loads, page.rows)}


async def test_records_are_joined_with_the_newest_record_of_a_key(clicks, working):
    async with working(VIEW_JOBS):
        await put_join(clicks)
        await put_user(clicks, "ann", b'{"plan": "free"}')
        await put_user(clicks, "bob", b'{"plan": "pro"}')
        first = await clicks_of_plans(clicks, "ann", "bob", "cid")
        await put_user(clicks, "ann", b'{"plan": "pro"}')
        await put_user(clicks, "bob", b"")
        second = await clicks_of_plans(clicks, "ann", "bob")
        progress = (await clicks.views.status(VIEW)).active.progress
    async with working(VIEW_JOBS):  # another worker, which reads the table again
        third = await clicks_of_plans(clicks, "ann", "ann")

    assert first == {"free": 1, "pro": 1, None: 1}
    assert second == {"free": 1, "pro": 2, None: 2}
    assert third == {"free": 1, "pro": 4, None: 2}
    assert sum(progress.tables["u"].values()) == 4


async def test_view_stops_without_its_table_and_goes_on_with_another_one(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(OTHER, spec())
        await put_join(clicks)
        await put_user(clicks, "ann", b'{"plan": "free"}')
        await clicks_of_plans(clicks, "ann")
        await clicks.catalog.delete_stream(USERS)
        offsets = await put_clicks(clicks, click("ann"))
        assert by_page(await rows_at(clicks, offsets, OTHER)) == {"ann": 2}
        await until(clicks, VIEW, lambda status: status.active.is_stopped)
        failure = (await clicks.views.status(VIEW)).active.failure
        await clicks.catalog.put_stream(USERS, StreamSpec())
        await clicks.views.pause(VIEW, paused=False)
        rows = await clicks_of_plans(clicks, "ann")

    assert "'users' of a table was deleted" in failure
    assert rows == {"free": 1, None: 2}


FAULTS = ("view.read", "view.computed", "view.committed", "view.sent")
CHANGES, TOTALS = StreamName("click-changes"), StreamName("click-totals")


async def has_failed(storage: Storage) -> bool:
    """Return whether an attempt of the scan has failed, or a call to a sink."""
    job = await storage.jobs.open_of("default", JobKind.VIEW_SCAN, CLICKS.name)
    sinks = (await storage.views.status(VIEW)).sinks
    return (job is not None and job.failures > 0) or any(sink.failure for sink in sinks)


class Clicks:
    """Random clicks that a test appends, and what is expected of them."""

    def __init__(self, storage: Storage, seed: str) -> None:
        self._storage = storage
        self._random = Random(seed)
        self.expected = Counter[str]()
        self.offsets: dict[int, int] = {}

    async def put(self) -> None:
        pages = [self._random.choice("abcdef") for _ in range(50)]
        self.expected.update(pages)
        self.offsets.update(await put_clicks(self._storage, *map(click, pages)))


async def check_sources(storage: Storage, clicks: dict[str, int]) -> None:
    """Check that the sources of rows are their records, and that the ranges are tight."""
    for page, count in [*clicks.items()][:2]:  # each takes a job
        sources = await storage.view_sources.read(VIEW, [page], limit=1_000, authorise=anyone)
        places = [(shard, one.offset) for shard, one in sources.records]
        assert {json.loads(one.record.data)["page"] for _, one in sources.records} == {page}
        assert places == sorted({*places})
        assert sum(one.records for one in sources.ranges.values()) == len(places) == count
        for shard, one in sources.ranges.items():
            offsets = [offset for at, offset in places if at == shard]
            assert (one.first, one.last, one.records) == (offsets[0], offsets[-1], len(offsets))


async def messages_of(storage: Storage, name: StreamName) -> list[Any]:
    page = await storage.record_reader.read_shard(name, 0, ReadFrom(offset=0))
    return [json.loads(one.record.data) for one in page.records]


async def summed(storage: Storage) -> dict[str, int]:
    """Apply the changes that a sink got, each to the row that the one before it left."""
    rows: dict[str, Any] = {}
    for message in await messages_of(storage, CHANGES):
        page = (message["row"] or message["before"])["page"]
        assert rows.get(page) == message["before"]
        rows[page] = message["row"]
    return {page: row["clicks"] for page, row in rows.items() if row is not None}


async def has_sent_all(storage: Storage) -> bool:
    return not any(sink.pending for sink in (await storage.views.status(VIEW)).sinks)


@pytest.mark.parametrize("point", FAULTS)
async def test_rows_are_exact_when_a_batch_is_interrupted(point, clicks, working):
    some = Clicks(clicks, point)
    await clicks.catalog.put_stream(CHANGES, StreamSpec())
    async with working(VIEW_JOBS):
        with_sink = replace(tracked(spec()), into=(ViewSink(stream=CHANGES.name),))
        await clicks.views.put(VIEW, with_sink)
        await rows_at(clicks, await put_clicks(clicks, click("first")))
        arm(f"{point}:raise")
        try:
            await some.put()
            await eventually(partial(has_failed, clicks), True)
        finally:
            arm("")
        page = await rows_at(clicks, some.offsets)

        await eventually(partial(has_sent_all, clicks), True)
        await check_sources(clicks, by_page(page))

    assert by_page(page) == some.expected | {"first": 1} == await summed(clicks)
    assert page.revision.progress.counts.records == 51


SESSIONS = "select page, session_window(event_time, '20 seconds').start since, count(*) clicks from c group by page, session_window(event_time, '20 seconds')"


def sessions_of(clicks: list[tuple[str, int]]) -> Counter[tuple[str, int]]:
    """Return the clicks of each session: its page, and the second at which it starts."""
    sessions, start, end, page = Counter[tuple[str, int]](), 0, 0, ""
    for own, second in sorted(clicks):
        if own != page or second > end:
            page, start = own, second
        end = second + 20
        sessions[page, start] += 1
    return sessions


@pytest.mark.parametrize("point", ["view.computed", "view.committed"])
async def test_sessions_are_exact_when_a_batch_is_interrupted(point, clicks, working):
    random, every, offsets = Random(point), list[tuple[str, int]](), dict[int, int]()
    await clicks.catalog.put_stream(CHANGES, StreamSpec())

    async def put_some() -> None:
        some = [(random.choice("ab"), random.randrange(2_000)) for _ in range(40)]
        records = [replace(click(page), event_time_ms=1_000 * second) for page, second in some]
        offsets.update(await put_clicks(clicks, *records))
        every.extend(some)

    async with working(VIEW_JOBS):
        sink = ViewSink(stream=CHANGES.name)
        await clicks.views.put(VIEW, replace(spec(SESSIONS), into=(sink,)))
        await put_some()
        await rows_at(clicks, offsets)
        arm(f"{point}:raise")
        try:
            await put_some()
            await eventually(partial(has_failed, clicks), True)
        finally:
            arm("")
        await put_some()
        page = await rows_at(clicks, offsets)
        await eventually(partial(has_sent_all, clicks), True)

    rows = {(row["page"], row["since"]): row["clicks"] for row in map(json.loads, page.rows)}
    expected = {
        (page, datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")): number
        for (page, start), number in sessions_of(every).items()
    }
    assert rows == expected
    folded: dict[Any, Any] = {}
    for message in await messages_of(clicks, CHANGES):
        shown = message["row"] or message["before"]
        assert folded.get((shown["page"], shown["since"])) == message["before"]
        folded[shown["page"], shown["since"]] = message["row"]
    assert {key: row["clicks"] for key, row in folded.items() if row} == expected
    assert page.revision.progress.counts.records == len(every)
    assert page.revision.progress.rows == len(expected)


async def test_sessions_grow_and_join(clicks, working):
    await clicks.catalog.put_stream(CHANGES, StreamSpec())

    def at(page: str, *seconds: int) -> list[Record]:
        return [replace(click(page), event_time_ms=1_000 * one) for one in seconds]

    async with working(VIEW_JOBS):
        sink = ViewSink(stream=CHANGES.name)
        await clicks.views.put(VIEW, replace(tracked(spec(SESSIONS)), into=(sink,)))
        await rows_at(clicks, await put_clicks(clicks, *at("a", 0, 30), *at("b", 5, 5)))
        page = await rows_at(clicks, await put_clicks(clicks, *at("a", 15), *at("b", 60)))
        start = "1970-01-01T00:00:00Z"
        sources = await clicks.view_sources.read(VIEW, ["a", start], authorise=anyone)
        await eventually(partial(has_sent_all, clicks), True)

    rows = [(row["page"], row["since"][17:19], row["clicks"]) for row in map(json.loads, page.rows)]
    assert rows == [("a", "00", 3), ("b", "05", 2), ("b", "00", 1)]  # the last one a minute later
    assert sum(one.records for one in sources.ranges.values()) == len(sources.records) == 3
    changed = [
        (one["change"], (one["row"] or one["before"])["clicks"])
        for one in await messages_of(clicks, CHANGES)
        if (one["row"] or one["before"])["page"] == "a"
    ]
    assert sorted(changed[:2]) == [("insert", 1), ("insert", 1)]
    assert changed[2:] == [("delete", 1), ("delete", 1), ("insert", 3)]


async def test_last_windows_are_final_while_the_stream_is_idle(clicks, working):
    sql = (
        "select window(event_time, '1 second').start s, page, count(*) clicks from c group by 1, 2"
    )
    await clicks.catalog.put_stream(TOTALS, StreamSpec())
    final = ViewSink(stream=TOTALS.name, emit=Emit.FINAL)
    put = replace(spec(sql, watermark_ms=1_000, idle_ms=1_000), into=(final,), keep_ms=2_000)
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, put)
        await rows_at(clicks, await put_clicks(clicks, *map(click, "aab")))
        await until(clicks, VIEW, lambda status: status.active.progress.rows == 0)
        before = (await clicks.views.status(VIEW)).active.progress
        await asyncio.sleep(3)
        after = (await clicks.views.status(VIEW)).active.progress

    totals = await messages_of(clicks, TOTALS)
    assert {(one["change"], one["row"]["page"]) for one in totals} == {
        ("final", "a"),
        ("final", "b"),
    }
    assert sum(one["row"]["clicks"] for one in totals) == 3
    assert before == after  # no window is left that could end


@pytest.mark.parametrize("point", ["view.computed", "view.sent"])
async def test_rows_are_exact_when_the_worker_is_killed(point, clicks, working, stores, tmp_path):
    some, fault = Clicks(clicks, "kill"), f"{point}:kill"
    await clicks.catalog.put_stream(CHANGES, StreamSpec())
    async with working({JobKind.VIEW_PLAN: HANDLERS[JobKind.VIEW_PLAN]}):
        await some.put()
        with_sink = replace(tracked(spec()), into=(ViewSink(stream=CHANGES.name),))
        await clicks.views.put(VIEW, with_sink)
    with worker_process(stores, tmp_path / "log", "real", MILLSTREAM_FAULT=fault) as worker:
        await some.put()
        await asyncio.to_thread(worker.wait, 120)
    await some.put()
    async with working(VIEW_JOBS):
        page = await rows_at(clicks, some.offsets)
        await eventually(partial(has_sent_all, clicks), True)
        await check_sources(clicks, by_page(page))

    assert by_page(page) == some.expected == await summed(clicks)
    assert page.revision.progress.counts.records == 150
