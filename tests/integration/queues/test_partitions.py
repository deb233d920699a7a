"""Queues with partitions: one queue to every user."""

import asyncio
from collections import Counter
from unittest import mock

import pytest
from msgspec.structs import replace

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import (
    IdempotencyKeyReused,
    InFlightLimitReached,
    MessageNotFound,
    OutcomeUnknown,
    ProducerFenced,
    PurgeInProgress,
    QueueFull,
    QueueNotFound,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import (
    BrowsedMessage,
    NewMessage,
    SettleAction,
    Settlement,
    WhichDead,
)
from storage.domain.queues.partitions import partition_of
from storage.domain.queues.queue import DeadLetterTarget, DedupScope
from storage.domain.streams.stream import ReadFrom
from storage.hot_store.wakeups import Wakeups
from storage.queues.receive_request import ReceiveRequest
from storage.redis.queues.messages import RedisQueueStore
from storage.redis.queues.transfer import RedisTransferStore
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.queue_operations import DEAD, LINE, WORK, create_queue, receive, send, settle

BODIES = [b"%d" % number for number in range(60)]


async def create(engines, name=WORK, partitions=4, **spec):
    if name.name.endswith(".fifo"):
        spec.setdefault("dedup_scope", DedupScope.GROUP)
    await create_queue(engines, name, partitions=partitions, **spec)
    return await engines.catalog.queue(name)


async def receive_all(queues, name, messages_max=10):
    """Receive and acknowledge until an answer is empty; return the messages."""
    messages = []
    while received := await queues.receive(name, messages_max=messages_max):
        messages += received
        verdicts = [Settlement(one.receipt_handle, SettleAction.ACK) for one in received]
        assert all(one.error is None for one in await queues.settle(name, verdicts))
    return messages


def partitions_of(messages):
    return [message.offset // limits.PARTITION_OFFSETS for message in messages]


async def test_messages_go_to_partitions_in_turn(engines):
    await create(engines)
    for body in BODIES:
        await send(engines.queues, WORK, body)

    messages = await receive_all(engines.queues, WORK)

    assert sorted(message.body for message in messages) == sorted(BODIES)
    assert set(Counter(partitions_of(messages)).values()) == {15}
    assert (await engines.queues.stats(WORK)).acknowledged == 60


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
            [message] = await asyncio.wait_for(waiting, 5)

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
    [message] = await asyncio.wait_for(waiting, 10)

    assert message.body == b"one"


async def test_many_long_polls_share_what_comes(engines):
    await create(engines, partitions=5)
    waiting = wait_for_messages(engines, 20, messages_max=2)
    await all_wait(engines, 20)

    await asyncio.gather(*(send(engines.queues, WORK, body) for body in BODIES[:40]))
    received = await asyncio.wait_for(asyncio.gather(*waiting), 10)
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
        received = await asyncio.wait_for(asyncio.gather(*waiting), 10)

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


async def test_receive_asks_at_most_one_partition_that_has_nothing(engines):
    await create(engines, partitions=16)
    await engines.queues.send(WORK, [NewMessage(body) for body in BODIES])
    await engines.queues.receive(WORK, messages_max=10)  # learns which partition has messages

    with mock.patch.object(
        RedisQueueStore, "receive", autospec=True, side_effect=RedisQueueStore.receive
    ) as receives:
        for _ in range(5):
            assert len(await engines.queues.receive(WORK, messages_max=10)) == 10

    assert receives.call_count <= 2 * 5


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
    failing = queue.partitions[1]

    async def receive_from(store, log, *args, **kwargs):
        if log.log_id == failing.log_id:
            raise StorageUnavailable
        return await real(store, log, *args, **kwargs)

    real = RedisQueueStore.receive
    with mock.patch.object(RedisQueueStore, "receive", receive_from):
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
    failing = queue.partitions[2]

    async def settle_in(store, log, *args, **kwargs):
        if log.log_id == failing.log_id:
            raise StorageUnavailable
        return await real(store, log, *args, **kwargs)

    real = RedisQueueStore.settle
    with mock.patch.object(RedisQueueStore, "settle", settle_in):
        settled = await engines.queues.settle(WORK, verdicts)
        with pytest.raises(StorageUnavailable):
            await engines.queues.settle(
                WORK, [v for v, p in zip(verdicts, partitions_of(messages), strict=True) if p == 2]
            )

    errors = dict(zip(partitions_of(messages), (one.error for one in settled), strict=True))
    assert errors == {0: None, 1: None, 2: "storage_unavailable"}


@pytest.fixture
def one_partition_fails(engines):
    """Make sends to the partition of a group fail."""

    def patch(log, error):
        real = RedisQueueStore.send

        async def send_to(store, to, *args, **kwargs):
            if to.log_id == log.log_id:
                raise error
            return await real(store, to, *args, **kwargs)

        return mock.patch.object(RedisQueueStore, "send", send_to)

    return patch


def groups_by_partition(queue):
    """Return a group of each partition."""
    return {partition_of(queue, f"g{nth}").partition: f"g{nth}" for nth in range(60)}


async def test_send_avoids_partition_that_is_away(engines, one_partition_fails):
    queue = await create(engines, partitions=3)

    with one_partition_fails(queue.partitions[1], StorageUnavailable()):
        sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[:9]]
        key = next(f"k{nth}" for nth in range(60) if partition_of(queue, f"k{nth}").partition == 1)
        with pytest.raises(StorageUnavailable):  # the key may be known there
            await engines.queues.send(WORK, [NewMessage(b"keyed")], idempotency_key=key)

    assert set(partitions_of(sent)) == {0, 2}


async def test_batch_of_several_partitions_is_completed_by_a_repeat(engines, one_partition_fails):
    queue = await create(engines, LINE, partitions=3)
    groups = groups_by_partition(queue)
    batch = [NewMessage(b"%d" % nth, group=groups[nth % 3], dedup_id=f"{nth}") for nth in range(9)]

    with one_partition_fails(queue.partitions[1], StorageUnavailable()):
        with pytest.raises(OutcomeUnknown):
            await engines.queues.send(LINE, batch)
        with pytest.raises(StorageUnavailable):  # nothing of these was added
            await engines.queues.send(LINE, [one for one in batch if one.group == groups[1]])
    with (
        one_partition_fails(queue.partitions[1], OutcomeUnknown("why")),
        pytest.raises(OutcomeUnknown, match="why"),
    ):
        await engines.queues.send(LINE, [one for one in batch if one.group == groups[1]])
    sent = await engines.queues.send(LINE, batch)

    assert [one.duplicate for one in sent] == [nth % 3 != 1 for nth in range(9)]
    assert (await engines.queues.stats(LINE)).ready == 9


async def test_rest_of_a_divided_call_is_sent_after_a_change(engines, one_partition_fails):
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
        one_partition_fails(partition_of(queue, moving[0]), StorageUnavailable()),
        pytest.raises(OutcomeUnknown),
    ):
        await engines.queues.send(WORK, batch, idempotency_key="k")
    await change_partitions(engines, 5)
    sent = await engines.queues.send(WORK, batch, idempotency_key="k")
    again = await engines.queues.send(WORK, batch, idempotency_key="k")

    assert [one.duplicate for one in sent] == [False, True]
    assert [one.message_id for one in again] == [one.message_id for one in sent]
    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == [b"1", b"2"]


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


