"""History of a message: every change of its state, by id, also after its deletion."""

import asyncio

import pytest

from storage.domain import limits
from storage.domain.errors import MessageNotFound, ValidationFailed
from storage.domain.names import QueueName
from storage.domain.queues.consumer import ConsumerProtocol, queue_consumer
from storage.domain.queues.history import MessageEvent, MessageEventType, history_of, state_after
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec
from tests.conditions import PATIENCE_S
from tests.queue_operations import create_queue

WORK = QueueName("work")
ANN = queue_consumer("ann", ConsumerProtocol.REST, "192.0.2.7", b"test/1")


async def settle(engines, handle: str, action: SettleAction, **more) -> None:
    [settled] = await engines.queues.settle(WORK, [Settlement(handle, action, **more)])
    assert settled.error is None


async def event_types(engines, word: str, name: QueueName = WORK) -> list[MessageEventType]:
    return [event.type for event in (await engines.inspector.history(name, word)).events]


async def test_history_lists_all_events_even_after_deletion(engines, clock):
    await engines.catalog.put_queue(WORK, QueueSpec(history=True, attempts_max=2))
    sent_at = clock.now_ms()
    [sent] = await engines.queues.send(WORK, [NewMessage(b"one", delay_ms=1_000)])
    clock.advance(ms=1_000)
    [first] = await engines.queues.receive(WORK, visibility_timeout_ms=5_000)
    await settle(engines, first.receipt_handle, SettleAction.EXTEND, visibility_timeout_ms=9_000)
    await settle(engines, first.receipt_handle, SettleAction.NACK, delay_ms=2_000, reason="no disk")
    clock.advance(ms=2_000)
    await engines.queues.receive(WORK, visibility_timeout_ms=5_000)
    clock.advance(ms=5_000)
    await engines.queues.sweep(WORK)
    await engines.dead_letters.redrive(WORK)
    [again] = await engines.queues.receive(WORK)
    await settle(engines, again.receipt_handle, SettleAction.ACK)

    history = await engines.inspector.history(WORK, sent.message_id)

    at = sent_at
    reason = "visibility timeout passed 1 times"
    assert list(history.events) == [
        MessageEvent(MessageEventType.SENT, at, at + 1_000),
        MessageEvent(MessageEventType.DUE, at + 1_000),
        MessageEvent(MessageEventType.DELIVERED, at + 1_000, at + 6_000, 1),
        MessageEvent(MessageEventType.EXTENDED, at + 1_000, at + 10_000),
        MessageEvent(MessageEventType.NACKED, at + 1_000, at + 3_000, 1, "no disk"),
        MessageEvent(MessageEventType.DUE, at + 3_000),
        MessageEvent(MessageEventType.DELIVERED, at + 3_000, at + 8_000, 2),
        MessageEvent(MessageEventType.LEASE_ENDED, at + 8_000, None, 1),
        MessageEvent(MessageEventType.DEAD_LETTERED, at + 8_000, reason=reason),
        MessageEvent(MessageEventType.REDRIVEN, at + 8_000),
        MessageEvent(MessageEventType.DELIVERED, at + 8_000, at + 38_000, 1),
        MessageEvent(MessageEventType.ACKNOWLEDGED, at + 8_000),
    ]
    assert (history.state, history.truncated) == ("gone", False)


async def test_messages_acknowledged_in_batch_have_own_events(engines):
    await create_queue(engines, WORK, history=True)
    await engines.queues.send(WORK, [NewMessage(b"x") for _ in range(20)])
    received = await engines.queues.receive(WORK, messages_max=20)
    await engines.queues.settle(
        WORK, [Settlement(message.receipt_handle, SettleAction.ACK) for message in received]
    )

    for word in ("0", "7", "19"):
        assert await event_types(engines, word) == [
            MessageEventType.SENT,
            MessageEventType.DELIVERED,
            MessageEventType.ACKNOWLEDGED,
        ]


async def test_history_begins_with_next_send_after_enabling(
    engines,
):
    await create_queue(engines, WORK)
    await engines.queues.send(WORK, [NewMessage(b"before")])
    off = await engines.inspector.history(WORK, "0")
    await create_queue(engines, WORK, history=True)
    await engines.queues.send(WORK, [NewMessage(b"after")])
    await engines.queues.receive(WORK, messages_max=2)
    on = [await event_types(engines, "0"), await event_types(engines, "1")]
    before = await engines.inspector.history(WORK, "0")
    await create_queue(engines, WORK)
    await engines.queues.sweep(WORK)
    again = await engines.inspector.history(WORK, "1")

    assert (off.events, off.truncated) == ((), True)
    assert on == [[MessageEventType.DELIVERED], [MessageEventType.SENT, MessageEventType.DELIVERED]]
    assert before.truncated
    assert again.events == ()
    with pytest.raises(MessageNotFound):
        await engines.inspector.history(WORK, "9")


