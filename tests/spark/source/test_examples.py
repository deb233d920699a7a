"""The programs of docs/examples, as shown in docs/how-to/spark.md, with a real service."""

import asyncio
import importlib.util
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import ModuleType

import psycopg
import pytest

from spark_worker.main import HANDLERS
from spark_worker.runtime.runner import Runner
from spark_worker.runtime.session_pool import SessionPool
from storage.bootstrap import open_storage
from storage.postgres.database import conninfo
from storage.settings import StorageSettings
from tests.documentation import DOCS, blocks
from tests.spark.shared_session import SparkOfTheRun, worker_settings
from tests.spark.source.conftest import set_active
from tests.spark.source.streams import Stream
from tests.spark.source.test_sink import forget_last_commit
from tests.spark.workers import QUICK

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def dsn(empty_database_url) -> str:
    return conninfo(empty_database_url)


@pytest.fixture
def few_tasks(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["clicks_per_page", "rebuild_totals"])
def test_page_shows_the_tested_program(name):
    shown = [block.text for block in blocks(DOCS / "how-to" / "spark.md") if not block.why]

    assert (DOCS / "examples" / f"{name}.py").read_text() in shown


def put_clicks(stream: Stream, minutes: list[float]) -> list[tuple[datetime, str]]:
    """Append clicks at these minutes after noon, up to five minutes late, and return them."""
    chance = random.Random(len(minutes))
    clicks = [(NOON + timedelta(minutes=at), chance.choice(["/", "/cart"])) for at in minutes]
    records = [
        {"data": {"page": page}, "key": page, "event_time": at.isoformat()} for at, page in clicks
    ]
    stream.http.post(f"/v1/streams/{stream.name}/records", json={"records": records})
    return clicks


def per_window(clicks: list[tuple[datetime, str]]) -> Counter[tuple[datetime, str]]:
    return Counter(
        (
            at - timedelta(minutes=at.minute % 5, seconds=at.second, microseconds=at.microsecond),
            page,
        )
        for at, page in clicks
    )


def test_clicks_are_counted_into_stream_and_postgres(spark, http, url, dsn, tmp_path, few_tasks):
    """In two runs; the last batch of each query is repeated, as after a crash."""
    example = program("clicks_per_page")
    clicks = Stream.made(http, url, "clicks", shards=2)
    counted = Stream.made(http, url, "clicks-per-page", shards=1)
    counts = example.clicks_per_page(spark, url)

    def run() -> None:
        for query in (
            example.into_stream(counts, url, str(tmp_path), availableNow=True),
            example.into_postgres(counts, dsn, str(tmp_path), availableNow=True),
        ):
            query.awaitTermination()

    records = put_clicks(clicks, [nth / 4 - 5 * (nth % 2) for nth in range(80)])
    run()
    for one in ("stream", "postgres"):
        forget_last_commit(tmp_path / one)
    records += put_clicks(clicks, [30 + nth / 4 - 5 * (nth % 2) for nth in range(80)])
    run()

    expected = per_window(records)
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select since, page, clicks from clicks_per_page").fetchall()
    assert {(since, page): count for since, page, count in rows} == expected
    final = [one["data"] for one in counted.records()]
    windows = {
        (datetime.fromisoformat(one["since"]), one["page"]): one["clicks"]
        for one in map(_parsed, final)
    }
    assert len(windows) == len(final)  # each window once
    assert windows.items() <= expected.items()
    last = max(at for at, _ in records) - timedelta(minutes=10)
    assert windows.keys() == {key for key in expected if key[0] + timedelta(minutes=5) <= last}


def _parsed(data):
    return data if isinstance(data, dict) else json.loads(data)


async def test_table_is_rebuilt_by_replay(
    spark, spark_of_the_run, http, url, dsn, settings, tmp_path, few_tasks
):
    example = program("rebuild_totals")
    stream = Stream.made(http, url, "payments", shards=2)
    with psycopg.connect(dsn) as connection:
        connection.execute("create table totals (customer text primary key, cents bigint)")
        connection.execute("insert into totals values ('wrong', 1)")

    def pay(customer: str, kind: str, cents: int) -> None:
        record = {"data": {"kind": kind, "cents": cents}, "key": customer}
        http.post("/v1/streams/payments/records", json={"records": [record]}).raise_for_status()

    def rebuild() -> None:
        set_active(spark)
        query = example.rebuild(spark, url, dsn, str(tmp_path), "fixed", availableNow=True)
        query.awaitTermination()

    pay("ann", "payment", 500)
    pay("bea", "payment", 300)
    await stream.to_archive(settings)
    pay("ann", "refund", 200)
    async with a_worker(spark_of_the_run, settings):
        await asyncio.to_thread(rebuild)
    made = stored_totals(dsn)
    pay("bea", "payment", 50)
    await asyncio.to_thread(rebuild)  # repeated, as after a crash

    assert made == {"ann": 300, "bea": 300}
    assert stored_totals(dsn) == {"ann": 300, "bea": 350}


def stored_totals(dsn: str) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        rows: list[tuple[str, int]] = connection.execute("select * from totals").fetchall()
    return dict(rows)


@asynccontextmanager
async def a_worker(lending: SparkOfTheRun, settings: StorageSettings) -> AsyncIterator[None]:
    """A worker of the service, on the shared session."""
    sparks = SessionPool(lending.lender(settings), jobs_max=1_000_000)
    async with open_storage(settings, limits=QUICK) as storage:
        runner = Runner(
            worker="w",
            storage=storage,
            settings=worker_settings(settings),
            handlers=HANDLERS,
            session_pool=sparks,
            limits=QUICK,
            on_end=lambda *_: None,
        )
        task = asyncio.create_task(runner.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