async def test_messages_are_found_changed_and_deleted_by_reference(engines):
    await create(engines, history=True)
    sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[:8]]

    for nth, one in enumerate(sent):
        for reference in (one.message_id, str(one.offset)):
            shown = await engines.inspector.show(WORK, reference)
            assert (shown.offset, shown.body) == (one.offset, BODIES[nth])
        changed = await engines.inspector.change(WORK, one.message_id, delay_ms=60_000)
        assert changed.offset == one.offset
        await engines.inspector.replace(WORK, str(one.offset), b"new")
        assert (await engines.inspector.show(WORK, one.message_id)).body == b"new"
        history = await engines.inspector.history(WORK, one.message_id)
        assert history.offset == one.offset
        assert [event.type for event in history.events] == ["sent", "changed", "changed"]
        await engines.inspector.drop(WORK, one.message_id)
        with pytest.raises(MessageNotFound):
            await engines.inspector.show(WORK, one.message_id)
    for reference in (str(limits.PARTITION_OFFSETS * 63), "9" * 16, "nonsense"):
        with pytest.raises(MessageNotFound):
            await engines.inspector.show(WORK, reference)


@pytest.mark.parametrize("page", [1, 7, 100])
async def test_browsing_by_pages_shows_each_message_once(engines, page):
    await create(engines)
    for body in BODIES:
        await send(engines.queues, WORK, body)

    shown: list[BrowsedMessage] = []
    after: int | None = -1
    while after is not None:
        messages, after = await engines.inspector.browse(
            WORK, after_offset=after, messages_max=page
        )
        assert len(messages) <= page
        shown += messages

    assert sorted(message.body for message in shown) == sorted(BODIES)
    assert [message.offset for message in shown] == sorted(message.offset for message in shown)


