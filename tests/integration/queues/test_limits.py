"""Limits of what a queue holds, and overflow policies."""

import pytest

from storage.bootstrap import Storage
from storage.domain.errors import QueueFull, ValidationFailed
from storage.domain.log.record_batch import SOURCE_STREAM
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import QueueStats
from storage.queues.engine import Queues
from tests.queue_operations import DEAD, LINE, WORK, create_queue, receive, send, settle


async def acknowledge_all(queues: Queues, most: int) -> list[bytes]:
    received = await queues.receive(WORK, messages_max=most)
    verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in received]
    await queues.settle(WORK, verdicts)
    return [message.body for message in received]


async def weight_of(engines: Storage, body: bytes) -> int:
    """Measure the stored size of a message."""
    await create_queue(engines, DEAD)
    await send(engines.queues, DEAD, body)
    return (await engines.queues.stats(DEAD)).bytes_held


async def test_full_queue_rejects_whole_batch(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=3)
    await send(queues, WORK, b"1", b"2")

    with pytest.raises(QueueFull):
        await send(queues, WORK, b"3", b"4")
    await send(queues, WORK, b"5")

    assert await receive(queues, WORK) == [b"1", b"2", b"5"]


async def test_in_flight_messages_count_until_acknowledged(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=1)
    await send(queues, WORK, b"1")
    [message] = await queues.receive(WORK)

    with pytest.raises(QueueFull):
        await send(queues, WORK, b"2")
    await settle(queues, WORK, message, SettleAction.ACK)
    await send(queues, WORK, b"3")

    assert await receive(queues, WORK) == [b"3"]


@pytest.mark.parametrize("size", [1, 100, 300, 70_000])
async def test_byte_limit_is_exact(engines, size):
    queues, weight = engines.queues, await weight_of(engines, b"x" * size)
    await create_queue(engines, WORK, bytes_max=3 * weight)
    await send(queues, WORK, *[b"x" * size] * 3)

    with pytest.raises(QueueFull):
        await send(queues, WORK, b"y")

    for _ in range(2):  # plain acknowledgements of first deliveries, and of later ones
        assert len(await acknowledge_all(queues, 3)) == 3
        assert (await queues.stats(WORK)).bytes_held == 0
        await send(queues, WORK, *[b"x" * size] * 3)


async def test_bytes_held_follow_every_state_change(engines, clock):
    queues = engines.queues
    weight = await weight_of(engines, b"12")
    await create_queue(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, *[b"%02d" % number for number in range(10)])

    async def held() -> int:
        stats: QueueStats = await queues.stats(WORK)
        return stats.bytes_held // weight

    assert await held() == 10
    first, second, third = await queues.receive(WORK, messages_max=3)
    await settle(queues, WORK, first, SettleAction.REJECT)
    assert await held() == 9
    await engines.dead_letters.redrive(WORK)
    assert await held() == 10
    await settle(queues, WORK, second, SettleAction.NACK)
    await settle(queues, WORK, third, SettleAction.ACK)
    await engines.inspector.drop(WORK, "9")
    await engines.inspector.drop(WORK, "1")
    assert await held() == 7
    await engines.inspector.change(WORK, "8", priority=3)
    await engines.inspector.replace(WORK, "7", b"77")
    assert await held() == 7
    clock.advance(ms=59_999)
    await send(queues, WORK, b"new")
    clock.advance(ms=1)
    assert await held() == 1
    await queues.purge(WORK)
    assert (await queues.stats(WORK)).bytes_held == 0


async def test_overflow_drops_oldest_but_not_in_flight_messages(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=3, overflow=Overflow.DROP_OLDEST)
    await send(queues, WORK, b"1", b"2", b"3")
    [first] = await queues.receive(WORK)

    await send(queues, WORK, b"4")
    stats = await queues.stats(WORK)

    assert first.body == b"1"
    assert await receive(queues, WORK) == [b"3", b"4"]
    assert (stats.dropped, stats.sent, stats.ready, stats.in_flight) == (1, 4, 2, 1)


