"""Maintenance tasks, and the store's identity through restarts."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import redis

from consumers.maintenance.scheduler import Sweeper, TaskOutcome
from consumers.maintenance.task import maintenance_task
from consumers.maintenance.tasks.queues import IDLE_SHARES, ActiveQueueTracker
from consumers.maintenance.tasks.retention import trim_streams
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain.limits import TOMBSTONE_MS, Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.presence import LeaseStore
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.embedded.valkey import running_valkey
from storage.redis.keys import STORE_KEY, key
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S, eventually

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

    visit = ActiveQueueTracker()
    for _ in range(IDLE_SHARES):
        await visit(storage)
    await trim_streams.work(storage)

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


def task(name: str, work, *, store=LeaseStore.POSTGRES, period_ms=60_000, timeout_ms=60_000):
    """Return a maintenance task for a test."""
    return maintenance_task(name, store, period_ms=period_ms, timeout_ms=timeout_ms)(work)


class Rounds:
    """Count the rounds of tasks by their outcome."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, TaskOutcome]] = []
        self.leading: set[LeaseStore] = set()

    def ran(self, task: str, outcome: TaskOutcome, seconds: float, items: int) -> None:
        self.outcomes.append((task, outcome))

    def leads(self, store: LeaseStore, *, leads: bool) -> None:
        (self.leading.add if leads else self.leading.discard)(store)


@asynccontextmanager
async def sweeping(storage, *tasks, holder="one"):
    """Run a sweeper with these tasks."""
    rounds = Rounds()
    sweeper = Sweeper(storage, holder, metrics=rounds, tasks=tasks)
    running = asyncio.create_task(sweeper.run())
    try:
        yield sweeper, rounds
    finally:
        await end(running)


async def test_failing_task_does_not_block_others(storage, caplog):
    """A sample written by another version ended the whole sweeper, again and again."""
    done = asyncio.Event()

    async def fail(_):
        raise ValueError("cannot")

    async def work(_):
        done.set()

    async with sweeping(storage, task("bad", fail), task("good", work)) as (sweeper, rounds):
        async with asyncio.timeout(PATIENCE_S):
            await done.wait()
        await eventually(lambda: _said(caplog, "maintenance_failed"), True)

        assert LeaseStore.POSTGRES in sweeper.leads
        assert ("bad", TaskOutcome.FAILED) in rounds.outcomes


async def test_task_over_its_timeout_is_cancelled_and_counted(storage, caplog):
    cancelled = asyncio.Event()

    async def hang(_):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with sweeping(storage, task("slow", hang, timeout_ms=50)) as (_, rounds):
        async with asyncio.timeout(PATIENCE_S):
            await cancelled.wait()
        await eventually(lambda: _said(caplog, "maintenance_timed_out"), True)

    assert rounds.outcomes == [("slow", TaskOutcome.TIMED_OUT)]


@pytest.mark.parametrize("store", LeaseStore)
async def test_one_sweeper_leads_until_it_stops(storage, store):
    counts = {"one": 0, "two": 0}

    def counting(holder):
        async def work(_):
            counts[holder] += 1
            return 1

        return task("count", work, store=store, period_ms=10)

    async with sweeping(storage, counting("two"), holder="two") as (second, _):
        await eventually(lambda: _leads(second), True)
        async with sweeping(storage, counting("one"), holder="one") as (first, _):
            await eventually(lambda: _positive(counts, "two"), True)
            assert first.leads == ()
            assert counts["one"] == 0
        assert store in second.leads


async def test_leader_of_store_without_tasks_is_elected_once(storage, caplog):
    caplog.set_level("INFO")
    async with sweeping(storage) as (sweeper, _):
        await eventually(lambda: _leads(sweeper), True)
        await asyncio.sleep(0.1)

        assert caplog.text.count("maintenance_leader_elected") == len(LeaseStore)
        assert "maintenance_leader_resigned" not in caplog.text


async def test_next_sweeper_leads_when_leader_stops(storage):
    async def work(_):
        return 1

    waiting = Sweeper(storage, "two", tasks=[task("count", work)])
    async with sweeping(storage, task("count", work), holder="one") as (first, _):
        await eventually(lambda: _leads(first), True)
        running = asyncio.create_task(waiting.run())
        await asyncio.sleep(0.1)
        assert waiting.leads == ()
    try:
        await eventually(lambda: _leads(waiting), True)
    finally:
        await end(running)


async def _leads(sweeper) -> bool:
    return set(sweeper.leads) == set(LeaseStore)


async def _positive(counts, holder) -> bool:
    return bool(counts[holder])


async def _said(caplog, words: str) -> bool:
    return words in caplog.text


async def test_sweeper_runs_all_tasks(storage, redis_url):
    running = asyncio.create_task(Sweeper(storage, "one").run())
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:

        async def shines() -> bool:
            return int(client.hget(STORE_KEY, "beacon") or 0) > 0

        await eventually(shines, True)
    await end(running)


@asynccontextmanager
async def deployment(folder, database_url, durability="always"):
    """Open the engines over a store with a data directory of its own."""
    with running_valkey(folder, durability=durability) as url:
        settings = StorageSettings(redis_url=url, database_url=database_url, durability=durability)
        async with open_storage(
            settings, limits=Limits(reservation_offsets_min=100, reservation_ms=0)
        ) as storage:
            yield storage


async def test_clean_restart_continues_at_next_offset(short_folder, database_url):
    async with deployment(short_folder, database_url) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.streams.append_to_shard(CLICKS, 0, [Record(b"before")])
        await storage.maintenance.advance_marker()

    async with deployment(short_folder, database_url) as storage:
        [after] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after")])
        read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=0))

    assert after.offset == 1
    assert [record.record.data for record in read.records] == [b"before", b"after"]


async def test_restart_without_fsync_leaves_hole_and_reuses_no_offset(short_folder, database_url):
    async with deployment(short_folder, database_url, "everysec") as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.streams.append_to_shard(CLICKS, 0, [Record(b"before")])

    async with deployment(short_folder, database_url, "everysec") as storage:
        [after] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after")])
        read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=1))

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
