"""Credit of a subscription, and its unsettled deliveries."""

import asyncio

from consumers.subscriptions.credit import SubscriptionCredit
from consumers.subscriptions.leased_deliveries import LeasedDeliveries
from storage.domain import limits
from storage.domain.queues.message import ReceivedMessage


def test_byte_debt_is_repaid_first():
    credit = SubscriptionCredit(10, 100)

    credit.take(1, 250)
    credit.grant(0, 150)
    owed = credit.is_there
    credit.grant(0, 1)

    assert not owed
    assert credit.is_there


def test_credit_is_capped():
    credit = SubscriptionCredit(limits.CREDIT_MESSAGES_MAX, limits.CREDIT_BYTES_MAX)

    credit.grant(1, 1)

    assert (credit.messages, credit.bytes) == (limits.CREDIT_MESSAGES_MAX, limits.CREDIT_BYTES_MAX)


async def test_grant_wakes_all_waiters():
    credit = SubscriptionCredit(0, 0)
    waiting = [asyncio.create_task(credit.wait()) for _ in range(3)]
    await asyncio.sleep(0)

    credit.grant(5, 0)
    await asyncio.sleep(0)
    still = [task.done() for task in waiting]
    credit.grant(0, 5)
    await asyncio.gather(*waiting)

    assert still == [False] * 3


def received(handle: str, visible_at_ms: int) -> ReceivedMessage:
    return ReceivedMessage(
        message_id="m",
        body=b"body",
        headers=(),
        content_type="",
        group="",
        dedup_id="",
        receipt_handle=handle,
        offset=0,
        sent_at_ms=0,
        first_received_at_ms=0,
        visible_at_ms=visible_at_ms,
        receive_count=1,
        failures=0,
        crash_count=0,
    )


def test_delivery_is_tracked_until_settled():
    held = LeasedDeliveries[str]()
    held.hold(1, [received("a", 100), received("b", 200)], lambda one: one.receipt_handle.upper())
    held.discard("a")

    held.extended("b", 900)

    assert held.handles == ["b"]
    assert (held.seq_of("a"), held.seq_of("b")) == (None, 1)
    assert held.lapsed(899) == []
    assert held.ending(1_000) == ["b"]


def test_received_deliveries_are_not_resent():
    held = LeasedDeliveries[str]()
    held.hold(1, [received("a", 100), received("b", 200)], lambda one: one.receipt_handle.upper())

    held.arrived(["a"])

    assert held.again(["a", "b", "never"], seq=7) == ["B"]
    assert (held.seq_of("a"), held.seq_of("b")) == (1, 7)
