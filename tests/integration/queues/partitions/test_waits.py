"""Receives that wait for the messages of any partition."""

import asyncio
from unittest import mock

import pytest

from storage.domain.queues.message import (
    NewMessage,
)
from storage.domain.queues.partitions import partition_of
from storage.hot_store.wakeups import Wakeups
from storage.queues.receive_request import ReceiveRequest
from storage.redis.queues.messages import RedisQueueStore
from tests.conditions import PATIENCE_S, eventually
from tests.integration.queues.partitions.operations import (
    BODIES,
    change_partitions,
    create,
    receive_all,
)
from tests.queue_operations import WORK, receive, send


def wait_for_messages(engines, count, messages_max=10):
    """Start receives that wait; return them once all of them do."""
    return [
        asyncio.create_task(engines.queues.receive(WORK, messages_max=messages_max, wait_ms=20_000))
        for _ in range(count)
    ]


async def all_wait(engines, count):
    async def waiting():
        return engines.queues._wakeups.count

    await eventually(waiting, count)


async def test_long_poll_is_woken_by_any_partition(engines):
    """The wake-up names the partition: no other one is asked again."""
    await create(engines, partitions=8)
    assert await receive(engines.queues, WORK) == []  # creates the logs
    for number in range(8):
        with mock.patch.object(
            RedisQueueStore, "receive", autospec=True, side_effect=RedisQueueStore.receive
        ) as receives:

            async def asked(receives=receives):
                return receives.call_count

            [waiting] = wait_for_messages(engines, 1)
            await eventually(asked, 8)
            await send(engines.queues, WORK, b"%d" % number)
            [message] = await asyncio.wait_for(waiting, PATIENCE_S)

        assert message.body == b"%d" % number
        assert receives.call_count == 9


@pytest.mark.parametrize("former", [1, 2])
async def test_long_poll_notices_added_partitions(engines, former):
    """A receive of a socket waits for ever: it must not wait for the former partitions alone."""
    await create(engines, partitions=former)
    waiting = asyncio.create_task(engines.queues.receive(WORK, forever=True))
    await all_wait(engines, 1)
    queue = await change_partitions(engines, 6)
    key = next(f"k{n}" for n in range(60) if partition_of(queue, f"k{n}").partition >= former)

    await engines.queues.send(WORK, [NewMessage(b"one")], idempotency_key=key)
    engines.queues._wakeups.wake_all()  # as periodically
    [message] = await asyncio.wait_for(waiting, PATIENCE_S)

    assert message.body == b"one"


async def test_many_long_polls_share_what_comes(engines):
    await create(engines, partitions=5)
    waiting = wait_for_messages(engines, 20, messages_max=2)
    await all_wait(engines, 20)

    await asyncio.gather(*(send(engines.queues, WORK, body) for body in BODIES[:40]))
    received = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    rest = await receive_all(engines.queues, WORK)

    bodies = [message.body for messages in received for message in messages]
    assert all(received)
    assert sorted([*bodies, *(one.body for one in rest)]) == sorted(BODIES[:40])


async def test_one_wake_up_serves_all_who_wait_for_a_batch(engines):
    await create(engines, partitions=3)
    waiting = wait_for_messages(engines, 6, messages_max=1)
    await all_wait(engines, 6)

    with mock.patch.object(Wakeups, "wake_all"):  # by which they would read in the end
        await engines.queues.send(WORK, [NewMessage(body) for body in BODIES[:6]])
        received = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)

    assert sorted(message.body for [message] in received) == sorted(BODIES[:6])


async def test_partitions_that_were_not_asked_are_left_to_others(engines):
    queue = await create(engines, partitions=3)
    logs = [partition.log_id for partition in queue.partitions]
    for body in BODIES[:3]:  # in turn: each partition has one
        await send(engines.queues, WORK, body)
    request = ReceiveRequest(1, None, "", False, 1_000, None)
    with engines.queues._wakeups.waiting(logs, alone=True) as waiter:
        for log_id in logs:
            waiter.wake(log_id)

        received = await engines.queues._receive(request, waiter, queue)

        assert len(received.messages) == 1
        assert waiter.take_woken() == set(logs)
