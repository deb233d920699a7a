"""Leadership of maintenance on real stores: leases, takeover after kill -9, and an outage of Postgres."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager, suppress

import pytest
import redis

from consumers.maintenance.scheduler import Sweeper
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.presence import LeaseStore, ProcessRole
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.redis.keys import key
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.integration.fault_proxy import running_database_proxy

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")
LEASE_MS = 10_000
START_S = 60


@pytest.fixture(params=LeaseStore)
def leases(engines, request):
    return engines.maintenance._leases[request.param]


async def test_lease_has_one_holder_until_it_expires(leases, clock):
    first = await leases.acquire("tidy", "one", LEASE_MS)
    clock.advance(ms=LEASE_MS - 1)
    refused = await leases.acquire("tidy", "two", LEASE_MS)
    clock.advance(ms=1)
    taken = await leases.acquire("tidy", "two", LEASE_MS)

    assert first == ("one", 1, LEASE_MS)
    assert refused == ("one", 1, 1)
    assert taken == ("two", 2, LEASE_MS)


async def test_renewal_keeps_fencing_number_unless_lease_expired(leases, clock):
    await leases.acquire("tidy", "one", LEASE_MS)
    clock.advance(ms=LEASE_MS - 1)
    renewed = await leases.acquire("tidy", "one", LEASE_MS)
    clock.advance(ms=LEASE_MS)
    late = await leases.acquire("tidy", "one", LEASE_MS)

    assert renewed == ("one", 1, LEASE_MS)
    assert late.fence == 2


async def test_released_lease_is_free_and_keeps_its_fence(leases):
    await leases.acquire("tidy", "one", LEASE_MS)
    await leases.release("tidy", "two")
    refused = await leases.acquire("tidy", "two", LEASE_MS)
    await leases.release("tidy", "one")

    assert refused.holder == "one"
    assert await leases.acquire("tidy", "two", LEASE_MS) == ("two", 2, LEASE_MS)


async def test_concurrent_candidates_elect_one(leases):
    won = await asyncio.gather(
        *(leases.acquire("tidy", f"candidate {number}", LEASE_MS) for number in range(10))
    )

    assert len({lease.holder for lease in won}) == 1
    assert {lease.fence for lease in won} == {1}


@pytest.mark.one_store
async def test_other_sweeper_leads_seconds_after_kill(settings):
    """Two real sweepers; the one that leads is killed by SIGKILL."""
    async with open_storage(settings) as storage, sweeping(settings) as first:

        async def leaders() -> set[int]:
            seen = await storage.presence.processes()
            return {process.pid for process in seen if set(process.leads) == set(LeaseStore)}

        async def sweepers() -> int:
            seen = await storage.presence.processes()
            return sum(process.role is ProcessRole.SWEEPER for process in seen)

        await eventually(leaders, {first.pid}, within_s=START_S)
        async with sweeping(settings) as second:
            await eventually(sweepers, 2, within_s=START_S)
            first.kill()
            began_s = asyncio.get_running_loop().time()
            await eventually(lambda: _contains(leaders, second.pid), True, within_s=START_S)
            took_s = asyncio.get_running_loop().time() - began_s

    shown_s = (limits.LEADER_LEASE_MS + limits.PRESENCE_HEARTBEAT_MS) / limits.SECOND_MS
    assert took_s < shown_s + 5


@asynccontextmanager
async def sweeping(settings: StorageSettings):
    """Run `millstream sweep` as a process."""
    stores = {"REDIS_URL": settings.redis_url, "DATABASE_URL": settings.database_url}
    command = (sys.executable, "-m", "api.cli", "sweep")
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **stores})
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _contains(leaders, pid: int) -> bool:
    return pid in await leaders()


@pytest.mark.one_store
async def test_hot_tasks_continue_while_postgres_is_down(
    redis_url, database_url, short_folder, tmp_path, clock
):
    """Nothing was tidied or trimmed during an outage, and the store filled up."""
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        settings = StorageSettings(
            redis_url=redis_url, database_url=url, archive_url=f"file://{tmp_path}/archive"
        )
        async with open_storage(settings, clock=clock) as storage:
            spec = QueueSpec(retention_ms=limits.HOUR_MS)
            queue = (await storage.catalog.put_queue(ORDERS, spec)).definition
            for number in range(5):  # which need Postgres, and must not delay the others
                name = StreamName(f"archived-{number}")
                await storage.catalog.put_stream(name, StreamSpec(archive=True))
            hourly = StreamSpec(retention_ms=limits.HOUR_MS, key_index=True, archive=False)
            await storage.catalog.put_stream(CLICKS, hourly)
            stream = await storage.catalog.stream(CLICKS)
            await storage.catalog.all_queues()
            await storage.catalog.all_streams()
            await storage.queues.send(ORDERS, [NewMessage(b"old")])
            await storage.streams.append(CLICKS, [Record(b"old")])
            faults.refuse = True
            faults.cut()
            clock.advance(ms=2 * limits.HOUR_MS)
            sweeper = Sweeper(storage, "one")
            running = asyncio.create_task(sweeper.run())

            with redis.Redis.from_url(redis_url) as client:

                async def left() -> list[int]:
                    logs = queue.log_id, stream.shards[0].log_id
                    return [client.xlen(key("default", log_id, "log")) for log_id in logs]

                await eventually(left, [0, 0], within_s=START_S)

            assert sweeper.leads == (LeaseStore.HOT_STORE,)
            faults.refuse = False
            await end(running)
