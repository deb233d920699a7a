"""Jobs on a Spark cluster: executors that know nothing of us, and are lost in the middle."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spark_worker.environment import pack
from spark_worker.settings import WorkerSettings
from storage.archive.verify import open_archive_check
from storage.domain.jobs import JobState, WaitReason
from storage.domain.log.record_batch import Record
from storage.domain.replays.replay import Order
from storage.domain.streams.stream import StreamSpec
from storage.settings import StorageSettings
from tests.conditions import SPARK_S, eventually
from tests.replay_steps import SOURCE, TARGET, everything, replay_request
from tests.replica_sets import free_ports
from tests.spark.cluster.standalone_cluster import (
    JVM_OPTIONS,
    StandaloneCluster,
    conf_of_executors,
    standalone_cluster,
)
from tests.spark.test_archive import archived_bodies
from tests.spark.workers import ON_SPARK, worker_process

pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)

RECORDS, MILLION = 12_000, 1_000_000
INTERPRETER = os.path.realpath(sys.executable)
QUICK_START = {"spark.executor.extraJavaOptions": " ".join(JVM_OPTIONS)}


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def cluster(running_cluster: StandaloneCluster) -> StandaloneCluster:
    """The cluster, with a master and two workers again."""
    running_cluster.restore()
    return running_cluster


@pytest.fixture
async def records(storage) -> list[bytes]:
    return await append_numbers(storage, RECORDS)


async def append_numbers(storage, count: int, **spec) -> list[bytes]:
    """Create `source` and `target`, and append numbers to the former, with their last digit as key."""
    for name in (SOURCE, TARGET):
        await storage.catalog.put_stream(name, StreamSpec(shards=4, **spec))
    bodies = [b"%d" % number for number in range(count)]
    for first in range(0, count, 1_000):
        batch = [Record(body, f"key {body[-1]}") for body in bodies[first : first + 1_000]]
        await storage.streams.append(SOURCE, batch)
    return bodies


async def trim_archived(storage, count: int) -> None:
    """Leave the records of `source` to the archive, from which a replay then reads."""
    while await storage.streams.trim(SOURCE, count):
        pass
    shards = (await storage.archive_admin.show(SOURCE)).shards
    assert sum(shard.hot.start for shard in shards) == count


def settings_on(
    cluster: StandaloneCluster, stores: StorageSettings, folder: Path, **conf: str
) -> WorkerSettings:
    return WorkerSettings(
        storage=stores,
        spark_master=cluster.master_url,
        spark_memory_mb=512,
        spark_conf={**QUICK_START, **conf_of_executors(), **conf},
        scratch=folder / "scratch",
        log=folder / "driver.log",
    )


async def test_jobs_wait_for_executors_then_run_and_show_no_secret(
    storage, stores, cluster, records, ended, tmp_path
):
    """A Python that is not there was a job that ran for ever; now it waits, and says so.

    Of the worker that then runs the jobs the page of the environment, the event log, logs and processes were read for the
    stores' addresses.
    """
    [ui], events = free_ports(1), tmp_path / "events"
    events.mkdir()
    shown = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
    }
    flushed = await storage.archive_admin.flush(SOURCE)
    unable = settings_on(
        cluster, stores, tmp_path, **{"spark.pyspark.python": "/nonexistent/python"}
    )

    with worker_process(unable, tmp_path / "log", "real", ON_SPARK):
        waiting = await _waiting(storage, flushed.job_id)
    replay = await storage.replays.submit("default", replay_request(order=Order.NONE))
    with worker_process(
        settings_on(cluster, stores, tmp_path, **shown), tmp_path / "log", "real", ON_SPARK
    ):
        jobs = [await ended(job_id) for job_id in (flushed.job_id, replay.job.job_id)]
        pages = await _pages(ui)
        environments = _of_executors(cluster, "environ") + _of_executors(cluster, "cmdline")

    assert "/nonexistent/python" in waiting.failure
    assert waiting.failures == 0
    assert [(job.state, job.failure) for job in jobs] == [(JobState.DONE, "")] * 2, jobs
    assert sorted(one.record.data for one in await everything(storage)) == sorted(records)
    assert sorted(await archived_bodies(storage, stores, SOURCE)) == sorted(records)
    assert "spark.app.id" in pages
    files = [*tmp_path.rglob("*"), *cluster.folder.rglob("*")]
    logs = [path.read_bytes() for path in files if _is_readable(path)]
    for secret in (stores.redis_url, stores.database_url):
        assert secret not in pages
        assert secret.encode() not in b"".join([*logs, *environments])


async def _pages(port: int) -> str:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1") as client:
        [application] = (await client.get("/applications")).json()
        of_it = f"/applications/{application['id']}"
        texts = [(await client.get(f"{of_it}/{page}")).text for page in ("environment", "jobs")]
        texts += [(await client.get(f"{of_it}/{page}")).text for page in ("stages", "storage/rdd")]
    return "\n".join([*texts, json.dumps({"spark.app.id": application["id"]})])


def _of_executors(cluster: StandaloneCluster, name: str) -> list[bytes]:
    found = [Path(f"/proc/{pid}/{name}").read_bytes() for pid in cluster.executors()]
    assert found
    return found


def _is_readable(path: Path) -> bool:
    """Return whether a file is a log or a file of Spark's, and none of the archive."""
    return path.is_file() and "archive" not in path.parts and path.suffix != ".parquet"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("executor", marks=pytest.mark.chaos),
        pytest.param("worker", marks=pytest.mark.chaos),
        pytest.param("master", marks=pytest.mark.chaos),
        pytest.param("driver", marks=pytest.mark.chaos),
    ],
)
async def test_loss_in_the_middle_leaves_archive_and_target_exact(
    storage, stores, cluster, records, ended, tmp_path, fault
):
    settings = settings_on(cluster, stores, tmp_path)
    replay = await storage.replays.submit("default", replay_request(order=Order.NONE))

    with worker_process(settings, tmp_path / "log", "real", ON_SPARK) as worker:
        await eventually(lambda: _some_are_sent(storage), True, within_s=SPARK_S)
        flushed = await storage.archive_admin.flush(SOURCE)
        match fault:
            case "executor":
                cluster.kill_executor()
            case "worker":
                cluster.kill("worker-0")
            case "master":
                cluster.kill("master")
                cluster.start_master()
            case _:
                worker.kill()
        if fault != "driver":
            jobs = [await ended(job_id) for job_id in (flushed.job_id, replay.job.job_id)]
    if fault == "driver":
        with worker_process(settings, tmp_path / "log", "real", ON_SPARK):
            jobs = [await ended(job_id) for job_id in (flushed.job_id, replay.job.job_id)]

    assert [job.state for job in jobs] == [JobState.DONE, JobState.DONE], jobs
    assert sorted(one.record.data for one in await everything(storage)) == sorted(records)
    assert sorted(await archived_bodies(storage, stores, SOURCE)) == sorted(records)
    async with open_archive_check(stores) as check:
        assert [shard.faults async for shard in check.shards()] == [[], [], [], []]


