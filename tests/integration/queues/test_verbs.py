"""The verbs of a queue, one rule at a time; `tests/stateful` combines them."""

from contextlib import suppress

import pytest
from msgspec.structs import replace

from storage.domain.errors import (
    ErrorCode,
    IdempotencyKeyReused,
    MessageTooLarge,
    QueueNotFound,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, ReceivedMessage, SettleAction, Settlement
from storage.domain.queues.queue import DedupScope, QueueSpec, QueueType

ORDERS = QueueName("orders")
TALLY = QueueName("tally.fifo")


@pytest.fixture
async def queues(engines):
    await engines.catalog.put_queue(ORDERS, QueueSpec(attempts_max=3))
    await engines.catalog.put_queue(TALLY, QueueSpec(type=QueueType.FIFO, attempts_max=3))
    return engines.queues


def of_group(group: str, *bodies: bytes) -> list[NewMessage]:
    return [NewMessage(body, group=group) for body in bodies]


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return [message.body for message in messages]


async def settle(queues, name, message, action, **more):
    [settled] = await queues.settle(name, [Settlement(message.receipt_handle, action, **more)])
    return settled


async def test_messages_are_received_in_order_sent(queues):
    await queues.send(ORDERS, [NewMessage(b"1"), NewMessage(b"2"), NewMessage(b"3")])

    received = await queues.receive(ORDERS, messages_max=10)

    assert bodies(received) == [b"1", b"2", b"3"]


async def test_message_is_redelivered_when_visibility_timeout_expires(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"one")])
    [first] = await queues.receive(ORDERS, visibility_timeout_ms=30_000)

    clock.advance(ms=29_999)
    early = await queues.receive(ORDERS)
    clock.advance(ms=1)
    [again] = await queues.receive(ORDERS)

    assert early == []
    assert again.message_id == first.message_id
    assert again.receipt_handle != first.receipt_handle
    assert (again.receive_count, again.crash_count, again.failures) == (2, 1, 0)


async def test_acknowledged_message_is_not_redelivered(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"one")])
    [message] = await queues.receive(ORDERS)

    await settle(queues, ORDERS, message, SettleAction.ACK)
    clock.advance(ms=3_600_000)

    assert await queues.receive(ORDERS) == []
    assert (await queues.stats(ORDERS)).acknowledged == 1


async def test_ack_is_idempotent(queues):
    await queues.send(ORDERS, [NewMessage(b"one")])
    [message] = await queues.receive(ORDERS)
    await settle(queues, ORDERS, message, SettleAction.ACK)

    again = await settle(queues, ORDERS, message, SettleAction.ACK)

    assert again.error is None
    assert (await queues.stats(ORDERS)).acknowledged == 1


async def test_late_ack_is_accepted_until_next_delivery(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"one"), NewMessage(b"two")])
    one, two = await queues.receive(ORDERS, messages_max=2, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    assert (await queues.stats(ORDERS)).ready == 2

    late = await settle(queues, ORDERS, one, SettleAction.ACK)
    [again] = await queues.receive(ORDERS, messages_max=2)
    too_late = await settle(queues, ORDERS, two, SettleAction.ACK)

    assert late.error is None
    assert again.body == b"two"
    assert too_late.error is ErrorCode.RECEIPT_HANDLE_EXPIRED


async def test_nacked_message_is_redelivered_after_delay(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"one")])
    [message] = await queues.receive(ORDERS)

    settled = await settle(queues, ORDERS, message, SettleAction.NACK, delay_ms=5_000)
    clock.advance(ms=4_999)
    early = await queues.receive(ORDERS)
    clock.advance(ms=1)
    [again] = await queues.receive(ORDERS)

    assert settled.visible_at_ms == clock.now_ms()
    assert early == []
    assert (again.receive_count, again.failures) == (2, 1)


async def test_release_adds_receive_but_no_failure(queues):
    await queues.send(ORDERS, [NewMessage(b"one")])
    [message] = await queues.receive(ORDERS)

    await settle(queues, ORDERS, message, SettleAction.RELEASE)
    [again] = await queues.receive(ORDERS)

    assert (again.receive_count, again.failures, again.crash_count) == (2, 0, 0)


async def test_extension_hides_message_for_twelve_hours_at_most(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"one")])
    [message] = await queues.receive(ORDERS, visibility_timeout_ms=10_000)
    clock.advance(ms=9_000)

    settled = await settle(
        queues, ORDERS, message, SettleAction.EXTEND, visibility_timeout_ms=43_200_000
    )

    assert settled.visible_at_ms == clock.now_ms() - 9_000 + 43_200_000
    clock.advance(ms=60_000)
    assert await queues.receive(ORDERS) == []


