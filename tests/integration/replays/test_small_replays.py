"""Small replays in the worker's process: no Spark, no queue behind long ones, and R1 when killed."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from spark_worker.main import HANDLERS
from spark_worker.runtime.job_context import JobContext
from spark_worker.runtime.requirements import SparkRequirement
from spark_worker.runtime.runner import Runner
from spark_worker.runtime.session_pool import SessionPool
from spark_worker.settings import WorkerSettings
from storage.bootstrap import open_storage
from storage.domain.jobs import WAITING_FOR, JobKind, JobState
from storage.domain.log.address import LogAddress
from storage.domain.replays.pacing import Pacing
from storage.domain.replays.replay import Order, Target
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.replay_steps import (
    KEYS,
    TARGET,
    WORK,
    bodies,
    create_source_and_targets,
    everything,
    fill,
    replay_request,
)
from tests.spark.workers import QUICK, worker_process

pytestmark = pytest.mark.one_store

SLOW = Pacing(records_per_second=20)
COUNT = 300


@pytest.fixture(autouse=True)
def _frequent_saves(monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)


@pytest.fixture
def stores(redis_url, database_url, tmp_path) -> StorageSettings:
    return StorageSettings(redis_url=redis_url, database_url=database_url)


@pytest.fixture
async def storage(stores):
    async with open_storage(stores, limits=QUICK) as opened:
        await create_source_and_targets(opened)
        yield opened


@pytest.fixture
def working(storage, stores):
    """A worker in this process whose Spark must not be used."""

    async def refuse():
        raise AssertionError("Spark was started")

    @asynccontextmanager
    async def run(
        limits=QUICK,
        spark: SparkRequirement | None = None,
        handlers=HANDLERS,
        sparks: SessionPool | None = None,
    ) -> AsyncIterator[None]:
        runner = Runner(
            worker="w",
            storage=storage,
            settings=WorkerSettings(storage=stores),
            handlers=handlers,
            session_pool=sparks or SessionPool(refuse, jobs_max=1_000),
            limits=limits,
            spark=spark or SparkRequirement(),
        )
        task = asyncio.create_task(runner.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    return run


async def state_of(storage, replay_id: str) -> Any:
    return (await storage.replays.get("default", replay_id)).job.state


async def is_done(storage, replay_id: str) -> None:
    async def reading() -> Any:
        job = (await storage.replays.get("default", replay_id)).job
        return job.state, job.failure

    await eventually(reading, (JobState.DONE, ""))


async def sent_by(storage, replay_id: str) -> int:
    return sum(part.sent for part in (await storage.replays.get("default", replay_id)).parts)


async def begins(storage, replay_id: str) -> None:
    async def has_begun() -> bool:
        return bool(await sent_by(storage, replay_id))

    await eventually(has_begun, True)


def check(found, records) -> None:
    assert Counter(bodies(found)) == Counter(one.data for one in records)


@pytest.mark.parametrize("order", list(Order))
async def test_small_replay_is_sent_without_spark(storage, working, order):
    records = await fill(storage, COUNT)
    await storage.replays.submit("default", replay_request(order=order, max_records=COUNT), "r")

    async with working():
        await is_done(storage, "r")

    check(await everything(storage), records)
    replay = await storage.replays.get("default", "r")
    assert (replay.job.progress["sent"], replay.job.attempt) == (COUNT, 1)
    stream = await storage.catalog.stream(TARGET)
    for shard in stream.shards:
        log = LogAddress("default", shard.log_id)
        has_producers, _ = await storage.streams._idempotent_appender.writer_state(log)
        assert not has_producers


async def test_small_replay_to_queue_is_sent_without_spark(storage, working):
    await fill(storage, COUNT)
    await storage.replays.submit("default", replay_request(target=Target(queue="work")), "r")

    async with working():
        await is_done(storage, "r")

    assert (await storage.queues.stats(WORK)).sent == COUNT


async def test_small_replay_runs_beside_long_ones(storage, working):
    """Two slow replays had both places, and everything else stayed queued for hours."""
    records = await fill(storage, COUNT)
    slow = replay_request(target=Target(queue="work"), pacing=SLOW)
    for name in ("slow", "slow-too"):
        await storage.replays.submit("default", slow, name)

    async def waiting() -> Any:
        found = [(await storage.replays.get("default", name)).job for name in ("slow", "next")]
        return [job.progress.get(WAITING_FOR) for job in found]

    async with working():
        await begins(storage, "slow")
        await begins(storage, "slow-too")
        await storage.replays.submit("default", slow, "next")
        await eventually(waiting, [None, "capacity"])
        await storage.replays.submit("default", replay_request(), "r")
        await is_done(storage, "r")
        assert await state_of(storage, "slow") is JobState.RUNNING

        await storage.replays.cancel("default", "slow")
        await begins(storage, "next")

    check(await everything(storage), records)


async def test_large_replay_waits_until_spark_can_run(storage, working):
    await fill(storage, COUNT)
    await storage.replays.submit("default", replay_request(), "r")
    spark = SparkRequirement(awaited=True)
    spark._next_check = float("inf")  # it is not looked for

    async def waiting() -> Any:
        job = (await storage.replays.get("default", "r")).job
        return job.progress.get(WAITING_FOR)

    async with working(replace(QUICK, replay_small_records=COUNT), spark):
        await eventually(waiting, "spark")
        await storage.replays.submit("default", replay_request(shards=(0,)), "small")
        await is_done(storage, "small")


async def test_small_replay_runs_while_worn_session_is_in_use(storage, working):
    """A job that ran for days kept everything from starting once the session was worn."""
    session = SimpleNamespace(alive=True, jvm_pid=0, close=lambda: None, cancel=lambda _: None)
    sparks = SessionPool(pytest.fail, jobs_max=1)
    sparks._session = session  # type: ignore[assignment]  # of which nothing is used

    def use_spark(work: JobContext) -> None:
        work.used_spark = True
        work.sleep(60)

    await fill(storage, COUNT)
    job = await storage.jobs.submit("default", JobKind.ARCHIVE, "logs", {})
    handlers = {JobKind.ARCHIVE: use_spark, JobKind.REPLAY: HANDLERS[JobKind.REPLAY]}
    async with working(handlers=handlers, sparks=sparks):
        await eventually(lambda: is_running(storage, job.job_id), True)
        sparks.count_job()
        await storage.replays.submit("default", replay_request(), "r")
        await is_done(storage, "r")
        assert sparks.needs_recycling


async def is_running(storage, job_id: str) -> bool:
    state: JobState = (await storage.jobs.get(job_id)).state
    return state is JobState.RUNNING


@pytest.mark.parametrize(
    ("command", "state"), [("pause", JobState.PAUSED), ("cancel", JobState.CANCELLED)]
)
async def test_small_replay_stops_on_command(storage, working, command, state):
    await fill(storage, COUNT)
    await storage.replays.submit("default", replay_request(pacing=SLOW), "r")

    async with working():
        await begins(storage, "r")
        await getattr(storage.replays, command)("default", "r")
        await eventually(lambda: state_of(storage, "r"), state)

    assert 0 < await sent_by(storage, "r") == len(await everything(storage)) < COUNT


async def test_small_replay_goes_on_where_an_ended_worker_was(storage, working):
    records = await fill(storage, COUNT)
    pacing = Pacing(records_per_second=150)
    await storage.replays.submit("default", replay_request(pacing=pacing), "r")

    async with working():
        await begins(storage, "r")
    job, sent = (await storage.replays.get("default", "r")).job, len(await everything(storage))
    assert (job.state, job.failures, await sent_by(storage, "r")) == (JobState.QUEUED, 0, sent)
    async with working():
        await is_done(storage, "r")

    assert 0 < sent < COUNT
    check(await everything(storage), records)


@pytest.mark.parametrize(
    "fault",
    [
        "replay.after_send",
        pytest.param("replay.before_send", marks=pytest.mark.chaos),
        pytest.param("replay.before_save", marks=pytest.mark.chaos),
        pytest.param("replay.after_forget", marks=pytest.mark.chaos),
    ],
)
async def test_killed_worker_loses_and_repeats_nothing(storage, stores, working, tmp_path, fault):
    records = await fill(storage, 1_000)
    await storage.replays.submit("default", replay_request(order=Order.KEY), "r")

    with worker_process(stores, Path(tmp_path, "log"), "real", MILLSTREAM_FAULT=fault) as worker:
        assert await asyncio.to_thread(worker.wait, 60) == -signal.SIGKILL
    async with working():
        await is_done(storage, "r")

    found = await everything(storage)
    check(found, records)
    for key in KEYS[1:]:
        of_key = [one.record.data for one in found if one.record.key == key]
        assert of_key == [one.data for one in records if one.key == key]
