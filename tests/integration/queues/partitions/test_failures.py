"""Partitions that fail while others do not, and callers that leave."""

import asyncio
from unittest import mock

import pytest

from storage.domain.errors import (
    OutcomeUnknown,
    StorageUnavailable,
)
from storage.domain.queues.message import (
    NewMessage,
    SettleAction,
    Settlement,
)
from storage.domain.queues.partitions import partition_of
from storage.redis.queues.messages import RedisQueueStore
from tests.integration.queues.partitions.operations import (
    BODIES,
    change_partitions,
    create,
    partitions_of,
    receive_all,
)
from tests.queue_operations import LINE, WORK, send, settle


def failing(verb, log, error):
    """Make a verb of the store fail in one partition."""
    real = getattr(RedisQueueStore, verb)

    async def unless_failing(store, address, *args, **kwargs):
        if address.log_id == log.log_id:
            raise error
        return await real(store, address, *args, **kwargs)

    return mock.patch.object(RedisQueueStore, verb, unless_failing)


def groups_by_partition(queue):
    """Return a group of each partition."""
    return {partition_of(queue, f"g{nth}").partition: f"g{nth}" for nth in range(60)}


async def test_receive_that_is_cancelled_between_partitions_releases(engines):
    """Messages of one partition are not kept when the caller leaves while another is asked."""
    await create(engines, partitions=2)
    await send(engines.queues, WORK, b"1")
    await send(engines.queues, WORK, b"2")
    for _ in range(2):  # both are known to have messages
        for message in await engines.queues.receive(WORK, messages_max=1):
            await settle(engines.queues, WORK, message, SettleAction.RELEASE)
    asked, proceed = asyncio.Event(), asyncio.Event()
    receives = iter([False, True])

    async def slow(*args, **kwargs):
        if next(receives):
            asked.set()
            await proceed.wait()
        return await real(*args, **kwargs)

    real = RedisQueueStore.receive
    with mock.patch.object(RedisQueueStore, "receive", slow):
        receiving = asyncio.create_task(engines.queues.receive(WORK, messages_max=10))
        await asked.wait()
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
    await engines.queues.close()

    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == [b"1", b"2"]


async def test_partition_that_fails_does_not_stop_others(engines):
    queue = await create(engines, partitions=3)
    for body in BODIES[:9]:
        await send(engines.queues, WORK, body)
    with failing("receive", queue.partitions[1], StorageUnavailable()):
        received = [await engines.queues.receive(WORK, messages_max=1) for _ in range(6)]
        with pytest.raises(StorageUnavailable):  # what it has is unknown: no empty result
            await engines.queues.receive(WORK)

    assert [len(messages) for messages in received] == [1] * 6


async def test_settlements_of_failing_partition_have_its_error(engines):
    queue = await create(engines, partitions=3)
    for body in BODIES[:3]:
        await send(engines.queues, WORK, body)
    messages = [one for _ in range(3) for one in await engines.queues.receive(WORK)]
    verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in messages]
    with failing("settle", queue.partitions[2], StorageUnavailable()):
        settled = await engines.queues.settle(WORK, verdicts)
        with pytest.raises(StorageUnavailable):
            await engines.queues.settle(
                WORK, [v for v, p in zip(verdicts, partitions_of(messages), strict=True) if p == 2]
            )

    errors = dict(zip(partitions_of(messages), (one.error for one in settled), strict=True))
    assert errors == {0: None, 1: None, 2: "storage_unavailable"}


async def test_send_avoids_partition_that_is_away(engines):
    queue = await create(engines, partitions=3)

    with failing("send", queue.partitions[1], StorageUnavailable()):
        sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[:9]]
        key = next(f"k{nth}" for nth in range(60) if partition_of(queue, f"k{nth}").partition == 1)
        with pytest.raises(StorageUnavailable):  # the key may be known there
            await engines.queues.send(WORK, [NewMessage(b"keyed")], idempotency_key=key)

    assert set(partitions_of(sent)) == {0, 2}


async def test_batch_of_several_partitions_is_completed_by_a_repeat(engines):
    queue = await create(engines, LINE, partitions=3)
    groups = groups_by_partition(queue)
    batch = [NewMessage(b"%d" % nth, group=groups[nth % 3], dedup_id=f"{nth}") for nth in range(9)]

    with failing("send", queue.partitions[1], StorageUnavailable()):
        with pytest.raises(OutcomeUnknown):
            await engines.queues.send(LINE, batch)
        with pytest.raises(StorageUnavailable):  # nothing of these was added
            await engines.queues.send(LINE, [one for one in batch if one.group == groups[1]])
    with (
        failing("send", queue.partitions[1], OutcomeUnknown("why")),
        pytest.raises(OutcomeUnknown, match="why"),
    ):
        await engines.queues.send(LINE, [one for one in batch if one.group == groups[1]])
    sent = await engines.queues.send(LINE, batch)

    assert [one.duplicate for one in sent] == [nth % 3 != 1 for nth in range(9)]
    assert (await engines.queues.stats(LINE)).ready == 9


async def test_rest_of_a_divided_call_is_sent_after_a_change(engines):
    """The rest of a call may belong to a partition that has another part of it."""
    queue = await create(engines, partitions=4)
    first = groups_by_partition(queue)
    wider = await change_partitions(engines, 5)
    await change_partitions(engines, 4)
    moving = next(
        (one, other)
        for nth in range(500)
        for one in [f"m{nth}"]
        for other in first.values()
        if partition_of(queue, one).partition != partition_of(queue, other).partition
        and partition_of(wider, one).partition == partition_of(queue, other).partition
    )
    batch = [NewMessage(b"1", group=moving[0]), NewMessage(b"2", group=moving[1])]

    with (
        failing("send", partition_of(queue, moving[0]), StorageUnavailable()),
        pytest.raises(OutcomeUnknown),
    ):
        await engines.queues.send(WORK, batch, idempotency_key="k")
    await change_partitions(engines, 5)
    sent = await engines.queues.send(WORK, batch, idempotency_key="k")
    again = await engines.queues.send(WORK, batch, idempotency_key="k")

    assert [one.duplicate for one in sent] == [False, True]
    assert [one.message_id for one in again] == [one.message_id for one in sent]
    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == [b"1", b"2"]