async def test_maintenance_enables_history_without_send(engines):
    await create_queue(engines, WORK)
    await engines.queues.send(WORK, [NewMessage(b"one")])
    await create_queue(engines, WORK, history=True)
    await engines.queues.sweep(WORK)
    await engines.queues.receive(WORK)

    assert await event_types(engines, "0") == [MessageEventType.DELIVERED]


async def test_purge_and_drop_are_recorded_for_affected_messages(engines):
    await create_queue(engines, WORK, history=True)
    await engines.queues.send(WORK, [NewMessage(b"done"), NewMessage(b"b"), NewMessage(b"c")])
    [first] = await engines.queues.receive(WORK)
    await settle(engines, first.receipt_handle, SettleAction.ACK)
    await engines.inspector.drop(WORK, "1")
    await engines.queues.purge(WORK)
    await engines.queues.send(WORK, [NewMessage(b"later")])

    assert await event_types(engines, "0") == [
        MessageEventType.SENT,
        MessageEventType.DELIVERED,
        MessageEventType.ACKNOWLEDGED,
    ]
    assert await event_types(engines, "1") == [MessageEventType.SENT, MessageEventType.PURGED]
    assert await event_types(engines, "2") == [MessageEventType.SENT, MessageEventType.PURGED]
    assert await event_types(engines, "3") == [MessageEventType.SENT]


async def test_move_is_recorded_in_both_queues(engines, clock):
    dead = QueueName("dead")
    await create_queue(engines, dead, history=True)
    await create_queue(engines, WORK, history=True, dead_letters=DeadLetterTarget("dead", 1))
    await engines.queues.send(dead, [NewMessage(b"its own")])
    await engines.queues.send(WORK, [NewMessage(b"one")])
    await engines.queues.receive(WORK, visibility_timeout_ms=0)
    await engines.queues.receive(WORK)
    async with asyncio.timeout(PATIENCE_S):
        while MessageEventType.MOVED_OUT not in await event_types(engines, "0"):
            await engines.queues.sweep(WORK)

    moved_in = (await engines.inspector.history(dead, "1")).events[0]
    assert await event_types(engines, "0") == [
        MessageEventType.SENT,
        MessageEventType.DELIVERED,
        MessageEventType.LEASE_ENDED,
        MessageEventType.DEPARTED,
        MessageEventType.MOVED_OUT,
    ]
    assert (moved_in.type, moved_in.reason.split()[1]) == (MessageEventType.MOVED_IN, "0")


async def test_expiry_and_overflow_are_recorded(engines, clock):
    await create_queue(engines, WORK, history=True, messages_max=2, overflow="drop_oldest")
    await engines.queues.send(WORK, [NewMessage(b"a"), NewMessage(b"b", ttl_ms=1_000)])
    await engines.queues.send(WORK, [NewMessage(b"c")])
    clock.advance(ms=1_000)
    await engines.queues.sweep(WORK)

    assert await event_types(engines, "0") == [MessageEventType.SENT, MessageEventType.DROPPED]
    assert await event_types(engines, "1") == [MessageEventType.SENT, MessageEventType.EXPIRED]


async def test_event_count_is_bounded_and_truncation_is_reported(engines, monkeypatch):
    monkeypatch.setattr(limits, "HISTORY_EVENTS_MAX", 200)
    monkeypatch.setattr(limits, "HISTORY_SCANNED_MAX", 50)
    await create_queue(engines, WORK, history=True)
    for _ in range(10):
        await engines.queues.send(WORK, [NewMessage(b"x") for _ in range(100)])
    await engines.queues.receive(WORK)

    events = await engines.inspector.events(WORK)
    first, last = history_of(0, events), history_of(999, events)
    assert 200 <= len(events) <= 301
    assert ([event.type for event in first.events], first.truncated) == (
        [MessageEventType.DELIVERED],
        True,
    )
    assert (last.state, last.truncated) == ("ready", False)


async def test_long_reason_is_truncated_at_character_boundary(engines):
    await create_queue(engines, WORK, history=True)
    await engines.queues.send(WORK, [NewMessage(b"one")])
    [first] = await engines.queues.receive(WORK)
    await settle(engines, first.receipt_handle, SettleAction.REJECT, reason="x" + "ä" * 1000)

    rejected, dead = (await engines.inspector.history(WORK, "0")).events[2:]
    assert rejected.reason == "x" + "ä" * 127
    assert (dead.type, dead.reason) == (MessageEventType.DEAD_LETTERED, "x" + "ä" * 127)


