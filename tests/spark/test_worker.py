"""A worker with a real Spark and toy jobs: completion, release, and recovery from kills."""

import asyncio
import inspect
import os
import signal
import time

import pytest

from spark_worker.runtime import task_daemon
from spark_worker.runtime.job_context import PermanentFailure, TransientFailure
from storage.domain.errors import StreamNotFound
from storage.domain.jobs import JobKind, JobPart, JobState, LeaseLost
from tests.acceptance.deployment import all_gone, command_line, descendants
from tests.conditions import PATIENCE_S, SPARK_S
from tests.spark.toys import TOYS
from tests.spark.workers import worker_process

ARCHIVE = JobKind.ARCHIVE
pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)  # jobs are in Postgres


def submit(storage, subject="logs", **spec):
    return storage.jobs.submit("default", ARCHIVE, subject, spec)


async def until(found, within_s=PATIENCE_S):
    """Wait until `found()` is true, and return its value."""
    deadline = time.monotonic() + within_s
    while not (value := await given(found())):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    return value


async def given(value):
    return await value if inspect.isawaitable(value) else value


async def has_saved(storage, job_id):
    """Wait until the job's attempt has saved a part."""
    await until(lambda: storage.jobs.parts(job_id), within_s=SPARK_S)


async def test_job_runs_on_spark_and_reports_progress(storage, working, ended):
    job = await submit(storage, steps=2)

    async with working(TOYS):
        over = await ended(job.job_id)

    assert (over.state, over.progress) == (JobState.DONE, {"steps": 2, "attempt": 1})
    assert (await storage.jobs.parts(job.job_id))["steps"].counts == {"sum": 45}


async def test_spark_starts_once_for_many_jobs(storage, working, ended, spark_of_the_run):
    jobs = [await submit(storage, f"s{n}") for n in range(4)]
    before = spark_of_the_run.started

    async with working(TOYS):
        over = [await ended(job.job_id) for job in jobs]

    assert {job.state for job in over} == {JobState.DONE}
    assert spark_of_the_run.started <= before + 1  # none if one is running already


@pytest.mark.parametrize(
    ("word", "state"), [("cancel", JobState.CANCELLED), ("pause", JobState.PAUSED)]
)
async def test_job_stops_during_a_task_on_command(storage, working, ended, word, state):
    job = await submit(storage, steps=100, task_s=60)

    async with working(TOYS):
        await ended(job.job_id, JobState.RUNNING)
        await asyncio.sleep(1)
        await getattr(storage.jobs, word)(job.job_id)
        stopped = await ended(job.job_id, state)

    assert stopped.failures == 0


async def test_paused_job_resumes_where_it_stopped(storage, working, ended):
    job = await submit(storage, steps=6, task_s=0.2)

    async with working(TOYS):
        await has_saved(storage, job.job_id)
        await storage.jobs.pause(job.job_id)
        paused = await ended(job.job_id, JobState.PAUSED)
        await storage.jobs.resume(job.job_id)
        over = await ended(job.job_id)

    assert paused.progress["steps"] < 6
    assert (over.state, over.progress) == (JobState.DONE, {"steps": 6, "attempt": 2})


async def test_job_is_released_when_its_worker_ends(storage, working, ended):
    job = await submit(storage, steps=100, task_s=60)

    async with working(TOYS):
        await ended(job.job_id, JobState.RUNNING)
        await asyncio.sleep(0.5)

    actual_job = await storage.jobs.get(job.job_id)
    assert (actual_job.state, actual_job.failures) == (JobState.QUEUED, 0)


async def test_two_workers_run_every_job_once(storage, working, ended):
    ran = []

    def note(work):
        ran.append((work.job.job_id, work.claim.worker))

    jobs = [await submit(storage, f"s{n}") for n in range(30)]
    async with working({ARCHIVE: note}, "w1"), working({ARCHIVE: note}, "w2"):
        over = [await ended(job.job_id) for job in jobs]

    assert {job.state for job in over} == {JobState.DONE}
    assert sorted(job_id for job_id, _ in ran) == sorted(job.job_id for job in jobs)
    assert {worker for _, worker in ran} == {"w1", "w2"}


@pytest.mark.parametrize(
    ("error", "failures", "failure"),
    [
        (RuntimeError("no luck\nat all"), 10, "RuntimeError: no luck"),
        (TransientFailure("Postgres is away"), 10, "Postgres is away"),
        (PermanentFailure("no such range"), 1, "no such range"),
        (StreamNotFound(), 1, "The stream does not exist."),
    ],
)
async def test_transient_failure_is_retried_and_permanent_is_not(
    storage, working, ended, rewrite, error, failures, failure
):
    def fail(work):
        raise error

    job = await storage.jobs.submit("default", ARCHIVE, "logs", {}, attempts_max=10)
    async with working({ARCHIVE: fail}):
        # Ten waits would take a minute: the failures before the last are set in the database.
        if failures > 1:
            await ended(job.job_id, JobState.QUEUED)
            await rewrite("update jobs set failures = %s, run_after_ms = 0", failures - 1)
        over = await ended(job.job_id)

    assert (over.state, over.failures, over.failure) == (JobState.FAILED, failures, failure)


