"""Archiving on Spark: many streams in one job, and a kill at every step of a commit."""

import asyncio
import signal
from collections.abc import Sequence

import pytest

from spark_worker.main import HANDLERS
from storage.archive.verify import open_archive_check
from storage.domain.fault_points import arm
from storage.domain.jobs import JobKind, JobState
from storage.domain.limits import JOB_ATTEMPTS_MAX_DEFAULT
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamSpec
from storage.parquet.file_reader import read_group, verify_file
from storage.parquet.object_store import open_root
from storage.parquet.record_schema import records_of
from tests.spark.workers import worker_process

pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)

CLICKS = StreamName("clicks")
SLOTS = 2  # of the session of the tests


async def fill(storage, name: StreamName, count: int, shards: int = 1) -> None:
    if count:
        await storage.catalog.put_stream(name, StreamSpec(shards=shards))
    for first in range(0, count, 500):
        records = [
            Record(b"%d" % number, key=f"k{number % 97}")
            for number in range(first, min(first + 500, count))
        ]
        await storage.streams.append(name, records)


async def archived_bodies(storage, stores, name: StreamName) -> list[bytes]:
    """Read the archived files of a stream, verifying their digests."""
    root, found = open_root(stores.archive_url), []
    stream = await storage.catalog.fresh_stream(name)
    for shard in (await storage.archive_admin.show(name)).shards:
        edge = 0
        for file in await storage.archive_admin.files(
            stream, shard.shard.index, after=-1, limit=1_000
        ):
            assert file.first_offset == edge
            edge = file.next_offset
            footer = verify_file(root, file.path, file.file_bytes, file.digest)
            for number in range(len(footer.facts.groups)):
                found += [
                    record.record.data for record in records_of(read_group(root, footer, number))
                ]
    return found


def numbers(bodies: Sequence[bytes]) -> list[int]:
    return sorted(map(int, bodies))


async def test_one_job_archives_all_streams_of_a_lane(storage, stores, working, ended):
    names = [StreamName(f"s{number}") for number in range(12)]
    for number, name in enumerate(names):
        await fill(storage, name, 100 + number, shards=1 + number % 3)
    jobs = [
        await storage.jobs.submit("default", JobKind.ARCHIVE, f"lane {lane}", {"lane": lane})
        for lane in range(4)
    ]
    for name in names:
        stream = await storage.catalog.stream(name)
        await storage.catalog.put_stream(
            name, StreamSpec(shards=stream.spec.shards, archive_lag_ms=1_000)
        )
    await asyncio.sleep(1)

    async with working(HANDLERS):
        over = [await ended(job.job_id) for job in jobs]

    assert {job.state for job in over} == {JobState.DONE}
    assert sum(job.progress["records"] for job in over) == sum(100 + n for n in range(12))
    for number, name in enumerate(names):
        assert numbers(await archived_bodies(storage, stores, name)) == [*range(100 + number)]


async def test_long_range_is_archived_by_several_tasks(
    storage, stores, working, ended, monkeypatch
):
    monkeypatch.setattr("storage.domain.limits.ARCHIVE_RANGE_RECORDS", 1_500)
    monkeypatch.setattr("spark_worker.jobs.spark_tasks._RECORDS_PER_TASK", 1_500)
    await fill(storage, CLICKS, 10_000)

    async with working(HANDLERS):
        over = await ended((await storage.archive_admin.flush(CLICKS)).job_id)

    assert over.progress["files"] == 7
    assert numbers(await archived_bodies(storage, stores, CLICKS)) == [*range(10_000)]


async def test_job_that_advances_continues_despite_any_number_of_failures(
    storage, stores, working, ended, monkeypatch
):
    monkeypatch.setattr("storage.domain.limits.ARCHIVE_RANGE_RECORDS", 500)
    monkeypatch.setattr("spark_worker.jobs.spark_tasks._RECORDS_PER_TASK", 500)
    monkeypatch.setattr("spark_worker.jobs.archive._TURNS", 1)
    monkeypatch.setattr("spark_worker.jobs.archive._SHORT_S", 0)
    parts = JOB_ATTEMPTS_MAX_DEFAULT + 2
    await fill(storage, CLICKS, 500 * SLOTS * parts)
    arm("archive.part_committed:raise")
    try:
        async with working(HANDLERS):
            over = await ended((await storage.archive_admin.flush(CLICKS)).job_id)
    finally:
        arm("")

    assert (over.state, over.attempt) == (JobState.DONE, parts)
    assert numbers(await archived_bodies(storage, stores, CLICKS)) == [*range(500 * SLOTS * parts)]


async def test_small_files_are_compacted(storage, stores, working, ended, rewrite):
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    async with working(HANDLERS):
        for part in range(5):
            await storage.streams.append(CLICKS, [Record(b"%d" % part)])
            await ended((await storage.archive_admin.flush(CLICKS)).job_id)
        await rewrite("update archive_files set first_arrival_ms = first_arrival_ms - 86400000")
        await storage.archive_planner.plan_compaction()
        [job] = await storage.jobs.list(kind=JobKind.COMPACT)
        over = await ended(job.job_id)

    assert (over.state, over.progress) == (JobState.DONE, {"files_before": 5, "files": 1})
    stream = await storage.catalog.fresh_stream(CLICKS)
    assert len(await storage.archive_admin.files(stream, 0, after=-1, limit=10)) == 1
    assert await archived_bodies(storage, stores, CLICKS) == [b"%d" % part for part in range(5)]


@pytest.mark.parametrize(
    "fault",
    [
        "archive.in_task",  # Spark loses a Python process, and the attempt fails
        "archive.before_commit",
        pytest.param("archive.file_written", marks=pytest.mark.chaos),
        pytest.param("archive.copied", marks=pytest.mark.chaos),
        pytest.param("archive.committed", marks=pytest.mark.chaos),
    ],
)
async def test_kill_at_any_step_loses_and_duplicates_nothing(
    storage, stores, working, ended, tmp_path, fault
):
    await fill(storage, CLICKS, 2_000, shards=3)
    job = await storage.archive_admin.flush(CLICKS)

    with worker_process(stores, tmp_path / "log", "real", MILLSTREAM_FAULT=fault) as worker:
        await _struck(storage, job.job_id, worker)
    async with working(HANDLERS):
        over = await ended(job.job_id)
        await fill_more(storage)
        again = await ended((await storage.archive_admin.flush(CLICKS)).job_id)

    assert (over.state, again.state) == (JobState.DONE, JobState.DONE)
    assert numbers(await archived_bodies(storage, stores, CLICKS)) == [*range(2_500)]
    async with open_archive_check(stores) as check:
        assert [shard.faults async for shard in check.shards()] == [[], [], []]


async def fill_more(storage) -> None:
    await storage.streams.append(
        CLICKS, [Record(b"%d" % number, key=f"k{number % 97}") for number in range(2_000, 2_500)]
    )


async def _struck(storage, job_id: str, worker) -> None:
    """Wait until the worker is dead, or its attempt has failed."""
    for _ in range(1_200):
        job = await storage.jobs.get(job_id)
        if worker.poll() is not None:
            assert worker.returncode == -signal.SIGKILL
            return
        if job.failures or job.state.is_over:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("nothing was struck")
