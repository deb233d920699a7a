"""Jobs on a Spark cluster whose machines share nothing but a network.

Master, workers and stores have a network namespace each, and executors see none of the driver's files: what leans on 127.0.0.1 or
on a local file fails here.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from spark_worker.settings import WorkerSettings
from storage.domain.jobs import JobState
from storage.settings import StorageSettings
from tests.chaos.network import Network, lacking_network, running_network
from tests.chaos.proxy import Proxy
from tests.replay_steps import SOURCE, everything, replay_request
from tests.spark.cluster.standalone_cluster import (
    StandaloneCluster,
    conf_of_executors,
    standalone_cluster,
)
from tests.spark.cluster.test_cluster import append_numbers, trim_archived
from tests.spark.test_archive import archived_bodies
from tests.spark.workers import ON_SPARK, worker_process

LACKING = lacking_network()

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(LACKING != "", reason=LACKING),
    pytest.mark.parametrize("redis_url", ["plain"], indirect=True),
]

RECORDS = 4_000
STORES = "stores"


@pytest.fixture
def network() -> Iterator[Network]:
    with running_network([STORES, "master", "worker-0", "worker-1"]) as running:
        yield running


@pytest.fixture
def driver_folder(tmp_path: Path) -> Path:
    """The folder of the driver's files, which executors do not have."""
    folder = tmp_path / "driver"
    folder.mkdir()
    return folder


@pytest.fixture
def cluster(network, driver_folder, tmp_path) -> Iterator[StandaloneCluster]:
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster", network=network, hidden=driver_folder) as running:
        yield running


@pytest.fixture
async def stores(
    redis_url, database_url, s3_url, s3_address, network
) -> AsyncIterator[StorageSettings]:
    """The stores at addresses of their machine."""
    valkey, postgres = urlsplit(redis_url), urlsplit(database_url)
    [directory] = parse_qs(postgres.query)["host"]
    async with AsyncExitStack() as stack:

        async def served(connect) -> str:
            machine = network.machine(STORES)
            listener = machine.listener()
            proxy = await stack.enter_async_context(Proxy(connect, Random(1), listener=listener))
            return f"{machine.address}:{proxy.port}"

        unix = asyncio.open_unix_connection
        redis_at = await served(partial(unix, valkey.path))
        postgres_at = await served(partial(unix, f"{directory}/.s.PGSQL.5432"))
        host, _, port = s3_address.partition(":")
        s3_at = await served(partial(asyncio.open_connection, host, int(port)))
        yield StorageSettings(
            redis_url=f"redis://{redis_at}/0",
            database_url=f"postgresql://{postgres.username or ''}@{postgres_at}{postgres.path}",
            archive_url=s3_url.replace(s3_address, s3_at),
        )


async def test_archive_and_replay_run_on_separate_machines(
    storage, stores, cluster, network, ended, driver_folder, s3_url
):
    records = await append_numbers(storage, RECORDS, hot_retention_ms=0)
    settings = WorkerSettings(
        storage=stores,
        spark_master=cluster.master_url,
        spark_memory_mb=512,
        spark_conf=conf_of_executors(network=network),
        scratch=driver_folder / "scratch",
        log=driver_folder / "driver.log",
    )

    with worker_process(settings, driver_folder / "log", "real", ON_SPARK):
        flushed = await storage.archive_admin.flush(SOURCE)
        jobs = [await ended(flushed.job_id)]
        await trim_archived(storage, RECORDS)
        replay = await storage.replays.submit("default", replay_request())
        jobs.append(await ended(replay.job.job_id))

    assert [job.state for job in jobs] == [JobState.DONE, JobState.DONE], jobs
    assert sorted(one.record.data for one in await everything(storage)) == sorted(records)
    here = stores.model_copy(
        update={"archive_url": s3_url}
    )  # it blocks the loop that serves `stores`
    assert sorted(await archived_bodies(storage, here, SOURCE)) == sorted(records)
