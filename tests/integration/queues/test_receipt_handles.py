"""Receipt handles, limits and receive attempts as SQS has them."""

import pytest

from storage.domain.errors import (
    ErrorCode,
    InFlightLimitReached,
    PurgeInProgress,
    ValidationFailed,
)
from storage.domain.queues.message import SettleAction, Settlement
from tests.queue_operations import HOUR_MS, LINE, WORK, create_queue, receive, send, settle

# ── Receipt handles as in SQS ──


async def test_old_handle_deletes_message_of_standard_queue(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"one")
    [first] = await queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await queues.receive(WORK)

    deleted = await settle(queues, WORK, first, SettleAction.ACK)
    clock.advance(ms=HOUR_MS)

    assert deleted is None
    assert await receive(queues, WORK) == []
    assert (await queues.stats(WORK)).acknowledged == 1


async def test_old_handle_does_nothing_in_fifo_queue(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE)
    await send(queues, LINE, b"one", group="a")
    [first] = await queues.receive(LINE, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await queues.receive(LINE)

    refused = await settle(queues, LINE, first, SettleAction.ACK)

    assert refused is ErrorCode.RECEIPT_HANDLE_EXPIRED


async def test_zero_visibility_timeout_makes_message_ready(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK)

    await settle(queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=0)
    [again] = await queues.receive(WORK)

    assert (again.receive_count, again.crash_count, again.failures) == (2, 0, 0)


async def test_expired_handle_can_hide_ready_message(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)

    hidden = await settle(queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=5_000)
    early = await receive(queues, WORK)
    clock.advance(ms=5_000)

    assert (hidden, early) == (None, [])
    assert await receive(queues, WORK) == [b"one"]


async def test_delivery_lasts_twelve_hours_at_most(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK, visibility_timeout_ms=12 * HOUR_MS)
    clock.advance(ms=HOUR_MS)

    refused = await settle(
        queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=12 * HOUR_MS
    )
    settled = await settle(
        queues, WORK, message, SettleAction.EXTEND, visibility_timeout_ms=11 * HOUR_MS
    )

    assert (refused, settled) == (ErrorCode.VALIDATION_FAILED, None)


# ── Limits ──


async def test_standard_queue_reports_in_flight_limit(engines):
    queues = engines.queues
    await create_queue(engines, WORK, in_flight_max=2)
    await send(queues, WORK, b"1", b"2", b"3")

    received = await queues.receive(WORK, messages_max=10)
    with pytest.raises(InFlightLimitReached):
        await queues.receive(WORK)
    await settle(queues, WORK, received[0], SettleAction.ACK)

    assert [message.body for message in received] == [b"1", b"2"]
    assert await receive(queues, WORK) == [b"3"]


async def test_fifo_queue_returns_nothing_at_in_flight_limit(engines):
    queues = engines.queues
    await create_queue(engines, LINE, in_flight_max=1)
    await send(queues, LINE, b"1", group="a")
    await send(queues, LINE, b"2", group="b")

    assert await receive(queues, LINE) == [b"1"]
    assert await receive(queues, LINE) == []


async def test_purge_interval_can_be_enforced(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await queues.purge(WORK, at_most_every_ms=60_000)
    clock.advance(ms=59_999)
    with pytest.raises(PurgeInProgress):
        await queues.purge(WORK, at_most_every_ms=60_000)
    clock.advance(ms=1)

    assert await queues.purge(WORK, at_most_every_ms=60_000) == 0


# ── Receive attempts ──


async def test_repeated_receive_attempt_returns_same_deliveries(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    first = await queues.receive(LINE, messages_max=10, attempt_id="t", visibility_timeout_ms=9_000)
    clock.advance(ms=8_000)

    again = await queues.receive(LINE, messages_max=10, attempt_id="t", visibility_timeout_ms=9_000)
    clock.advance(ms=8_000)

    assert [one.receipt_handle for one in again] == [one.receipt_handle for one in first]
    assert [one.receive_count for one in again] == [1, 1]
    assert await receive(queues, LINE) == []  # hidden again by the repeat


async def test_receive_attempt_is_new_after_settlement(engines):
    queues = engines.queues
    await create_queue(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    first = await queues.receive(LINE, messages_max=10, attempt_id="t")
    await settle(queues, LINE, first[0], SettleAction.ACK)

    assert await queues.receive(LINE, messages_max=10, attempt_id="t") == []


EXTENDED = {"action": SettleAction.EXTEND, "visibility_timeout_ms": 60_000}


@pytest.mark.parametrize(
    "change", [{"action": SettleAction.ACK}, {"action": SettleAction.NACK}, EXTENDED]
)
async def test_strict_receive_attempt_is_refused_after_change(engines, clock, change):
    queues = engines.queues
    await create_queue(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    strict = {"attempt_id": "t", "strict_attempt": True, "visibility_timeout_ms": 9_000}
    first, _ = await queues.receive(LINE, messages_max=10, **strict)
    await queues.settle(LINE, [Settlement(first.receipt_handle, **change)])

    with pytest.raises(ValidationFailed):
        await queues.receive(LINE, messages_max=10, **strict)
    clock.advance(ms=9_000)
    after = await queues.receive(LINE, messages_max=10, **strict)

    assert [one.receive_count for one in after] == ([] if change is EXTENDED else [2] * len(after))


async def test_strict_receive_attempt_is_new_after_timeout(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE)
    await send(queues, LINE, b"1", group="a")
    strict = {"attempt_id": "t", "strict_attempt": True, "visibility_timeout_ms": 9_000}
    await queues.receive(LINE, **strict)
    clock.advance(ms=9_000)

    [again] = await queues.receive(LINE, **strict)

    assert again.receive_count == 2