async def test_dead_letters_of_all_partitions_are_one_list(engines):
    await create(engines)
    for body in BODIES[:20]:
        await send(engines.queues, WORK, body)
    for message in [one for _ in range(20) for one in await engines.queues.receive(WORK)]:
        await settle(engines.queues, WORK, message, SettleAction.REJECT, reason="bad")

    letters, last = await engines.dead_letters.browse(WORK, messages_max=100)
    [reason] = await engines.dead_letters.reasons(WORK)
    chosen = [letters[3].message_id, str(letters[17].offset)]
    by_reference = await engines.dead_letters.redrive(WORK, WhichDead(references=tuple(chosen)))
    some = await engines.dead_letters.redrive(WORK, messages_max=7)
    rest = await engines.dead_letters.redrive(WORK)

    assert (len(letters), last, reason.count) == (20, None, 20)
    assert (by_reference, some, rest) == (2, 7, 11)
    assert (await engines.queues.stats(WORK)).ready == 20


@pytest.mark.parametrize("target_partitions", [1, 3])
async def test_messages_received_in_vain_move_to_dead_letter_queue(
    engines, clock, target_partitions
):
    await create(engines, DEAD, partitions=target_partitions)
    await create(engines, dead_letters=DeadLetterTarget("dead", 1))
    for body in BODIES:
        await send(engines.queues, WORK, body)
    for _ in range(2):
        while await engines.queues.receive(WORK, messages_max=100, visibility_timeout_ms=1_000):
            pass
        clock.advance(ms=1_000)
    for _ in range(3):
        await engines.queues.sweep(WORK)

    dead = await receive_all(engines.queues, DEAD)
    stats = await engines.queues.stats(WORK)

    assert sorted(message.body for message in dead) == sorted(BODIES)
    assert (stats.moved_out, stats.moving, stats.ready) == (60, 0, 0)


async def test_move_drains_every_partition(engines):
    await create(engines, DEAD, partitions=3)
    await create(engines, dead_letters=DeadLetterTarget("dead", 3))
    for body in BODIES:
        await send(engines.queues, DEAD, body)

    move = await engines.moves.start(DEAD, WORK)

    async def outcome():
        now = await engines.moves.get(move.move_id)
        return now.state, now.moved

    await eventually(outcome, ("completed", 60))
    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == sorted(BODIES)


async def test_purge_empties_every_partition(engines):
    await create(engines)
    for body in BODIES:
        await send(engines.queues, WORK, body)

    assert await engines.queues.purge(WORK, at_most_every_ms=60_000) == 60
    with pytest.raises(PurgeInProgress):
        await engines.queues.purge(WORK, at_most_every_ms=60_000)

    assert await receive(engines.queues, WORK) == []


async def test_parked_groups_of_all_partitions_are_one_list(engines):
    await create(engines, LINE)
    groups = sorted(f"g{nth}" for nth in range(9))
    for group in groups:
        await send(engines.queues, LINE, b"1", group=group)
        await engines.parked_groups.park(LINE, group, "why")

    first = await engines.parked_groups.browse(LINE, groups_max=4)
    rest = await engines.parked_groups.browse(LINE, after=first[-1].group, groups_max=100)

    assert [one.group for one in (*first, *rest)] == groups
    assert await receive(engines.queues, LINE) == []
    assert [await engines.parked_groups.resume(LINE, group) for group in groups] == [1] * 9
    assert len(await receive_all(engines.queues, LINE)) == 9


async def test_stream_view_has_a_shard_for_each_partition(engines):
    await create(engines, stream_view=True)
    sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES]
    stream = await engines.catalog.stream(StreamName("work"))

    shown = {}
    for shard in stream.shards:
        read = await engines.record_reader.read_shard(stream.name, shard.index, ReadFrom(offset=0))
        for record in read.records:
            shown[shard.index * limits.PARTITION_OFFSETS + record.offset] = record.record.data

    assert [shard.index for shard in stream.shards] == [0, 1, 2, 3]
    assert stream.spec.shards == 4
    assert shown == {one.offset: body for one, body in zip(sent, BODIES, strict=True)}


async def test_monotonic_producer_adds_each_message_once(engines):
    await create(engines)
    messages = [NewMessage(body) for body in BODIES]
    whole = list(range(60))

    first = await engines.queues.send_idempotent(WORK, "p", whole[:40], messages[:40])
    again = await engines.queues.send_idempotent(WORK, "p", whole[20:], messages[20:])

    assert (first.added, again.added, again.duplicates) == (40, 20, 20)
    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == sorted(BODIES)


