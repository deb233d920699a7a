"""Changes of the number of partitions: nothing is repeated, nothing is left behind."""

from collections import Counter
from unittest import mock

import pytest
from msgspec.structs import replace

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import (
    IdempotencyKeyReused,
    ProducerFenced,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import (
    NewMessage,
)
from storage.domain.queues.partitions import home_of
from storage.domain.queues.queue import DeadLetterTarget
from storage.redis.queues.transfer import RedisTransferStore
from storage.settings import StorageSettings
from tests.integration.queues.partitions.operations import (
    BODIES,
    change_partitions,
    create,
    partitions_of,
    receive_all,
)
from tests.queue_operations import DEAD, LINE, WORK, send

KEYED = {f"key-{body.decode()}": [NewMessage(body), NewMessage(body)] for body in BODIES}


async def send_keyed(engines, groups=()):
    """Send each key's messages; return the ids of all, by key."""
    ids = {}
    for key, messages in KEYED.items():
        grouped = [replace(one, group=group) for one, group in zip(messages, groups, strict=False)]
        sent = await engines.queues.send(WORK, grouped or messages, idempotency_key=key)
        ids[key] = [(one.message_id, one.offset) for one in sent]
    return ids


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


async def test_transfers_have_the_same_partition_for_ever(engines, clock):
    """Former numbers that nobody asks for any more were dropped, and with them the first one."""
    await create(engines, partitions=2)
    homes = set()
    for count in (2, 5, 2, 7, 3, 2, 9):
        queue = await change_partitions(engines, count)
        homes.add(tuple(home_of(queue, f"k{nth}").log_id for nth in range(20)))
        clock.advance(ms=2 * limits.PARTITION_MEMORY_MS)

    assert len(homes) == 1