async def test_overflow_drops_first_sent_message_even_after_release(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=2, overflow=Overflow.DROP_OLDEST)
    await send(queues, WORK, b"1", b"2")
    [first] = await queues.receive(WORK)
    await settle(queues, WORK, first, SettleAction.RELEASE)

    await send(queues, WORK, b"3")

    assert await receive(queues, WORK) == [b"2", b"3"]


async def test_fifo_group_continues_after_dropped_message(engines):
    queues = engines.queues
    await create_queue(engines, LINE, messages_max=3, overflow=Overflow.DROP_OLDEST)
    await send(queues, LINE, b"a1", b"a2", group="a")
    await send(queues, LINE, b"b1", group="b")

    await send(queues, LINE, b"b2", group="b")

    assert sorted(await receive(queues, LINE)) == [b"a2", b"b1", b"b2"]


async def test_overflow_can_dead_letter_oldest_messages(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=2, overflow=Overflow.DEAD_LETTER)
    await send(queues, WORK, b"1", b"2")

    await send(queues, WORK, b"3")
    [dead], _ = await engines.dead_letters.browse(WORK)

    assert (dead.body, dead.reason) == (b"1", "the queue was full")
    assert await receive(queues, WORK) == [b"2", b"3"]


async def test_send_is_rejected_when_all_messages_are_in_flight(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=2, overflow=Overflow.DROP_OLDEST)
    await send(queues, WORK, b"1", b"2")
    await queues.receive(WORK, messages_max=2)

    with pytest.raises(QueueFull):
        await send(queues, WORK, b"3")


async def test_batch_larger_than_queue_drops_nothing(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=2, overflow=Overflow.DROP_OLDEST)
    await send(queues, WORK, b"1", b"2")

    with pytest.raises(QueueFull):
        await send(queues, WORK, b"3", b"4", b"5")

    assert await receive(queues, WORK) == [b"1", b"2"]


async def test_repeated_send_to_full_queue_returns_first_result(engines):
    queues = engines.queues
    await create_queue(engines, LINE, messages_max=1)
    [first] = await queues.send(LINE, [NewMessage(b"1", group="a", dedup_id="x")])

    [again] = await queues.send(LINE, [NewMessage(b"1", group="a", dedup_id="x")])

    assert (again.offset, again.duplicate) == (first.offset, True)


async def test_rejected_send_does_not_consume_its_idempotency_key(engines):
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=1)
    await send(queues, WORK, b"1")
    with pytest.raises(QueueFull):
        await queues.send(WORK, [NewMessage(b"2")], idempotency_key="k")
    await acknowledge_all(queues, 1)

    [sent] = await queues.send(WORK, [NewMessage(b"2")], idempotency_key="k")

    assert not sent.duplicate


async def test_new_byte_limit_counts_existing_messages(engines):
    queues, weight = engines.queues, await weight_of(engines, b"1")
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2")
    await create_queue(engines, WORK, bytes_max=2 * weight)

    with pytest.raises(QueueFull):
        await send(queues, WORK, b"3")


async def test_overflow_drops_messages_with_replaced_bodies_in_order(engines):
    """Replaced bodies are stored outside the log."""
    queues = engines.queues
    await create_queue(engines, WORK, messages_max=4, overflow=Overflow.DROP_OLDEST)
    await send(queues, WORK, b"1", b"2", b"3", b"4")
    for offset in ("0", "1"):
        await engines.inspector.replace(WORK, offset, b"changed " + offset.encode())
    [first] = await queues.receive(WORK)

    await send(queues, WORK, b"5", b"6")

    assert first.body == b"changed 0"
    assert await receive(queues, WORK) == [b"4", b"5", b"6"]


async def test_empty_message_is_accepted_only_as_copy_of_record(engines):
    """A replay or a webhook could not pass an empty record to a queue, and waited for it."""
    queues = engines.queues
    await create_queue(engines, WORK)
    copy = NewMessage(b"", system=((SOURCE_STREAM, "", b"clicks"),))

    await queues.send(WORK, [copy])
    with pytest.raises(ValidationFailed):
        await queues.send(WORK, [NewMessage(b"")])
    [message] = await queues.receive(WORK)
    await settle(queues, WORK, message, SettleAction.REJECT)
    await engines.dead_letters.redrive(WORK)

    assert await receive(queues, WORK) == [b""]
