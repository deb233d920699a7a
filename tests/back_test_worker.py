"""Worker of back-tests for a deployment of the tests, without Spark."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

from spark_worker.main import HANDLERS
from spark_worker.runtime.runner import Runner
from spark_worker.runtime.session_pool import SessionPool
from spark_worker.settings import WorkerSettings
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain.jobs import JobKind
from storage.settings import StorageSettings
from tests.spark.workers import QUICK


async def _refuse() -> NoReturn:
    raise AssertionError("Spark was started")


@asynccontextmanager
async def back_test_worker(settings: StorageSettings) -> AsyncIterator[None]:
    """Run small back-tests for the length of the block."""
    async with open_storage(settings, limits=QUICK) as storage:
        runner = Runner(
            worker="w",
            storage=storage,
            settings=WorkerSettings(storage=settings),
            handlers={JobKind.BACK_TEST: HANDLERS[JobKind.BACK_TEST]},
            session_pool=SessionPool(_refuse, jobs_max=1_000),
            limits=QUICK,
        )
        task = asyncio.create_task(runner.run())
        try:
            yield
        finally:
            await end(task)