def test_purge_does_not_affect_deleted_dead_or_later_messages():
    purge = ("*", MessageEvent(MessageEventType.PURGED, 9, number=3))
    noted = [
        ("0", MessageEvent(MessageEventType.SENT, 1)),
        ("1", MessageEvent(MessageEventType.SENT, 1)),
        ("1", MessageEvent(MessageEventType.DEAD_LETTERED, 2)),
        ("3", MessageEvent(MessageEventType.SENT, 10)),
        purge,
    ]

    assert [history_of(offset, noted).state for offset in range(4)] == [
        "gone",
        "dead_lettered",
        "",
        "ready",
    ]
    assert state_after(()) == ""


async def test_history_is_deleted_with_its_queue(engines):
    await create_queue(engines, WORK, history=True)
    await engines.queues.send(WORK, [NewMessage(b"one")])
    await engines.catalog.delete_queue(WORK)
    await create_queue(engines, WORK, history=True)
    await engines.queues.send(WORK, [NewMessage(b"two")])

    assert await event_types(engines, "0") == [MessageEventType.SENT]
    assert len(await engines.inspector.events(WORK)) == 1


@pytest.mark.parametrize("spec", [QueueSpec(), QueueSpec(history=True)])
def test_history_requires_no_other_setting(spec: QueueSpec):
    spec.check()


async def test_attempts_have_consumer_outcome_reason_and_details(engines, clock):
    await engines.catalog.put_queue(WORK, QueueSpec(history=True, attempts_max=3))
    [sent] = await engines.queues.send(WORK, [NewMessage(b"one")])
    at = clock.now_ms()
    [first] = await engines.queues.receive(WORK, consumer=ANN)
    clock.advance(ms=100)
    trace = "Traceback:\n" + "é" * 4_000
    await settle(engines, first.receipt_handle, SettleAction.NACK, reason="no disk", details=trace)
    await engines.queues.receive(WORK, visibility_timeout_ms=5_000)
    clock.advance(ms=5_000)
    [third] = await engines.queues.receive(WORK, consumer=ANN)
    open_attempts = (await engines.inspector.history(WORK, sent.message_id)).attempts
    await settle(engines, third.receipt_handle, SettleAction.REJECT, details="why")
    attempts = (await engines.inspector.history(WORK, sent.message_id)).attempts
    [letter], _ = await engines.dead_letters.browse(WORK)

    assert [
        (one.number, one.outcome, one.consumer_key, one.reason, one.details[:10])
        for one in attempts
    ] == [
        (1, "nacked", ANN.key, "no disk", "Traceback:"),
        (2, "lease_ended", b"", "", ""),
        (3, "rejected", ANN.key, "", "why"),
    ]
    assert (attempts[0].received_at_ms, attempts[0].ended_at_ms) == (at, at + 100)
    assert 500 < len(attempts[0].details) < 1_024
    assert set(attempts[0].details[11:]) == {"é"}
    assert (open_attempts[-1].outcome, open_attempts[-1].ended_at_ms) == ("in_flight", None)
    assert letter.details == "why"


async def test_details_follow_message_to_dead_letter_queue(engines):
    dead = QueueName("dead")
    await create_queue(engines, dead)
    await engines.catalog.put_queue(WORK, QueueSpec(dead_letters=DeadLetterTarget("dead", 1)))
    await engines.queues.send(WORK, [NewMessage(b"one")])
    [first] = await engines.queues.receive(WORK, consumer=ANN)
    trace = "x" * limits.DETAILS_CHARACTERS_MAX
    await settle(engines, first.receipt_handle, SettleAction.NACK, reason="no", details=trace)
    await engines.queues.receive(WORK)
    [moved], _ = await engines.inspector.browse(dead)

    assert moved.dead_letter is not None
    assert (moved.dead_letter.last_failure_reason, moved.dead_letter.details) == ("no", trace)


async def test_too_long_details_are_rejected(engines):
    await create_queue(engines, WORK)
    await engines.queues.send(WORK, [NewMessage(b"one")])
    [first] = await engines.queues.receive(WORK)
    with pytest.raises(ValidationFailed, match="4096 characters"):
        await settle(
            engines,
            first.receipt_handle,
            SettleAction.NACK,
            details="x" * (limits.DETAILS_CHARACTERS_MAX + 1),
        )