@pytest.mark.parametrize(
    ("error", "told"),
    [(RuntimeError("no luck"), 1), (TransientFailure("Postgres is away"), 0), (LeaseLost(), 0)],
)
async def test_only_unexpected_errors_are_logged_with_traceback(
    storage, working, ended, caplog, error, told
):
    """A replay that met a starting Postgres logged one, and a job that another worker has taken."""

    def fail(work):
        raise error

    job = await storage.jobs.submit("default", ARCHIVE, "logs", {}, attempts_max=1)
    async with working({ARCHIVE: fail}):
        await ended(job.job_id)

    assert len([record for record in caplog.records if record.exc_info]) == told


async def test_job_with_invalid_specification_fails(storage, working, ended):
    job = await submit(storage, steps="many")

    async with working(TOYS):
        over = await ended(job.job_id)

    assert (over.state, over.failures) == (JobState.FAILED, 1)
    assert "Invalid job specification" in over.failure


async def test_handler_cannot_write_after_lease_is_lost(storage, working, ended, rewrite):
    first = asyncio.Event()
    loop, refused = asyncio.get_running_loop(), list[str]()

    def deaf(work):
        if work.job.attempt > 1:
            return {"by": work.job.attempt}
        loop.call_soon_threadsafe(first.set)
        try:
            asyncio.run_coroutine_threadsafe(event.wait(), loop).result()
            work.call(work.storage.jobs.finish(work.claim, progress={"by": 1}))
        except Exception as error:
            refused.append(type(error).__name__)
        return {"by": 1}

    event = asyncio.Event()
    job = await submit(storage)
    async with working({ARCHIVE: deaf}):
        await first.wait()
        await rewrite("update jobs set lease_until_ms = 0")
        over = await ended(job.job_id)
        event.set()
        await until(lambda: refused)

    assert over.progress == {"by": 2}
    assert refused == ["LeaseLost"]


async def test_attempt_fails_and_is_retried_when_jvm_is_killed(
    storage, working, heard, sparks, ended
):
    job = await submit(storage, steps=4, task_s=0.5)

    async with working(TOYS):
        await has_saved(storage, job.job_id)
        killed = sparks.jvm_pid
        os.kill(killed, signal.SIGKILL)
        over = await ended(job.job_id)
        await until(lambda: len(heard) == 2)

    assert (over.state, over.progress) == (JobState.DONE, {"steps": 4, "attempt": 2})
    assert [(kind, state) for kind, state, _, _ in heard] == [
        (ARCHIVE, JobState.QUEUED),
        (ARCHIVE, JobState.DONE),
    ]
    assert sparks.jvm_pid != killed


async def wait_until_running(storage, job_id, worker, attempt):
    """Wait until the worker is running this attempt; return all its descendants."""

    async def begun():
        return (await storage.jobs.get(job_id)).attempt == attempt

    await until(begun, within_s=SPARK_S)
    await until(lambda: daemons(worker.pid), within_s=SPARK_S)
    await asyncio.sleep(0.5)
    return descendants(worker.pid)


def daemons(pid):
    """Python daemons that Spark has started below that process."""
    return [child for child in descendants(pid) if task_daemon.__name__ in command_line(child)]


async def test_job_of_killed_worker_is_finished_by_next_worker(
    storage, stores, working, ended, rewrite, tmp_path
):
    """First kill -9, then SIGTERM during the attempt, then an undisturbed worker."""
    job = await submit(storage, steps=2, task_s=30)
    log = tmp_path / "log"

    with worker_process(stores, log) as first:
        left = await wait_until_running(storage, job.job_id, first, attempt=1)
        first.kill()
        killed = all_gone(left, within_s=PATIENCE_S)
    with worker_process(stores, log) as second:
        left = await wait_until_running(storage, job.job_id, second, attempt=2)
        second.terminate()
        code = await asyncio.to_thread(second.wait, 15)
        returned_job = await storage.jobs.get(job.job_id)
        stopped = all_gone(left, within_s=1)
    await rewrite("update jobs set spec = '{\"steps\": 2}'")
    async with working(TOYS):
        over = await ended(job.job_id)

    assert killed, log.read_text()
    assert stopped, log.read_text()
    assert (code, returned_job.state, returned_job.attempt) == (0, JobState.QUEUED, 2), (
        log.read_text()
    )
    assert (over.state, over.progress) == (JobState.DONE, {"steps": 2, "attempt": 3})


async def test_fault_point_kills_worker(storage, stores, working, ended, tmp_path):
    job = await storage.jobs.submit("default", JobKind.COMPACT, "logs", {})

    with worker_process(stores, tmp_path / "log", MILLSTREAM_FAULT="toy.after_save") as worker:
        code = await asyncio.to_thread(worker.wait, 60)
    parts = await storage.jobs.parts(job.job_id)
    async with working(TOYS):
        over = await ended(job.job_id)

    assert code == -signal.SIGKILL
    assert parts == {"once": JobPart("once", 1, True, {})}
    assert (over.state, over.attempt) == (JobState.DONE, 2)