async def test_exactly_one_dead_letter_remains_after_last_attempt(queues, engines, clock):
    await queues.send(ORDERS, [NewMessage(b"poison")])
    for _ in range(3):
        [_] = await queues.receive(ORDERS, visibility_timeout_ms=1_000)
        clock.advance(ms=1_000)

    assert await queues.receive(ORDERS) == []
    [letter], _ = await engines.dead_letters.browse(ORDERS)
    assert (letter.body, letter.receive_count, letter.crash_count) == (b"poison", 3, 3)
    stats = await queues.stats(ORDERS)
    assert (stats.dead_lettered, stats.ready, stats.in_flight) == (1, 0, 0)


async def test_rejected_message_is_dead_lettered_with_reason(queues, engines):
    await queues.send(ORDERS, [NewMessage(b"bad")])
    [message] = await queues.receive(ORDERS)

    await settle(queues, ORDERS, message, SettleAction.REJECT, reason="no such customer")

    [letter], _ = await engines.dead_letters.browse(ORDERS)
    assert (letter.reason, letter.failures) == ("no such customer", 1)


async def test_redrive_resets_counts(queues, engines):
    await queues.send(ORDERS, [NewMessage(b"again")])
    [message] = await queues.receive(ORDERS)
    await settle(queues, ORDERS, message, SettleAction.REJECT)

    redriven = await engines.dead_letters.redrive(ORDERS)
    [again] = await queues.receive(ORDERS)

    assert redriven == 1
    assert again.message_id == message.message_id
    assert (again.receive_count, again.failures) == (1, 0)


async def test_delayed_message_is_not_early(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"later", delay_ms=5_000), NewMessage(b"now")])

    assert bodies(await queues.receive(ORDERS, messages_max=10)) == [b"now"]
    assert (await queues.stats(ORDERS)).delayed == 1
    clock.advance(ms=5_000)
    assert bodies(await queues.receive(ORDERS, messages_max=10)) == [b"later"]


async def test_message_expires_after_retention_and_is_counted(queues, clock):
    await queues.send(ORDERS, [NewMessage(b"old")])
    clock.advance(ms=4 * 86_400_000)

    assert await queues.receive(ORDERS) == []
    stats = await queues.stats(ORDERS)
    assert (stats.expired, stats.ready) == (1, 0)


async def test_purge_drops_everything_but_dead_letters(queues):
    await queues.send(ORDERS, [NewMessage(b"%d" % number) for number in range(5)])
    first, second, *_ = await queues.receive(ORDERS, messages_max=3)
    await settle(queues, ORDERS, first, SettleAction.REJECT)

    purged = await queues.purge(ORDERS)

    stats = await queues.stats(ORDERS)
    assert purged == stats.purged == 4
    assert (stats.ready, stats.in_flight, stats.dead_lettered) == (0, 0, 1)
    gone = await settle(queues, ORDERS, second, SettleAction.EXTEND, visibility_timeout_ms=1_000)
    assert gone.error is ErrorCode.MESSAGE_NOT_FOUND


async def test_repeat_with_same_idempotency_key_returns_first_result(queues):
    first = await queues.send(ORDERS, [NewMessage(b"paid")], idempotency_key="k")

    again = await queues.send(ORDERS, [NewMessage(b"paid")], idempotency_key="k")

    assert [one.message_id for one in again] == [one.message_id for one in first]
    assert again[0].duplicate
    assert (await queues.stats(ORDERS)).ready == 1


