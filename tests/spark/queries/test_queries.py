"""Queries over streams, tables and views on Spark, against a recomputation."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from api.rest.schemas.query import QueryConfig
from spark_worker.main import HANDLERS
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import (
    JobNotFound,
    MillstreamError,
    QueryFailed,
    StorageBusy,
    ValidationFailed,
)
from storage.domain.jobs import Job, JobKind, JobState, WaitReason
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName, ViewName
from storage.domain.queries.query import QueryStream, SqlQuery
from storage.domain.queries.result import QueryResult
from storage.domain.streams.stream import StreamSpec, Tier
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec, ViewTable
from storage.queries.engine import Query, failure_of
from tests.conditions import PATIENCE_S, SPARK_S, eventually
from tests.documentation import DOCS, blocks
from tests.tiered_stream import move_to_archive

pytestmark = pytest.mark.one_store

CLICKS, USERS = StreamName("clicks"), StreamName("users")
QUERY_JOBS = {
    kind: HANDLERS[kind] for kind in (JobKind.QUERY, JobKind.VIEW_PLAN, JobKind.VIEW_SCAN)
}
C = QueryStream(stream="clicks", columns="page string, person string, ms bigint")
SLOW = "select count(*) as n from c x join c y on x.page = y.page join c z on y.page = z.page where x.ms + y.ms <> z.ms"
COUNT = "select page, count(*) as clicks, sum(ms) as ms from c group by page order by page"


def query(sql: str, **fields: Any) -> SqlQuery:
    return SqlQuery(**{"sql": sql, "streams": {"c": C}, **fields})


def click(nth: int) -> Record:
    data = {"page": f"/{nth % 7}", "person": f"u{nth % 5}", "ms": nth}
    return Record(json.dumps(data).encode(), key=f"u{nth % 5}")


def user(name: str, plan: str | None) -> Record:
    return Record(b"null" if plan is None else json.dumps({"plan": plan}).encode(), key=name)


def counted(numbers: Iterable[int]) -> list[dict[str, Any]]:
    """Return the rows of COUNT over the clicks with these numbers."""
    clicks, ms = Counter[str](), Counter[str]()
    for nth in numbers:
        clicks[f"/{nth % 7}"] += 1
        ms[f"/{nth % 7}"] += nth
    return [{"page": page, "clicks": clicks[page], "ms": ms[page]} for page in sorted(clicks)]


async def append(storage: Storage, name: StreamName, records: list[Record]) -> None:
    for first in range(0, len(records), 500):
        await storage.streams.append(name, records[first : first + 500])


@pytest.fixture
async def clicks(storage: Storage) -> Storage:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.catalog.put_stream(USERS, StreamSpec(shards=2))
    return storage


def result_of(query: Query) -> QueryResult:
    assert query.result is not None, query.job
    return query.result


def rows_of(query: Query) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(bytes(result_of(query).rows))
    return rows


async def _records_in(storage: Storage, view: ViewName) -> int:
    return (await storage.views.status(view)).active.progress.counts.records


async def answer(storage: Storage, query: SqlQuery) -> Query:
    """Run a query until it is done, however long Spark takes to start."""
    submitted = await storage.queries.submit("default", query)
    return await until_over(storage, submitted.job)


async def until_over(storage: Storage, job: Job) -> Query:
    async with asyncio.timeout(SPARK_S):
        while not (await storage.jobs.get(job.job_id)).state.is_over:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return await storage.queries.get("default", job.job_id)


async def refusal(storage: Storage, query: SqlQuery) -> MillstreamError:
    """Run a query until it fails. A call returns before that while a worker has no time for it."""
    try:
        open_ = await storage.queries.run("default", query)
    except MillstreamError as error:
        return error
    return failure_of((await until_over(storage, open_.job)).job)


async def test_rows_state_the_positions_that_they_include(clicks, working):
    await append(clicks, CLICKS, [*map(click, range(100))])
    async with working(QUERY_JOBS):
        done = await answer(clicks, query(COUNT))
        await append(clicks, CLICKS, [*map(click, range(100, 130))])
        again = await answer(clicks, query(COUNT))

    assert rows_of(done) == counted(range(100))
    assert rows_of(again) == counted(range(130))
    read = result_of(done).read["c"]
    assert (sum(read.positions.values()), read.records) == (100, 100)
    columns = [(column.name, column.type) for column in result_of(done).columns]
    assert columns == [("page", "string"), ("clicks", "bigint"), ("ms", "bigint")]


async def test_archived_and_hot_records_are_one_history(clicks, stores, working, monkeypatch):
    """Those that only the archive has, and later ones, each once, by the process and by tasks."""
    spec = StreamSpec(shards=2, hot_retention_ms=0)
    await clicks.catalog.put_stream(CLICKS, spec)
    await append(clicks, CLICKS, [*map(click, range(1_500))])
    await move_to_archive(clicks, stores)
    await append(clicks, CLICKS, [*map(click, range(1_500, 2_000))])
    oldest = await clicks.arrow_reader.read(CLICKS, 0, offset=0, end=1, bytes_max=1)
    async with working(QUERY_JOBS):
        here = await answer(clicks, query(COUNT))
        monkeypatch.setattr(limits, "QUERY_SMALL_RECORDS", 0)
        monkeypatch.setattr(limits, "QUERY_PIECE_RECORDS", 300)
        in_tasks = await answer(clicks, query(COUNT))

    assert oldest.tier is Tier.ARCHIVE
    assert rows_of(here) == rows_of(in_tasks) == counted(range(2_000))


@pytest.mark.parametrize("small", [0, 20_000], ids=["tasks", "here"])
async def test_streams_are_joined_with_one_another_and_with_tables(
    clicks, working, monkeypatch, small
):
    monkeypatch.setattr(limits, "QUERY_SMALL_RECORDS", small)
    await append(clicks, CLICKS, [*map(click, range(50))])
    users = [user("u0", "free"), user("u1", "pro"), user("u0", "pro"), user("u2", "pro")]
    await append(clicks, USERS, [*users, user("u2", None), Record(b'{"plan": "x"}')])
    sql = (
        "select u.plan, count(*) as clicks, max(h.plans) as plans from c join u on c.person = u.key "
        "join (select key, count(plan) as plans from h group by key) h on h.key = u.key "
        "group by u.plan order by 1"
    )
    async with working(QUERY_JOBS):
        done = await answer(
            clicks,
            query(
                sql,
                streams={"c": C, "h": QueryStream(stream="users", columns="plan string")},
                tables={"u": ViewTable(stream="users", columns="plan string")},
            ),
        )

    assert rows_of(done) == [{"plan": "pro", "clicks": 20, "plans": 2}]
    assert {name: read.records for name, read in result_of(done).read.items()} == {
        "c": 50,
        "h": 6,
        "u": 6,
    }


async def test_rows_of_a_view_are_joined_with_a_stream(clicks, working):
    view = ViewName("clicks-per-page")
    inputs = {"c": ViewInput(stream="clicks", columns="page string, at timestamp, ms bigint")}
    sql = "select page, count(*) as clicks, avg(ms) as ms, max(at) as at, max(struct(ms as m)) as s from c group by page"
    async with working(QUERY_JOBS):
        await append(clicks, CLICKS, [*map(click, range(70))])
        await clicks.views.put(view, ViewSpec(query=ViewQuery(sql=sql, inputs=inputs)))
        await eventually(partial(_records_in, clicks, view), 70)
        done = await answer(
            clicks,
            query(
                "select v.page, max(v.clicks) as n, count(*) as m, max(v.s.m) as s, max(v.at) as at from v "
                "join c using (page) group by v.page order by v.page limit 2",
                views={"v": view.name},
            ),
        )

    assert rows_of(done) == [
        {"page": "/0", "n": 10, "m": 10, "s": 63, "at": None},
        {"page": "/1", "n": 10, "m": 10, "s": 64, "at": None},
    ]
    read = result_of(done).read["v"]
    assert (read.revision, read.records, sum(read.positions.values())) == (1, 7, 70)
    assert read.batch is not None
    assert read.batch >= 1


async def test_order_limit_and_window_functions_are_answered(clicks, working):
    await append(clicks, CLICKS, [*map(click, range(40))])
    sql = (
        "select page, ms, row_number() over (partition by page order by ms desc) as nth from c "
        "order by nth, page desc limit 3 offset 1"
    )
    async with working(QUERY_JOBS):
        done = await answer(clicks, query(sql))

    assert rows_of(done) == [
        {"page": "/5", "ms": 33, "nth": 1},
        {"page": "/4", "ms": 39, "nth": 1},
        {"page": "/3", "ms": 38, "nth": 1},
    ]


async def test_rows_beyond_the_limits_are_left_out(clicks, working, monkeypatch):
    await append(clicks, CLICKS, [*map(click, range(40))])
    async with working(QUERY_JOBS):
        few = await answer(clicks, query("select ms from c order by ms", rows_max=3))
        exact = await answer(clicks, query("select ms from c where ms < 3", rows_max=3))
        monkeypatch.setattr(limits, "QUERY_RESULT_BYTES_MAX", 35)
        large = await answer(clicks, query("select ms from c order by ms"))

    assert (rows_of(few), result_of(few).truncated) == ([{"ms": 0}, {"ms": 1}, {"ms": 2}], True)
    assert (len(rows_of(exact)), result_of(exact).truncated) == (3, False)
    assert (rows_of(large), result_of(large).truncated) == ([{"ms": nth} for nth in range(4)], True)


async def test_refused_query_has_line_and_column(clicks, working):
    async with working(QUERY_JOBS):
        await answer(clicks, query("select ms from c"))  # Spark runs
        fence = await refusal(clicks, query("select\n  reflect('a', 'b') from c"))
        memory = await refusal(clicks, query("select collect_list(page) as p from c"))
        name = await refusal(clicks, query("select nothing from c"))
        twice = await refusal(clicks, query("select page, page from c"))
        columns = await refusal(
            clicks, query("select 1 as a from c", streams={"c": replace(C, columns="page strin")})
        )
        await append(clicks, CLICKS, [click(1)])
        zero = await refusal(clicks, query("select 1 / (ms - ms) as a from c"))

    for error, pointer, text in (
        (fence, "/sql", "Line 2, column 3: the function reflect is not allowed"),
        (memory, "/sql", "the function collect_list is not allowed. It has the values of a group"),
        (name, "/sql", "Line 1, column 8: A column, variable, or function parameter"),
        (twice, "/sql", "a result with two columns 'page'. Name the columns"),
        (columns, "/from/c/columns", "Write columns as Spark DDL"),
    ):
        assert isinstance(error, ValidationFailed)
        [fault] = error.faults
        assert (fault.pointer, fault.code) == (pointer, "sql_refused")
        assert text in fault.detail
    assert isinstance(zero, QueryFailed)
    assert "Division by zero" in zero.detail


async def test_query_ends_at_its_time_limit(clicks, working):
    await append(clicks, CLICKS, [*map(click, range(3_000))])
    async with working(QUERY_JOBS):
        await answer(clicks, query("select ms from c limit 1"))  # Spark runs
        error = await refusal(clicks, query(SLOW, time_limit_ms=1_500))
        after = await answer(clicks, query("select count(*) as n from c"))

    assert isinstance(error, QueryFailed)
    assert error.detail == "The query took longer than 1.5 seconds."
    assert rows_of(after) == [{"n": 3_000}]


async def test_cancelled_query_gives_its_place_back(clicks, working, ended):
    await append(clicks, CLICKS, [*map(click, range(3_000))])
    async with working(QUERY_JOBS):
        slow = await clicks.queries.submit("default", query(SLOW))
        await ended(slow.job.job_id, JobState.RUNNING)
        await clicks.queries.cancel("default", slow.job.job_id)
        job = await ended(slow.job.job_id, within_s=PATIENCE_S)
        after = await answer(clicks, query("select count(*) as n from c"))

    assert job.state is JobState.CANCELLED
    assert rows_of(after) == [{"n": 3_000}]
    unchanged = await clicks.queries.cancel("default", after.job.job_id)
    assert (unchanged.job.state, rows_of(unchanged)) == (JobState.DONE, [{"n": 3_000}])


@pytest.mark.parametrize("small", [0, 20_000], ids=["tasks", "here"])
async def test_query_over_records_that_are_gone_fails(clicks, working, ended, monkeypatch, small):
    """A query that leaves records out would be wrong without anybody seeing it."""
    monkeypatch.setattr(limits, "QUERY_SMALL_RECORDS", small)
    await append(clicks, CLICKS, [*map(click, range(30))])
    submitted = await clicks.queries.submit("default", query(COUNT))
    await clicks.catalog.delete_stream(CLICKS)
    await clicks.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    async with working(QUERY_JOBS):
        job = await ended(submitted.job.job_id)

    assert job.state is JobState.FAILED
    assert "The stream 'clicks' was deleted." in job.failure


async def test_query_is_checked_when_it_is_submitted(clicks):
    missing = replace(C, stream="other")
    for changed, pointer in (
        (query(COUNT, streams={"c": missing}), "/from/c/stream"),
        (query(COUNT, tables={"u": ViewTable(stream="other")}), "/from/u/table"),
        (query(COUNT, views={"v": "other"}), "/from/v/view"),
        (query(COUNT, rows_max=0), "/rows_max"),
        (query(COUNT, time_limit_ms=1), "/seconds_max"),
        (query(COUNT, streams={}), "/from"),
    ):
        error = await refusal(clicks, changed)
        assert isinstance(error, ValidationFailed)
        assert error.faults[0].pointer == pointer


async def test_open_queries_of_a_namespace_are_limited(clicks, monkeypatch):
    monkeypatch.setattr(limits, "QUERIES_OPEN_MAX", 1)
    waiting = await clicks.queries.submit("default", query(COUNT))
    error = await refusal(clicks, query(COUNT))
    await clicks.queries.cancel("default", waiting.job.job_id)
    await clicks.queries.submit("default", query(COUNT))

    assert isinstance(error, StorageBusy)
    assert error.detail == "1 queries of the namespace are open; nothing happened."


async def test_query_without_a_worker_is_answered_soon(clicks):
    waiting = await clicks.queries.run("default", query(COUNT))

    assert (waiting.job.state, waiting.waiting_for) == (JobState.QUEUED, WaitReason.WORKER)
    assert waiting.result is None


async def test_ended_queries_are_deleted_after_a_day(clicks, working, rewrite):
    async with working(QUERY_JOBS):
        done = await answer(clicks, query("select ms from c"))
    await rewrite("update jobs set ended_at_ms = ended_at_ms - 25 * 3600 * 1000")

    assert await clicks.jobs.delete_old() == 1
    with pytest.raises(JobNotFound):
        await clicks.queries.get("default", done.job.job_id)


async def test_queries_of_the_guide_are_accepted(clicks, working):
    """The guide's requests, over streams that have its names."""
    for name in ("shop-visits", "shop-errors", "shop-users"):
        await clicks.catalog.put_stream(StreamName(name), StreamSpec(shards=2))
    await append(clicks, StreamName("shop-visits"), [Record(b'{"person": "u1", "page": "/"}')])
    await append(clicks, StreamName("shop-users"), [user("u1", "pro")])
    texts = [block.text for block in blocks(DOCS / "how-to" / "queries.md")]
    requests = [json.loads(text) for text in texts if '"sql"' in text and text.startswith("{")]
    async with working(QUERY_JOBS):
        answers = [
            await answer(clicks, QueryConfig.model_validate(one).to_domain()) for one in requests
        ]

    assert len(answers) == 2
    assert [len(rows_of(done)) for done in answers] == [0, 1]
