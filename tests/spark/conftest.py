"""Spark fixtures: request `sparks` for a Runner or a Work; `working` runs submitted jobs."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg
import pytest

from spark_worker.runtime.job_context import Handler
from spark_worker.runtime.runner import Runner
from spark_worker.runtime.session_pool import SessionPool
from storage.bootstrap import open_storage
from storage.domain import limits as domain_limits
from storage.domain.jobs import JobKind, JobState
from storage.domain.limits import SECOND_MS, Limits
from storage.postgres.database import conninfo
from storage.settings import StorageSettings
from tests.conditions import SPARK_S
from tests.contract.conftest import deployment
from tests.spark.shared_session import SparkOfTheRun, worker_settings
from tests.spark.workers import QUICK


@pytest.fixture(scope="session")
def spark_of_the_run() -> Iterator[SparkOfTheRun]:
    spark = SparkOfTheRun()
    yield spark
    spark.close()


@pytest.fixture(scope="session")
def spark_service(
    postgres_server_url: str, migrated_template: str
) -> Iterator[tuple[str, StorageSettings]]:
    """A service for Spark programs: its URL, and its store settings."""
    with deployment(postgres_server_url, migrated_template, "spark") as actual_deployment:
        yield actual_deployment


@pytest.fixture(autouse=True)
def patient_calls(monkeypatch) -> None:
    """Let calls wait for what a worker computes until Spark has started."""
    monkeypatch.setattr(domain_limits, "VIEW_RESULT_WAIT_MS", SPARK_S * SECOND_MS)


@pytest.fixture
def stores(redis_url, database_url, tmp_path) -> StorageSettings:
    """The stores of a test, with an archive directory of its own."""
    return StorageSettings(
        redis_url=redis_url,
        database_url=database_url,
        archive_url=(tmp_path / "archive").as_uri(),
    )


@pytest.fixture
def sparks(spark_of_the_run, stores) -> SessionPool:
    """The shared Spark session, whose tasks use the test's stores."""
    return SessionPool(spark_of_the_run.lender(stores), jobs_max=1_000_000)


@pytest.fixture
async def storage(stores):
    """Open storage on the test's stores, with short leases and the system clock."""
    async with open_storage(stores, limits=QUICK) as opened:
        yield opened


@pytest.fixture
def heard() -> list[tuple[JobKind, JobState, float, dict[str, int]]]:
    """Every attempt that ended in this process, as reported to the worker's observer."""
    return []


@pytest.fixture
def rewrite(database_url):
    """Execute a statement on the database, bypassing the engines."""

    async def execute(statement: LiteralString, *values: object) -> None:
        async with await psycopg.AsyncConnection.connect(conninfo(database_url)) as connection:
            await connection.execute(statement, values)

    return execute


@pytest.fixture
def working(storage, stores, sparks, heard):
    """A worker in this process, for the length of a block: `async with working(handlers): …`."""

    @asynccontextmanager
    async def run(
        handlers: Mapping[JobKind, Handler], name: str = "w", limits: Limits = QUICK
    ) -> AsyncIterator[Runner]:
        settings = worker_settings(stores)
        runner = Runner(
            worker=name,
            storage=storage,
            settings=settings,
            handlers=handlers,
            session_pool=sparks,
            limits=limits,
            on_end=lambda *end: heard.append(end),
        )
        task = asyncio.create_task(runner.run())
        try:
            yield runner
        finally:
            task.cancel()
            await asyncio.wait([task])

    return run


@pytest.fixture
def ended(storage):
    """Wait until a job is over or in one of the given states, and return it."""

    async def wait(job_id: str, *states, within_s: float = SPARK_S):
        deadline = time.monotonic() + within_s
        while True:
            job = await storage.jobs.get(job_id)
            if job.state in states or (not states and job.state.is_over):
                return job
            assert time.monotonic() < deadline, f"it is {job}"
            await asyncio.sleep(0.05)

    return wait