@pytest.mark.parametrize("queue_type", QueueType)
@pytest.mark.parametrize(
    "changed",
    [
        {"delay_ms": 60_000},
        {"ttl_ms": 60_000},
        {"deduplicate_by_content": True},
        {"dedup_scope": DedupScope.GROUP},
        {"retention_ms": 120_000},
        {"message_bytes_max": 2_000},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_repeat_is_recognized_after_change_of_queue(engines, queue_type, changed):
    name, spec = QueueName("changing"), QueueSpec(type=queue_type)
    message = NewMessage(b"paid", group="g")
    await engines.catalog.put_queue(name, spec)
    [first] = await engines.queues.send(name, [message], idempotency_key="k")

    with suppress(ValidationFailed):  # a standard queue has no deduplication
        await engines.catalog.put_queue(name, replace(spec, **changed))
    [again] = await engines.queues.send(name, [message], idempotency_key="k")

    assert (again.message_id, again.duplicate) == (first.message_id, True)


async def test_idempotency_key_with_other_content_is_rejected(queues):
    await queues.send(ORDERS, [NewMessage(b"paid")], idempotency_key="k")

    with pytest.raises(IdempotencyKeyReused):
        await queues.send(ORDERS, [NewMessage(b"other")], idempotency_key="k")


async def test_one_invalid_message_rejects_batch(queues):
    with pytest.raises(MessageTooLarge):
        await queues.send(ORDERS, [NewMessage(b"fine"), NewMessage(b"x" * 2_000_000)])

    assert (await queues.stats(ORDERS)).sent == 0


async def test_unknown_queue_is_not_found(queues):
    with pytest.raises(QueueNotFound):
        await queues.receive(QueueName("nowhere"))


# fifo


async def test_group_is_received_in_order_and_locked_while_in_flight(queues):
    await queues.send(TALLY, [*of_group("a", b"a1", b"a2", b"a3"), *of_group("b", b"b1")])

    first = await queues.receive(TALLY, messages_max=2)
    second = await queues.receive(TALLY, messages_max=10)

    assert bodies(first) == [b"a1", b"a2"]
    assert bodies(second) == [b"b1"]


async def test_partially_acknowledged_group_stays_locked(queues):
    await queues.send(TALLY, of_group("a", b"a1", b"a2", b"a3"))
    one, two = await queues.receive(TALLY, messages_max=2)

    await settle(queues, TALLY, one, SettleAction.ACK)
    locked = await queues.receive(TALLY)
    await settle(queues, TALLY, two, SettleAction.ACK)

    assert locked == []
    assert bodies(await queues.receive(TALLY)) == [b"a3"]


async def test_group_order_survives_timeouts_and_releases(queues, clock):
    await queues.send(TALLY, of_group("a", b"a1", b"a2", b"a3", b"a4"))
    await queues.receive(TALLY, messages_max=3, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)

    one, two, three = await queues.receive(TALLY, messages_max=3)
    for message in (three, one, two):
        await settle(queues, TALLY, message, SettleAction.RELEASE)

    assert bodies(await queues.receive(TALLY, messages_max=10)) == [b"a1", b"a2", b"a3", b"a4"]


async def test_delayed_nack_holds_only_its_own_group(queues, clock):
    await queues.send(TALLY, [*of_group("a", b"a1", b"a2"), *of_group("b", b"b1")])
    [first] = await queues.receive(TALLY)

    await settle(queues, TALLY, first, SettleAction.NACK, delay_ms=1_000)
    others = await queues.receive(TALLY, messages_max=10)
    clock.advance(ms=1_000)
    after = await queues.receive(TALLY, messages_max=10)

    assert bodies(others) == [b"b1"]
    assert bodies(after) == [b"a1", b"a2"]


async def test_dead_letter_unlocks_its_group(queues):
    await queues.send(TALLY, of_group("a", b"a1", b"a2"))
    [first] = await queues.receive(TALLY)

    await settle(queues, TALLY, first, SettleAction.REJECT)

    assert bodies(await queues.receive(TALLY)) == [b"a2"]


async def test_deduplication_id_holds_for_five_minutes(queues, clock):
    once = [NewMessage(b"once", group="a", dedup_id="d")]
    [first] = await queues.send(TALLY, once)
    clock.advance(ms=299_999)
    [repeat] = await queues.send(TALLY, once)
    clock.advance(ms=1)
    [later] = await queues.send(TALLY, once)

    assert (repeat.duplicate, repeat.message_id) == (True, first.message_id)
    assert not later.duplicate
    stats = await queues.stats(TALLY)
    assert (stats.ready, stats.deduplicated) == (2, 1)


async def test_delayed_backlog_does_not_hide_later_messages(queues):
    for _ in range(3):
        await queues.send(ORDERS, [NewMessage(b"later", delay_ms=900_000)] * 1_000)
    await queues.send(ORDERS, [NewMessage(b"now")])

    received = await queues.receive(ORDERS, wait_ms=2_000)

    assert bodies(received) == [b"now"]


async def test_receipt_handle_from_before_redrive_is_expired(queues, engines):
    await queues.send(ORDERS, [NewMessage(b"again")])
    [before] = await queues.receive(ORDERS)
    await settle(queues, ORDERS, before, SettleAction.REJECT)
    await engines.dead_letters.redrive(ORDERS)

    [after] = await queues.receive(ORDERS)
    settled = await settle(queues, ORDERS, before, SettleAction.ACK)

    assert after.receive_count == before.receive_count == 1
    assert settled.error is ErrorCode.RECEIPT_HANDLE_EXPIRED
