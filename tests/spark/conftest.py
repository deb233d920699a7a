"""Spark for tests. Ask for `sparks` to give it to a Runner or a Work; `run_jobs` does what is submitted."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg
import pytest

from spark_worker.runtime.job_context import Handler
from spark_worker.runtime.runner import Runner
from spark_worker.runtime.session_pool import SharedSpark
from storage.bootstrap import open_storage
from storage.domain.jobs import JobKind, JobState
from storage.postgres.database import conninfo
from storage.settings import StorageSettings
from tests.contract.conftest import deployment
from tests.spark.lending import SparkOfTheRun, worker_settings
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
    """A service that Spark programs talk to: its URL, and where its stores are."""
    with deployment(postgres_server_url, migrated_template, "spark") as found:
        yield found


@pytest.fixture
def stores(redis_url, database_url, tmp_path) -> StorageSettings:
    """The stores of a test, with an archive in a directory of its own."""
    return StorageSettings(
        redis_url=redis_url,
        database_url=database_url,
        archive_url=(tmp_path / "archive").as_uri(),
    )


@pytest.fixture
def sparks(spark_of_the_run, stores) -> SharedSpark:
    """The run's Spark, whose tasks use the test's stores."""
    return SharedSpark(spark_of_the_run.lender(stores), jobs_max=1_000_000)


@pytest.fixture
async def storage(stores):
    """The engines on the test's stores, with quick leases and the machine's clock."""
    async with open_storage(stores, limits=QUICK) as opened:
        yield opened


@pytest.fixture
def heard() -> list[tuple[JobKind, JobState, float, dict[str, int]]]:
    """Every attempt that ended in this process, as a worker's observer hears of it."""
    return []


@pytest.fixture
def rewrite(database_url):
    """Change what the database says, behind everybody's back."""

    async def execute(statement: LiteralString, *values: object) -> None:
        async with await psycopg.AsyncConnection.connect(conninfo(database_url)) as connection:
            await connection.execute(statement, values)

    return execute


@pytest.fixture
def working(storage, stores, sparks, heard):
    """A worker in this process, for the length of a block: `async with working(handlers): …`."""

    @asynccontextmanager
    async def run(handlers: Mapping[JobKind, Handler], name: str = "w") -> AsyncIterator[Runner]:
        settings = worker_settings(stores)
        runner = Runner(
            name, storage, settings, handlers, sparks, QUICK, lambda *end: heard.append(end)
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
    """Waits until a job is over, or in one of the states that are named, and gives it."""

    async def wait(job_id: str, *states, within_s: float = 180):
        deadline = time.monotonic() + within_s
        while True:
            job = await storage.jobs.get(job_id)
            if job.state in states or (not states and job.state.is_over):
                return job
            assert time.monotonic() < deadline, f"it is {job}"
            await asyncio.sleep(0.05)

    return wait