async def test_deleted_queue_leaves_no_key_of_any_partition(engines, redis_url):
    queue = await create(engines)
    for body in BODIES[:8]:
        await send(engines.queues, WORK, body)
    logs = [partition.log_id for partition in queue.partitions]

    await engines.catalog.delete_queue(WORK)

    with pytest.raises(QueueNotFound):
        await engines.queues.send(WORK, [NewMessage(b"late")])
    deleted = await engines.catalog.deleted_logs(0)
    assert sorted(log_id for _, log_id in deleted) == sorted(logs)
    await engines.catalog.delete_tombstoned(logs[:1])
    assert len(await engines.catalog.deleted_logs(0)) == 4
    await engines.catalog.delete_tombstoned(logs)
    await engines.catalog.delete_tombstoned(logs[:1])
    assert await engines.catalog.deleted_logs(0) == []


async def test_partitions_of_fifo_queue_are_fixed(engines):
    await create(engines, LINE)
    with pytest.raises(ValidationFailed) as refused:
        await create(engines, LINE, partitions=5)
    assert refused.value.faults[0].pointer == "/partitions"


async def test_other_settings_reach_every_partition(engines):
    await create(engines)
    await create(engines, delay_ms=60_000)
    for body in BODIES[:8]:
        await send(engines.queues, WORK, body)

    stats = await engines.queues.stats(WORK)

    assert (stats.ready, stats.delayed) == (0, 8)
    queue = await engines.catalog.queue(WORK)
    assert {partition.spec.delay_ms for partition in queue.partitions} == {60_000}


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


async def change_partitions(engines, count, name=WORK):
    queue = await engines.catalog.change_queue(name, lambda spec: replace(spec, partitions=count))
    assert queue.spec.partitions == count
    return queue


@pytest.mark.parametrize("former", [1, 2, 5])
async def test_added_partitions_take_messages(engines, former):
    await create(engines, partitions=former)
    before = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[:20]]

    await change_partitions(engines, 8)
    after = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[20:]]

    assert len(set(partitions_of(after))) == 8
    browsed, _ = await engines.inspector.browse(WORK, messages_max=100)
    assert {one.offset for one in browsed} == {one.offset for one in (*before, *after)}
    messages = await receive_all(engines.queues, WORK)
    assert sorted(message.body for message in messages) == sorted(BODIES)


async def test_closed_partitions_take_nothing_and_are_emptied(engines):
    await create(engines, partitions=5, stream_view=True)
    for body in BODIES[:20]:
        await send(engines.queues, WORK, body)

    await change_partitions(engines, 2)
    after = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[20:]]

    assert set(partitions_of(after)) == {0, 1}
    messages = await receive_all(engines.queues, WORK)
    assert sorted(message.body for message in messages) == sorted(BODIES)
    assert len((await engines.catalog.stream(StreamName("work"))).shards) == 5


async def test_reopened_partition_continues_its_log(engines):
    await create(engines, partitions=3)
    for count in (1, 3, 2, 3):
        await change_partitions(engines, count)
        for body in BODIES[:6]:
            await send(engines.queues, WORK, body)

    queue = await engines.catalog.fresh_queue(WORK)
    messages = await receive_all(engines.queues, WORK)

    assert len(queue.partitions) == 3
    assert (len(messages), len({one.message_id for one in messages})) == (24, 24)


KEYED = {f"key-{body.decode()}": [NewMessage(body), NewMessage(body)] for body in BODIES}


async def send_keyed(engines, groups=()):
    """Send each key's messages; return the ids of all, by key."""
    ids = {}
    for key, messages in KEYED.items():
        grouped = [replace(one, group=group) for one, group in zip(messages, groups, strict=False)]
        sent = await engines.queues.send(WORK, grouped or messages, idempotency_key=key)
        ids[key] = [(one.message_id, one.offset) for one in sent]
    return ids


@pytest.mark.parametrize("groups", [(), ("a", "b")])
@pytest.mark.parametrize("counts", [(1, 4), (4, 7), (7, 3), (4, 7, 2, 9), (3, 5, 3)])
async def test_repeat_after_change_adds_nothing(engines, clock, counts, groups):
    """A key that was accepted before the number of partitions changed adds nothing again."""
    await create(engines, partitions=counts[0])
    first = await send_keyed(engines, groups)

    for count in counts[1:]:
        await change_partitions(engines, count)
        clock.advance(ms=60_000)
        assert await send_keyed(engines, groups) == first

    with pytest.raises(IdempotencyKeyReused):
        await engines.queues.send(WORK, [NewMessage(b"other")], idempotency_key="key-1")
    assert (await engines.queues.stats(WORK)).sent == 120


