"""The hot path over real stores: shared calls, waiting, and failures of the store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import redis

from storage.bootstrap import Storage, open_storage
from storage.domain.errors import (
    OutcomeUnknown,
    QueueNotFound,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
)
from storage.domain.limits import IDEMPOTENCY_WINDOW_MS, Limits
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.hot_store.errors import StoreChanged
from storage.hot_store.log_store import LogOpening
from storage.hot_store.wakeups import Waiter
from storage.redis.keys import key
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.client import ScriptFailed
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.integration.fault_proxy import running_fault_proxy

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")


@asynccontextmanager
async def opened(redis_url: str, database_url: str, **limits: int) -> AsyncGenerator[Storage]:
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, limits=Limits(**limits)) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        yield storage


@pytest.fixture
async def storage(redis_url, database_url):
    async with opened(redis_url, database_url) as storage:
        yield storage


async def test_concurrent_appends_share_entry(storage, redis_url):
    await storage.streams.append(CLICKS, [Record(b"first")])

    appended = await asyncio.gather(
        *(storage.streams.append(CLICKS, [Record(b"%d" % number)]) for number in range(50))
    )

    assert sorted(one[0].offset for one in appended) == list(range(1, 51))
    stream = await storage.catalog.stream(CLICKS)
    log = key("default", stream.shards[0].log_id, "log")
    with redis.Redis.from_url(redis_url) as client:
        assert client.xlen(log) <= 3
    read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=17), records_max=5)
    assert [record.offset for record in read.records] == [17, 18, 19, 20, 21]


async def test_concurrent_sends_share_call(storage, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"first")])
    with redis.Redis.from_url(redis_url) as client:
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]

        await asyncio.gather(
            *(storage.queues.send(ORDERS, [NewMessage(b"more")]) for _ in range(100))
        )

        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] - before <= 3
    assert (await storage.queues.stats(ORDERS)).ready == 101


async def test_waiting_receive_gets_later_message(storage):
    waiting = asyncio.create_task(storage.queues.receive(ORDERS, wait_ms=10_000))
    await asyncio.sleep(0.1)

    await storage.queues.send(ORDERS, [NewMessage(b"late")])

    [message] = await asyncio.wait_for(waiting, PATIENCE_S)
    assert message.body == b"late"


async def test_every_waiting_receive_gets_its_share(storage):
    waiting = [
        asyncio.create_task(storage.queues.receive(ORDERS, wait_ms=10_000)) for _ in range(20)
    ]
    await asyncio.sleep(0.1)

    await storage.queues.send(ORDERS, [NewMessage(b"%d" % number) for number in range(20)])

    received = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    assert {message.body for [message] in received} == {b"%d" % number for number in range(20)}


async def test_waiting_receive_wakes_when_delay_passes(storage):
    await storage.queues.send(ORDERS, [NewMessage(b"soon", delay_ms=300)])

    received = await asyncio.wait_for(storage.queues.receive(ORDERS, wait_ms=10_000), PATIENCE_S)

    assert [message.body for message in received] == [b"soon"]


async def test_waiting_receive_wakes_when_message_is_released(storage):
    await storage.queues.send(ORDERS, [NewMessage(b"one")])
    [first] = await storage.queues.receive(ORDERS)
    waiting = asyncio.create_task(storage.queues.receive(ORDERS, wait_ms=10_000))
    await asyncio.sleep(0.1)

    await storage.queues.settle(ORDERS, [Settlement(first.receipt_handle, SettleAction.RELEASE)])

    [again] = await asyncio.wait_for(waiting, PATIENCE_S)
    assert again.offset == first.offset


async def test_lost_notification_costs_time_but_no_message(redis_url, database_url):
    async with opened(redis_url, database_url, waiter_recheck_ms=200) as storage:
        waiting = asyncio.create_task(storage.queues.receive(ORDERS, wait_ms=10_000))
        await asyncio.sleep(0.1)
        storage.queues._wakeups._tasks[0].cancel()  # the connection has no subscriber any more

        await storage.queues.send(ORDERS, [NewMessage(b"unheard")])

        assert len(await asyncio.wait_for(waiting, PATIENCE_S)) == 1


async def test_abandoned_receive_takes_nothing_and_wakes_next(
    storage,
):
    gone = asyncio.create_task(
        storage.queues.receive(ORDERS, wait_ms=10_000, is_client_connected=lambda: False)
    )
    await asyncio.sleep(0.3)
    there = asyncio.create_task(storage.queues.receive(ORDERS, wait_ms=10_000))
    await asyncio.sleep(0.3)

    await storage.queues.send(ORDERS, [NewMessage(b"one")])

    assert await asyncio.wait_for(gone, PATIENCE_S) == []
    [message] = await asyncio.wait_for(there, PATIENCE_S)
    assert message.receive_count == 1


async def test_receive_cancelled_while_waiting_takes_nothing(storage):
    waiting = asyncio.create_task(storage.queues.receive(ORDERS, wait_ms=10_000))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    await storage.queues.send(ORDERS, [NewMessage(b"still here")])

    assert len(await storage.queues.receive(ORDERS)) == 1


async def test_receive_cancelled_after_sending_returns_message(storage):
    await storage.queues.send(ORDERS, [NewMessage(b"one")])
    for _ in range(20):
        receiving = asyncio.create_task(storage.queues.receive(ORDERS))
        await asyncio.sleep(0.0005)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        if not receiving.cancelled():  # it was faster than its cancellation
            await storage.queues.release(ORDERS, receiving.result())

        [again] = await storage.queues.receive(ORDERS, wait_ms=2_000)
        await storage.queues.settle(
            ORDERS, [Settlement(again.receipt_handle, SettleAction.RELEASE)]
        )

        assert again.failures == again.crash_count == 0


async def test_tail_read_wakes_all_waiters(storage, monkeypatch):
    wait, all_wait = Waiter.wait, asyncio.Barrier(11)

    async def counted(waiter: Waiter, seconds: float) -> None:
        await all_wait.wait()
        await wait(waiter, seconds)

    monkeypatch.setattr(Waiter, "wait", counted)
    waiting = [
        asyncio.create_task(
            storage.record_reader.read_shard(CLICKS, 0, ReadFrom(tail=0), wait_ms=10_000)
        )
        for _ in range(10)
    ]
    await all_wait.wait()

    await storage.streams.append(CLICKS, [Record(b"news")])

    for read in await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S):
        assert [record.record.data for record in read.records] == [b"news"]


@pytest.mark.parametrize("redis_url", ["plain"], indirect=True)
async def test_unanswered_send_is_unknown_and_its_retry_adds_nothing(
    redis_url, database_url, tmp_path
):
    async with (
        running_fault_proxy(redis_url, tmp_path) as (url, faults),
        opened(url, database_url, redis_reply_ms_max=300) as storage,
    ):
        await storage.queues.send(ORDERS, [NewMessage(b"before")])
        faults.swallow_answers = True
        with pytest.raises(OutcomeUnknown):
            await storage.queues.send(ORDERS, [NewMessage(b"paid")], idempotency_key="k")
        faults.swallow_answers = False
        faults.cut()

        [sent] = await storage.queues.send(ORDERS, [NewMessage(b"paid")], idempotency_key="k")

        assert sent.duplicate
        assert (await storage.queues.stats(ORDERS)).ready == 2


@pytest.mark.parametrize("redis_url", ["plain"], indirect=True)
async def test_unreachable_store_is_unavailable_and_nothing_happened(
    redis_url, database_url, tmp_path
):
    async with (
        running_fault_proxy(redis_url, tmp_path) as (url, faults),
        opened(url, database_url) as storage,
    ):
        await storage.queues.send(ORDERS, [NewMessage(b"before")])
        faults.refuse = True
        faults.cut()
        await asyncio.sleep(0.05)
        with pytest.raises(StorageUnavailable):
            await storage.queues.send(ORDERS, [NewMessage(b"lost")])
        assert (await storage.health.check())["redis"] != "ok"
        faults.refuse = False

        await storage.queues.send(ORDERS, [NewMessage(b"after")])

        assert (await storage.queues.stats(ORDERS)).sent == 2


async def test_store_out_of_memory_is_reported_and_nothing_happened(storage, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"before")])
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(StorageFull):
                await storage.queues.send(ORDERS, [NewMessage(b"refused")])
        finally:
            client.config_set("maxmemory", 0)

    assert (await storage.queues.stats(ORDERS)).sent == 1


async def test_lost_scripts_are_loaded_again(storage, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"before")])
    with redis.Redis.from_url(redis_url) as client:
        client.script_flush()

    await storage.queues.send(ORDERS, [NewMessage(b"after")])

    assert (await storage.queues.stats(ORDERS)).sent == 2


async def test_excess_concurrent_calls_are_rejected_before_any_effect(redis_url, database_url):
    async with opened(redis_url, database_url, pipeline_backlog_max=10) as storage:
        await storage.queues.send(ORDERS, [NewMessage(b"before")])

        answers = await asyncio.gather(
            *(storage.queues.send(ORDERS, [NewMessage(b"x")]) for _ in range(50)),
            return_exceptions=True,
        )

        refused = [answer for answer in answers if isinstance(answer, StorageBusy)]
        assert refused
        assert (await storage.queues.stats(ORDERS)).sent == 51 - len(refused)


async def test_vanished_log_continues_above_all_earlier_offsets(storage, redis_url):
    [before] = await storage.queues.send(ORDERS, [NewMessage(b"before")])
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()

    [after] = await storage.queues.send(ORDERS, [NewMessage(b"after")])

    assert after.offset > before.offset
    assert (await storage.queues.stats(ORDERS)).ready == 1


@pytest.mark.parametrize("of", ["queue", "stream"])
async def test_store_change_while_creating_log_is_retried(storage, redis_url, monkeypatch, of):
    """After a fail-over, the creation of a log may be the first call to the new store."""
    send = {
        "queue": lambda: storage.queues.send(ORDERS, [NewMessage(b"x")]),
        "stream": lambda: storage.streams.append(CLICKS, [Record(b"x")]),
    }[of]
    create, changes = RedisLogStore.create, iter([True])

    async def changes_once(self: RedisLogStore, log: LogAddress, opening: LogOpening) -> bool:
        if next(changes, False):
            raise StoreChanged
        return await create(self, log, opening)

    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    monkeypatch.setattr(RedisLogStore, "create", changes_once)

    assert len(await send()) == 1
    assert not next(changes, False)


async def test_recreated_queue_is_another_queue(storage, redis_url, database_url):
    await storage.queues.send(ORDERS, [NewMessage(b"old")])
    async with opened(redis_url, database_url) as other:
        await other.queues.send(ORDERS, [NewMessage(b"old too")])

        await storage.catalog.delete_queue(ORDERS)
        with pytest.raises(QueueNotFound):
            await other.queues.send(ORDERS, [NewMessage(b"nowhere")])
        await storage.catalog.put_queue(ORDERS, QueueSpec())

        assert await other.queues.receive(ORDERS) == []
        await other.queues.send(ORDERS, [NewMessage(b"new")])
        [message] = await storage.queues.receive(ORDERS)
        assert message.body == b"new"


async def test_idempotency_keys_of_idle_log_expire(storage, redis_url):
    """Split and merged shards kept their idempotency keys for as long as the shard: a day."""
    stream, *_ = await storage.catalog.put_stream(CLICKS, StreamSpec())

    await storage.streams.append(CLICKS, [Record(b"x")], idempotency_key="k")

    with redis.Redis.from_url(redis_url) as client:
        left_ms = client.pttl(key("default", stream.shards[0].log_id, "idem"))
    assert 2 * IDEMPOTENCY_WINDOW_MS < left_ms <= 3 * IDEMPOTENCY_WINDOW_MS


async def test_offsets_are_reserved_ahead_of_fast_log(redis_url, database_url):
    async with opened(
        redis_url, database_url, reservation_offsets_min=10, reservation_ms=0
    ) as storage:
        for _ in range(20):
            await storage.streams.append(CLICKS, [Record(b"x")] * 25)

        [state] = await storage.record_reader.shards(CLICKS)

        assert state.next == 500


async def test_old_unsettled_messages_leave_log_and_are_delivered(storage, redis_url):
    await storage.queues.send(ORDERS, [NewMessage(b"straggler")])
    [straggler] = await storage.queues.receive(ORDERS)
    for _ in range(5):
        await storage.queues.send(ORDERS, [NewMessage(b"x")] * 1_000)
        received = await storage.queues.receive(ORDERS, messages_max=1_000)
        verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in received]
        await storage.queues.settle(ORDERS, verdicts)

    while await storage.queues.sweep(ORDERS):
        pass

    queue = await storage.catalog.queue(ORDERS)
    with redis.Redis.from_url(redis_url) as client:
        assert client.xlen(key("default", queue.log_id, "log")) == 0
    release = Settlement(straggler.receipt_handle, SettleAction.RELEASE)
    await storage.queues.settle(ORDERS, [release])
    [again] = await storage.queues.receive(ORDERS)
    assert again.body == b"straggler"
    assert (await storage.queues.stats(ORDERS)).in_flight == 1


# ── A flush is one transaction ──


def commits(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        info = client.info("commandstats")
    assert isinstance(info, dict)
    return int(info.get("cmdstat_exec", {"calls": 0})["calls"])


async def two_queues(storage: Storage) -> tuple[QueueName, QueueName]:
    other = QueueName("others")
    await storage.catalog.put_queue(other, QueueSpec())
    for name in (ORDERS, other):
        await storage.queues.send(name, [NewMessage(b"first")])
    return ORDERS, other


async def test_concurrent_writes_to_several_logs_share_transaction(storage, redis_url):
    names, before = await two_queues(storage), commits(redis_url)

    await asyncio.gather(*(storage.queues.send(name, [NewMessage(b"more")]) for name in names))

    with redis.Redis.from_url(redis_url) as client:
        of_a_cluster = client.info("cluster")["cluster_enabled"]
    assert commits(redis_url) - before == (0 if of_a_cluster else 1)
    assert [(await storage.queues.stats(name)).ready for name in names] == [2, 2]


async def test_failing_write_does_not_affect_its_transaction(storage, redis_url):
    names = await two_queues(storage)
    log = (await storage.catalog.queue(ORDERS)).log_id
    with redis.Redis.from_url(redis_url) as client:
        client.delete(key("default", log, "records"))
        client.set(key("default", log, "records"), "not what a script expects")

        sent = await asyncio.gather(
            storage.queues.receive(ORDERS),
            storage.queues.send(names[1], [NewMessage(b"more")]),
            return_exceptions=True,
        )

    assert isinstance(sent[0], ScriptFailed)
    assert isinstance(sent[1], list)
    assert (await storage.queues.stats(names[1])).ready == 2


async def test_write_rejected_by_server_fails_all_and_nothing_happened(storage, redis_url):
    names = await two_queues(storage)
    with redis.Redis.from_url(redis_url) as client:
        client.config_set(
            "min-replicas-to-write", 2
        )  # each server of the suite's cluster has one replica
        try:
            sent = await asyncio.gather(
                *(storage.queues.send(name, [NewMessage(b"more")]) for name in names),
                return_exceptions=True,
            )
        finally:
            client.config_set("min-replicas-to-write", 0)

    assert [type(message) for message in sent] == [StorageUnavailable] * 2
    assert [(await storage.queues.stats(name)).ready for name in names] == [1, 1]


async def test_lost_scripts_are_loaded_again_within_transaction(storage, redis_url):
    names = await two_queues(storage)
    with redis.Redis.from_url(redis_url) as client:
        client.script_flush()

    await asyncio.gather(*(storage.queues.send(name, [NewMessage(b"more")]) for name in names))

    assert [(await storage.queues.stats(name)).ready for name in names] == [2, 2]
