"""A job whose worker starts Spark, over a real Postgres."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from api.rest.schemas.job import JobOut
from spark_worker.runtime.job_context import JobContext
from spark_worker.settings import WorkerSettings
from storage.domain.jobs import JobKind, WaitReason
from storage.domain.limits import Limits
from storage.operations.job_waits import wait_reasons
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.one_store

SPARK = SimpleNamespace(
    sparkContext=SimpleNamespace(setJobGroup=lambda *_: None, setLocalProperty=lambda *_: None)
)


class SlowSparks:
    """Sessions that start when they are let."""

    def __init__(self, error: Exception | None = None) -> None:
        self.running = False
        self.go = asyncio.Event()
        self._error = error

    async def get(self) -> Any:
        await self.go.wait()
        if self._error is not None:
            raise self._error
        self.running = True
        return SPARK


async def claimed(engines) -> Any:
    await engines.jobs.submit("default", JobKind.REPLAY, "again", {})
    job = await engines.jobs.claim("w1", [JobKind.REPLAY])
    assert job is not None
    return job


def context(engines, job, sparks) -> JobContext:
    storage = StorageSettings(redis_url="redis://unused", database_url="postgresql://unused")
    return JobContext(job, engines, WorkerSettings(storage=storage), sparks, Limits())


async def reason_of(engines, job) -> WaitReason | None:
    waits = await wait_reasons(engines.presence, await engines.jobs.get(job.job_id))
    return waits.get(job.job_id)


async def until_it_waits(engines, job) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await reason_of(engines, job) is not WaitReason.SPARK:  # noqa: ASYNC110 no event tells
            await asyncio.sleep(0.01)


async def test_job_waits_for_spark_to_start(engines):
    """The first replay waited for a minute, and nothing said what for."""
    job, sparks = await claimed(engines), SlowSparks()
    work = context(engines, job, sparks)
    work.report({"files": 3})

    using = asyncio.create_task(asyncio.to_thread(lambda: work.spark))
    await until_it_waits(engines, job)
    shown = JobOut.of(await engines.jobs.get(job.job_id), WaitReason.SPARK)
    sparks.go.set()
    await using

    assert shown.progress == {"files": 3}
    assert await reason_of(engines, job) is None
    assert (await engines.jobs.get(job.job_id)).progress == {"files": 3}


async def test_wait_ends_when_spark_does_not_start(engines):
    job, sparks = await claimed(engines), SlowSparks(RuntimeError("no memory"))
    work = context(engines, job, sparks)
    sparks.go.set()

    with pytest.raises(RuntimeError):
        await asyncio.to_thread(lambda: work.spark)

    assert await reason_of(engines, job) is None


async def test_running_spark_is_no_wait(engines):
    job, sparks = await claimed(engines), SlowSparks()
    sparks.running = True
    sparks.go.set()
    before = await engines.jobs.get(job.job_id)

    work = context(engines, job, sparks)
    await asyncio.to_thread(lambda: work.spark)

    assert await engines.jobs.get(job.job_id) == before