@pytest.mark.parametrize("counts", [(1, 4), (4, 7, 2), (3, 5, 3)])
async def test_producer_continues_after_change(engines, counts):
    await create(engines, partitions=counts[0])
    messages = [NewMessage(body, group=f"g{nth % 5}") for nth, body in enumerate(BODIES)]
    added, step = 0, 60 // len(counts)

    for nth, count in enumerate(counts):
        await change_partitions(engines, count)
        for producer in ("p", "q"):
            upto = step * (nth + 1)  # all from the beginning again
            done = await engines.queues.send_idempotent(
                WORK, producer, list(range(upto)), messages[:upto]
            )
            added += done.added

    assert added == 120
    bodies = Counter(message.body for message in await receive_all(engines.queues, WORK))
    assert bodies == Counter(dict.fromkeys(BODIES, 2))


async def test_retired_producer_is_refused_after_change(engines):
    await create(engines, partitions=3)
    await engines.queues.send_idempotent(WORK, "p", [0], [NewMessage(b"1")])
    await engines.queues.retire_writers(WORK, ["p"])

    await change_partitions(engines, 8)

    with pytest.raises(ProducerFenced):
        await engines.queues.send_idempotent(WORK, "p", [1], [NewMessage(b"2")])


@pytest.mark.parametrize("partitions", [1, 3])
async def test_process_that_missed_a_change_cannot_repeat_a_send(
    engines, redis_url, database_url, clock, partitions
):
    """A process with a stale definition is refused where another one has looked."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    await create(engines, partitions=partitions)
    async with open_storage(settings, clock=clock) as stale:
        former = await stale.catalog.queue(WORK)
        await change_partitions(engines, 8)
        with mock.patch.object(stale.catalog, "cached_queue", return_value=former):
            for key, messages in KEYED.items():
                sent = await engines.queues.send(WORK, messages, idempotency_key=key)
                again = await stale.queues.send(WORK, messages, idempotency_key=key)
                assert [one.message_id for one in again] == [one.message_id for one in sent]
                assert all(one.duplicate for one in again)
            bodies = [NewMessage(body) for body in BODIES]
            await engines.queues.send_idempotent(WORK, "p", list(range(60)), bodies)
            done = await stale.queues.send_idempotent(WORK, "p", list(range(60)), bodies)

    assert (done.added, done.duplicates) == (0, 60)
    assert (await engines.queues.stats(WORK)).sent == 180


async def test_put_without_number_keeps_partitions(engines):
    await create(engines, partitions=4)
    await create(engines, partitions=0, delay_ms=1_000)

    queue = await engines.catalog.queue(WORK)

    assert (queue.spec.partitions, len(queue.partitions), queue.spec.delay_ms) == (4, 4, 1_000)
    assert (await create(engines, QueueName("new"), partitions=0)).spec.partitions == 1


async def test_arrivals_are_recognized_after_change(engines, clock):
    """A transfer that is repeated after the target got more partitions adds nothing."""
    await create(engines, DEAD, partitions=2)
    await create(engines, dead_letters=DeadLetterTarget("dead", 1))
    for body in BODIES[:20]:
        await send(engines.queues, WORK, body)
    while await engines.queues.receive(WORK, messages_max=100, visibility_timeout_ms=1_000):
        pass
    clock.advance(ms=1_000)

    clear = RedisTransferStore.clear
    with mock.patch.object(RedisTransferStore, "clear", side_effect=StorageUnavailable):
        assert await engines.queues.receive(WORK, messages_max=100) == []
    assert RedisTransferStore.clear is clear
    await change_partitions(engines, 7, DEAD)
    for _ in range(4):
        await engines.queues.sweep(WORK)

    dead = await receive_all(engines.queues, DEAD)
    assert sorted(message.body for message in dead) == sorted(BODIES[:20])
    assert (await engines.queues.stats(WORK)).moving == 0


async def test_view_of_every_partition_is_trimmed(engines, clock):
    await create(engines, stream_view=True, retention_ms=60_000)
    for body in BODIES[:20]:
        await send(engines.queues, WORK, body)
    clock.advance(ms=60_001)

    for _ in range(4):
        await engines.queues.sweep(WORK)

    view = await engines.catalog.stream(StreamName("work"))
    for shard in view.shards:
        read = await engines.record_reader.read_shard(view.name, shard.index, ReadFrom(time_ms=0))
        assert (read.start, read.tip, read.records) == (5, 5, [])