async def _some_are_sent(storage) -> bool:
    return bool(await everything(storage))


@pytest.mark.chaos
async def test_replay_of_a_million_records_is_exact(storage, stores, cluster, ended, tmp_path):
    records = await append_numbers(storage, MILLION, hot_retention_ms=0)

    with worker_process(settings_on(cluster, stores, tmp_path), tmp_path / "log", "real", ON_SPARK):
        flushed = await ended((await storage.archive_admin.flush(SOURCE)).job_id)
        await trim_archived(storage, MILLION)
        replay = await storage.replays.submit("default", replay_request())
        replayed = await ended(replay.job.job_id, within_s=300)
        executors = len(cluster.executors())

    assert [flushed.state, replayed.state] == [JobState.DONE, JobState.DONE], replayed
    assert executors == 2
    target = [one.record for one in await everything(storage)]
    assert sorted(record.data for record in target) == sorted(records)
    for key in {record.key for record in target}:
        numbers = [int(record.data) for record in target if record.key == key]
        assert numbers == sorted(numbers), key


@pytest.mark.chaos
async def test_jobs_of_a_cluster_without_workers_wait(
    storage, stores, cluster, records, ended, tmp_path
):
    """The cluster's capacity comes back, and nobody has to do anything."""
    for worker in ("worker-0", "worker-1"):
        cluster.kill(worker)
    flushed = await storage.archive_admin.flush(SOURCE)
    settings = settings_on(cluster, stores, tmp_path).model_copy(
        update={"executors_wait_ms": 30_000}
    )

    with worker_process(settings, tmp_path / "log", "real", ON_SPARK):
        waiting = await _waiting(storage, flushed.job_id)
        cluster.start_worker("worker-0")
        over = await ended(flushed.job_id)

    assert "no executor for 30 s" in waiting.failure
    assert over.state is JobState.DONE, over.failure


async def _waiting(storage, job_id: str):
    """Return a job once it waits for executors."""
    for _ in range(3_600):
        job = await storage.jobs.get(job_id)
        reason = job.waiting_for(storage.presence.clock.now_ms(), has_worker=True)
        if job.state is JobState.QUEUED and reason is WaitReason.EXECUTORS:
            return job
        await asyncio.sleep(0.05)
    raise AssertionError(f"it is {job}")


@pytest.mark.chaos
async def test_packed_environment_runs_jobs(storage, stores, cluster, records, ended, tmp_path):
    """Executors have an interpreter and Spark, and nothing of this checkout."""
    pack(tmp_path / "environment.tar.gz")
    packed = settings_on(cluster, stores, tmp_path).model_copy(
        update={
            "spark_environment": str(tmp_path / "environment.tar.gz"),
            "spark_conf": {
                "spark.driver.host": "127.0.0.1",
                "spark.executorEnv.MILLSTREAM_PYTHON": INTERPRETER,
            },
        }
    )
    flushed = await storage.archive_admin.flush(SOURCE)

    with worker_process(packed, tmp_path / "log", "real", ON_SPARK):
        over = await ended(flushed.job_id, within_s=300)

    assert over.state is JobState.DONE, over.failure
    assert sorted(await archived_bodies(storage, stores, SOURCE)) == sorted(records)
