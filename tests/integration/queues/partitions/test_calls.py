"""Sends, receives and settlements of a queue with partitions, and its caps."""

import asyncio
from collections import Counter
from unittest import mock

import pytest

from storage.domain import limits
from storage.domain.errors import (
    IdempotencyKeyReused,
    InFlightLimitReached,
    QueueFull,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.message import (
    NewMessage,
    SettleAction,
    Settlement,
)
from storage.domain.queues.partitions import partition_of
from storage.redis.queues.messages import RedisQueueStore
from storage.redis.queues.send import Sends
from tests.integration.queues.partitions.operations import (
    BODIES,
    create,
    partitions_of,
    receive_all,
)
from tests.queue_operations import LINE, WORK, create_queue, receive, send


async def test_messages_go_to_partitions_in_turn(engines):
    await create(engines)
    for body in BODIES:
        await send(engines.queues, WORK, body)

    messages = await receive_all(engines.queues, WORK)

    assert sorted(message.body for message in messages) == sorted(BODIES)
    assert set(Counter(partitions_of(messages)).values()) == {15}
    assert (await engines.queues.stats(WORK)).acknowledged == 60


async def test_sends_that_arrive_together_share_a_partition(engines):
    """In few script calls; those that arrive later have the turn of another one."""
    await create(engines)

    turns = []
    for _ in range(8):
        with mock.patch.object(
            Sends, "_command", autospec=True, side_effect=Sends._command
        ) as calls:
            sending = [engines.queues.send(WORK, [NewMessage(body)]) for body in BODIES]
            sent = [message for [message] in await asyncio.gather(*sending)]
        assert calls.call_count < 4  # fewer than partitions; a busy machine needs a third one
        [partition] = {*partitions_of(sent)}
        turns.append(partition)

    assert Counter(turns) == dict.fromkeys(range(4), 2)


async def test_batch_without_groups_stays_whole(engines):
    await create(engines)

    sent = await engines.queues.send(WORK, [NewMessage(body) for body in BODIES])

    assert len(set(partitions_of(sent))) == 1
    assert [message.offset - sent[0].offset for message in sent] == list(range(60))


async def test_message_ids_and_offsets_of_results_are_equal(engines):
    await create(engines)
    sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES]

    browsed, last = await engines.inspector.browse(WORK, messages_max=100)
    received = await receive_all(engines.queues, WORK)

    known = {(message.message_id, message.offset) for message in sent}
    assert {(message.message_id, message.offset) for message in browsed} == known
    assert {(message.message_id, message.offset) for message in received} == known
    assert last is None
    assert len(known) == 60


