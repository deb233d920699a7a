"""Handles, limits and receive attempts: what SQS has beyond the plain verbs of a queue."""

import pytest

from storage.domain.errors import (
    ErrorCode,
    InFlightLimitReached,
    PurgeInProgress,
)
from storage.domain.queues.message import SettleAction
from tests.queue_verbs import HOUR_MS, LINE, WORK, made, receive, send, settle

# ── Handles, as SQS takes them ──


async def test_an_old_handle_deletes_a_standard_queues_message(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [first] = await queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await queues.receive(WORK)

    deleted = await settle(queues, WORK, first, SettleAction.ACK)
    clock.advance(ms=HOUR_MS)

    assert deleted is None
    assert await receive(queues, WORK) == []
    assert (await queues.stats(WORK)).acknowledged == 1


async def test_an_old_handle_does_nothing_to_a_fifo_queues_message(engines, clock):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"one", group="a")
    [first] = await queues.receive(LINE, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await queues.receive(LINE)

    refused = await settle(queues, LINE, first, SettleAction.ACK)

    assert refused is ErrorCode.RECEIPT_HANDLE_EXPIRED


async def test_a_visibility_of_zero_makes_a_message_ready_at_once(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK)

    await settle(queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=0)
    [again] = await queues.receive(WORK)

    assert (again.receives, again.crashes, again.failures) == (2, 0, 0)


async def test_a_ready_message_is_hidden_by_a_handle_that_ran_out(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)

    hidden = await settle(queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=5_000)
    early = await receive(queues, WORK)
    clock.advance(ms=5_000)

    assert (hidden, early) == (None, [])
    assert await receive(queues, WORK) == [b"one"]


async def test_a_delivery_lasts_twelve_hours_at_most(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK, visibility_timeout_ms=12 * HOUR_MS)
    clock.advance(ms=HOUR_MS)

    refused = await settle(
        queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=12 * HOUR_MS
    )
    taken = await settle(
        queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=11 * HOUR_MS
    )

    assert (refused, taken) == (ErrorCode.VALIDATION_FAILED, None)


# ── Limits ──


async def test_a_standard_queue_says_that_too_many_are_in_flight(engines):
    queues = engines.queues
    await made(engines, WORK, in_flight_max=2)
    await send(queues, WORK, b"1", b"2", b"3")

    received = await queues.receive(WORK, messages_max=10)
    with pytest.raises(InFlightLimitReached):
        await queues.receive(WORK)
    await settle(queues, WORK, received[0], SettleAction.ACK)

    assert [message.body for message in received] == [b"1", b"2"]
    assert await receive(queues, WORK) == [b"3"]


async def test_a_fifo_queue_with_too_many_in_flight_gives_nothing(engines):
    queues = engines.queues
    await made(engines, LINE, in_flight_max=1)
    await send(queues, LINE, b"1", group="a")
    await send(queues, LINE, b"2", group="b")

    assert await receive(queues, LINE) == [b"1"]
    assert await receive(queues, LINE) == []


async def test_purges_may_be_kept_apart(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await queues.purge(WORK, at_most_every_ms=60_000)
    clock.advance(ms=59_999)
    with pytest.raises(PurgeInProgress):
        await queues.purge(WORK, at_most_every_ms=60_000)
    clock.advance(ms=1)

    assert await queues.purge(WORK, at_most_every_ms=60_000) == 0


# ── Receive attempts ──


async def test_an_attempt_that_is_repeated_gets_the_same_deliveries(engines, clock):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    first = await queues.receive(LINE, messages_max=10, attempt_id="t", visibility_timeout_ms=9_000)
    clock.advance(ms=8_000)

    again = await queues.receive(LINE, messages_max=10, attempt_id="t", visibility_timeout_ms=9_000)
    clock.advance(ms=8_000)

    assert [one.receipt_handle for one in again] == [one.receipt_handle for one in first]
    assert [one.receives for one in again] == [1, 1]
    assert await receive(queues, LINE) == []  # hidden anew by the repeat


async def test_an_attempt_is_a_new_one_when_a_message_was_settled(engines):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    first = await queues.receive(LINE, messages_max=10, attempt_id="t")
    await settle(queues, LINE, first[0], SettleAction.ACK)

    assert await queues.receive(LINE, messages_max=10, attempt_id="t") == []
