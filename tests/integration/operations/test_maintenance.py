"""Maintenance tasks, and the store's identity through restarts."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import redis

from consumers.maintenance import scheduler
from consumers.maintenance.scheduler import sweep
from consumers.maintenance.task import MaintenanceTask
from consumers.maintenance.tasks.queues import sweep_queues
from consumers.maintenance.tasks.streams import trim_streams
from storage.bootstrap import open_storage
from storage.domain.limits import TOMBSTONE_MS, Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.embedded.valkey import running_valkey
from storage.redis.keys import STORE_KEY, key
from storage.settings import StorageSettings
from tests.conditions import eventually

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")


@pytest.fixture
async def storage(engines):
    await engines.catalog.put_queue(ORDERS, QueueSpec())
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=60_000))
    return engines


async def test_maintenance_drops_expired_messages_and_records(storage, clock, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"old")])
    await storage.streams.append(CLICKS, [Record(b"old")])
    clock.advance(ms=5 * 86_400_000)

    await sweep_queues(storage)
    await trim_streams(storage)

    queue = await storage.catalog.queue(ORDERS)
    stream = await storage.catalog.stream(CLICKS)
    with redis.Redis.from_url(redis_url) as client:
        assert client.xlen(key("default", queue.log_id, "log")) == 0
        assert client.xlen(key("default", stream.shards[0].log_id, "log")) == 0


async def test_deleted_queue_is_forgotten_once_no_cache_can_hold_it(storage, clock, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"x")])
    queue = await storage.catalog.delete_queue(ORDERS)
    meta = key("default", queue.log_id, "meta")
    with redis.Redis.from_url(redis_url) as client:
        early = await storage.maintenance.tombstone_deleted()
        tombstone = client.exists(meta)
        clock.advance(ms=TOMBSTONE_MS)
        late = await storage.maintenance.tombstone_deleted()

        assert (early, tombstone) == (0, 1)
        assert (late, client.exists(meta)) == (1, 0)


async def test_maintenance_finishes_deletion_missed_by_store(storage, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"x")])
    queue = await storage.catalog.delete_queue(ORDERS)
    log = key("default", queue.log_id, "log")
    with redis.Redis.from_url(redis_url) as client:
        client.delete(key("default", queue.log_id, "meta"))
        client.xadd(log, {"d": b"left behind"})

        await storage.maintenance.tombstone_deleted()

        assert client.exists(log) == 0


async def test_maintenance_task_runs_in_one_process_only(storage):
    async with (
        storage.maintenance.exclusive("test") as mine,
        storage.maintenance.exclusive("test") as others,
    ):
        assert (mine, others) == (True, False)


async def test_failing_task_does_not_block_others(storage, monkeypatch, caplog):
    """A sample written by another version ended the whole sweeper, again and again."""
    done = asyncio.Event()

    async def fail(_):
        raise ValueError("cannot")

    async def work(_):
        done.set()

    tasks = (MaintenanceTask("bad", 60_000, fail), MaintenanceTask("good", 60_000, work))
    monkeypatch.setattr(scheduler, "TASKS", tasks)

    sweeping = asyncio.create_task(sweep(storage))
    async with asyncio.timeout(10):
        await done.wait()

    await eventually(lambda: _said(caplog, "maintenance_failed"), True)
    assert not sweeping.done()
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


async def _said(caplog, words: str) -> bool:
    return words in caplog.text


async def test_sweeper_runs_all_tasks(storage, redis_url):
    sweeping = asyncio.create_task(sweep(storage))
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:

        async def shines() -> bool:
            return int(client.hget(STORE_KEY, "beacon") or 0) > 0

        await eventually(shines, True)
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


@asynccontextmanager
async def deployment(folder, database_url, durability="always"):
    """Open the engines over a store with a data directory of its own."""
    with running_valkey(folder, durability=durability) as url:
        settings = StorageSettings(redis_url=url, database_url=database_url, durability=durability)
        async with open_storage(settings, limits=Limits(reservation_offsets_min=100)) as storage:
            yield storage


async def test_clean_restart_continues_at_next_offset(short_folder, database_url):
    async with deployment(short_folder, database_url) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.streams.append_to_shard(CLICKS, 0, [Record(b"before")])
        await storage.maintenance.advance_marker()

    async with deployment(short_folder, database_url) as storage:
        [after] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after")])
        read = await storage.streams.read_shard(CLICKS, 0, ReadFrom(offset=0))

    assert after.offset == 1
    assert [record.record.data for record in read.records] == [b"before", b"after"]


async def test_restart_without_fsync_leaves_hole_and_reuses_no_offset(short_folder, database_url):
    async with deployment(short_folder, database_url, "everysec") as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.streams.append_to_shard(CLICKS, 0, [Record(b"before")])

    async with deployment(short_folder, database_url, "everysec") as storage:
        [after] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after")])
        read = await storage.streams.read_shard(CLICKS, 0, ReadFrom(offset=1))

    assert after.offset >= 100
    assert read.gap is not None
    assert (read.gap.first, read.gap.next, read.gap.reason) == (1, after.offset, "hole")
    assert [record.record.data for record in read.records] == [b"after"]


async def test_store_behind_its_beacon_gets_new_epoch(short_folder, database_url):
    async with deployment(short_folder, database_url) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.streams.append_to_shard(CLICKS, 0, [Record(b"before")])
        for _ in range(3):
            await storage.maintenance.advance_marker()

    with running_valkey(short_folder) as url, redis.Redis.from_url(url) as client:
        client.hset(STORE_KEY, "beacon", 1)  # as an older copy has it
    async with deployment(short_folder, database_url) as storage:
        [after] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after")])

    assert after.offset >= 100


async def test_diagnosis_reports_store_settings(storage):
    findings = {finding.check: finding for finding in await storage.health.diagnose()}

    assert findings["fsync"].ok
    assert findings["memory policy"].ok
    assert findings["migrations"].ok
    assert all(finding.hint for finding in findings.values())