async def test_repeat_with_idempotency_key_adds_nothing(engines):
    await create(engines)
    first = {}
    for body in BODIES:
        key = f"key-{body.decode()}"
        [first[key]] = await engines.queues.send(WORK, [NewMessage(body)], idempotency_key=key)

    for body in BODIES:
        key = f"key-{body.decode()}"
        [again] = await engines.queues.send(WORK, [NewMessage(body)], idempotency_key=key)
        assert (again.message_id, again.duplicate) == (first[key].message_id, True)
        with pytest.raises(IdempotencyKeyReused):
            await engines.queues.send(WORK, [NewMessage(b"other")], idempotency_key=key)

    assert len({one.offset // limits.PARTITION_OFFSETS for one in first.values()}) == 4
    assert (await engines.queues.stats(WORK)).ready == 60


async def test_groups_are_ordered_and_each_in_one_partition(engines):
    queue = await create(engines, LINE)
    batch = [NewMessage(b"%d" % nth, group=f"g{nth % 7}") for nth in range(70)]

    sent = await engines.queues.send(LINE, batch, idempotency_key="k")
    again = await engines.queues.send(LINE, batch, idempotency_key="k")
    messages = await receive_all(engines.queues, LINE)

    expected = [partition_of(queue, one.group).partition for one in batch]
    assert partitions_of(sent) == expected
    assert len(set(expected)) > 1
    assert [one.message_id for one in again] == [one.message_id for one in sent]
    for group in range(7):
        bodies = [int(one.body) for one in messages if one.group == f"g{group}"]
        assert bodies == list(range(group, 70, 7))


async def test_fifo_attempt_gets_same_messages_again(engines):
    await create(engines, LINE)
    for nth in range(12):
        await send(engines.queues, LINE, b"%d" % nth, group=f"g{nth}")

    first = await engines.queues.receive(LINE, messages_max=5, attempt_id="a")
    again = await engines.queues.receive(LINE, messages_max=5, attempt_id="a")
    other = await engines.queues.receive(LINE, messages_max=10, attempt_id="b")

    assert first
    assert {one.message_id for one in again} == {one.message_id for one in first}
    assert {one.message_id for one in other}.isdisjoint(one.message_id for one in first)


async def test_fifo_queue_requires_group_scope(engines):
    with pytest.raises(ValidationFailed, match="invalid") as refused:
        await create_queue(engines, LINE, partitions=2)
    assert refused.value.faults[0].pointer == "/dedup_scope"


@pytest.mark.parametrize("partitions", [-1, 65])
async def test_partitions_out_of_range_are_refused(engines, partitions):
    with pytest.raises(ValidationFailed):
        await create_queue(engines, WORK, partitions=partitions)


async def test_empty_result_means_every_partition_is_empty(engines):
    """A receive never says that nothing is there while a partition has a message."""
    await create(engines, partitions=16)
    for _ in range(16):
        await send(engines.queues, WORK, b"one")

    received = [await receive(engines.queues, WORK, 10) for _ in range(16)]

    assert sum(map(len, received)) == 16
    assert await receive(engines.queues, WORK) == []


async def test_every_partition_is_served_while_others_are_busy(engines):
    """Bound: of as many receives as there are partitions, each partition comes first in one."""
    await create(engines)
    for _ in range(3):
        for body in BODIES:
            await send(engines.queues, WORK, body)

    received = [await engines.queues.receive(WORK, messages_max=5) for _ in range(4)]

    assert len({messages[0].offset // limits.PARTITION_OFFSETS for messages in received}) == 4


async def test_receive_asks_at_most_one_partition_that_has_nothing(engines):
    await create(engines, partitions=16)
    await engines.queues.receive(WORK)  # makes the logs of all partitions
    await engines.queues.send(WORK, [NewMessage(body) for body in BODIES])
    await engines.queues.receive(WORK, messages_max=10)  # learns which partition has messages

    with mock.patch.object(
        RedisQueueStore, "receive", autospec=True, side_effect=RedisQueueStore.receive
    ) as receives:
        for _ in range(5):
            assert len(await engines.queues.receive(WORK, messages_max=10)) == 10

    assert receives.call_count <= 2 * 5


async def test_caps_hold_for_sum_of_partitions(engines):
    await create(engines, messages_max=10, in_flight_max=8)
    for body in BODIES[:12]:  # 3 of each partition: a share is rounded up
        await send(engines.queues, WORK, body)

    with pytest.raises(QueueFull):
        await send(engines.queues, WORK, b"more")
    received = [await receive(engines.queues, WORK, 2) for _ in range(4)]

    assert sum(map(len, received)) == 8
    with pytest.raises(InFlightLimitReached):
        await engines.queues.receive(WORK)


async def test_send_goes_to_partition_with_room(engines):
    await create(engines, messages_max=12)
    await engines.queues.send(WORK, [NewMessage(body) for body in BODIES[:3]])  # one is full

    for body in BODIES[3:12]:
        await send(engines.queues, WORK, body)

    assert (await engines.queues.stats(WORK)).ready == 12
    with pytest.raises(QueueFull):
        await send(engines.queues, WORK, b"more")


async def test_monotonic_producer_adds_each_message_once(engines):
    await create(engines)
    messages = [NewMessage(body) for body in BODIES]
    whole = list(range(60))

    first = await engines.queues.send_idempotent(WORK, "p", whole[:40], messages[:40])
    again = await engines.queues.send_idempotent(WORK, "p", whole[20:], messages[20:])

    assert (first.added, again.added, again.duplicates) == (40, 20, 20)
    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == sorted(BODIES)


async def test_unknown_receipt_handle_is_invalid_beside_others(engines):
    other = QueueName("other")
    await create(engines)
    await create(engines, other)
    for body in BODIES[:8]:
        await send(engines.queues, WORK, body)
    await send(engines.queues, other, b"x")
    mine = [one for _ in range(8) for one in await engines.queues.receive(WORK, messages_max=1)]
    [stranger] = await engines.queues.receive(other)
    handles = [mine[0].receipt_handle, stranger.receipt_handle, "?", mine[1].receipt_handle]

    settled = await engines.queues.settle(
        WORK, [Settlement(handle, SettleAction.ACK) for handle in handles]
    )

    assert [one.error for one in settled] == [
        None,
        "receipt_handle_invalid",
        "receipt_handle_invalid",
        None,
    ]
