"""How much a subscriber still wants, and what it holds."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from consumers.subscriptions.credit import Credit
from consumers.subscriptions.leased_deliveries import Deliveries
from storage.domain import limits
from storage.domain.queues.message import ReceivedMessage


@given(
    st.integers(0, 20),
    st.integers(0, 2_000),
    st.lists(st.integers(0, 500), max_size=40),
)
def test_no_more_is_covered_than_was_granted_but_for_the_last_ones_bytes(messages, bytes_, sizes):
    credit = Credit(messages, bytes_)

    count = credit.covers(sizes)

    assert count <= messages
    assert sum(sizes[: max(0, count - 1)]) < bytes_ or count == 0
    if count < min(len(sizes), messages):
        assert sum(sizes[:count]) >= bytes_


def test_what_is_owed_is_paid_first():
    credit = Credit(10, 100)

    credit.take(1, 250)
    credit.grant(0, 150)
    owed = credit.is_there
    credit.grant(0, 1)

    assert not owed
    assert credit.is_there


def test_credit_has_a_ceiling():
    credit = Credit(limits.CREDIT_MESSAGES_MAX, limits.CREDIT_BYTES_MAX)

    credit.grant(1, 1)

    assert (credit.messages, credit.bytes) == (limits.CREDIT_MESSAGES_MAX, limits.CREDIT_BYTES_MAX)


async def test_everyone_who_waits_hears_of_a_grant():
    credit = Credit(0, 0)
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
        receives=1,
        failures=0,
        crashes=0,
    )


def test_what_is_held_is_known_until_it_is_settled():
    held = Deliveries[str]()
    held.hold(1, [received("a", 100), received("b", 200)], lambda one: one.receipt_handle.upper())
    held.forget("a")

    held.extended("b", 900)

    assert held.handles == ["b"]
    assert (held.seq_of("a"), held.seq_of("b")) == (None, 1)
    assert held.lapsed(899) == []
    assert held.ending(1_000) == ["b"]


def test_what_has_arrived_is_not_kept_to_be_sent_again():
    held = Deliveries[str]()
    held.hold(1, [received("a", 100), received("b", 200)], lambda one: one.receipt_handle.upper())

    held.arrived(["a"])

    assert held.again(["a", "b", "never"], seq=7) == ["B"]
    assert (held.seq_of("a"), held.seq_of("b")) == (1, 7)
