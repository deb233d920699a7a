"""Groups of a standard queue take turns."""

from collections import Counter

import pytest

from storage.domain.queues.message import SettleAction
from storage.domain.queues.policies import GroupWeight
from tests.queue_operations import WORK, create_queue, receive, send, settle

pytestmark = pytest.mark.one_store


async def test_groups_of_standard_queue_take_turns(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, *[b"a%d" % number for number in range(6)], group="a")
    await send(queues, WORK, b"b0", b"b1", group="b")

    received = [(await receive(queues, WORK, 1))[0] for _ in range(8)]

    assert received == [b"a0", b"b0", b"a1", b"b1", b"a2", b"a3", b"a4", b"a5"]


async def test_partial_receive_keeps_first_message_of_each_group(engines):
    """First messages of groups are read together, and those not delivered are put back."""
    queues = engines.queues
    await create_queue(engines, WORK)
    for number in range(3):
        for group in "abcde":
            await send(queues, WORK, b"%b%d" % (group.encode(), number) + b"." * 500, group=group)

    received = []
    for _ in range(8):  # two at a time: the second exceeds the bytes
        some = await queues.receive(WORK, messages_max=10, bytes_max=600)
        received.append([message.body[:2].decode() for message in some])

    assert [body for some in received for body in some] == [
        f"{group}{number}" for number in range(3) for group in "abcde"
    ]
    assert [len(some) for some in received] == [2] * 7 + [1]


async def test_groups_take_turns_when_their_messages_are_far_apart(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"a0", group="a")
    await send(queues, WORK, *[b"x"] * 100)
    await send(queues, WORK, b"b0", group="b")
    await send(queues, WORK, b"a1", group="a")

    received = [message.body for message in await queues.receive(WORK, messages_max=50)]

    assert [body for body in received if body != b"x"] == [b"a0", b"b0", b"a1"]


async def test_grouped_and_ungrouped_messages_share_deliveries(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, *[b"a%d" % number for number in range(6)], group="a")
    await send(queues, WORK, b"1", b"2", b"3")

    received = [(await receive(queues, WORK, 1))[0] for _ in range(9)]

    assert {b"1", b"2", b"3"} <= set(received[:6])


async def test_groups_of_standard_queue_are_not_locked(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2", group="a")
    [first] = await queues.receive(WORK)
    [second] = await queues.receive(WORK)
    await settle(queues, WORK, first, SettleAction.ACK)
    clock.advance(ms=30_000)
    [again] = await queues.receive(WORK)

    assert (first.body, second.body, again.body) == (b"1", b"2", b"2")
    assert await receive(queues, WORK) == []


async def test_noisy_group_does_not_delay_quiet_one(engines, clock):
    """A has 100 000 waiting; B sends one a second; four consumers take 100 ms a message."""
    queues = engines.queues
    await create_queue(engines, WORK)
    for _ in range(100):
        await send(queues, WORK, *[b"a"] * 1_000, group="a")
    waits: list[int] = []
    for tick in range(200):  # of 100 ms
        if tick % 10 == 0:
            await send(queues, WORK, b"b", group="b")
        messages = [await queues.receive(WORK) for _ in range(4)]
        for [message] in messages:
            if message.body == b"b":
                waits.append(clock.now_ms() - message.sent_at_ms)
            await settle(queues, WORK, message, SettleAction.ACK)
        clock.advance(ms=100)

    assert len(waits) == 20
    assert sorted(waits)[18] < 1_000


async def test_weights_share_deliveries(engines):
    """gold-1 : gold-2 : others = 3 : 3 : 1, whatever a receive takes at once."""
    queues = engines.queues
    weights = (GroupWeight("gold-*", 3),)
    await create_queue(engines, WORK, group_weights=weights)
    for name in ("gold-1", "gold-2", "tin"):
        await send(queues, WORK, *[name.encode()] * 300, group=name)

    messages: Counter[bytes] = Counter()
    for nth in range(140):
        messages.update(await receive(queues, WORK, 1 + nth % 4))

    assert sum(messages.values()) == 350
    for group, expected in ((b"gold-1", 150), (b"gold-2", 150), (b"tin", 50)):
        assert abs(messages[group] - expected) <= 0.05 * expected, messages


async def test_first_matching_weight_applies_and_idle_group_is_free(engines):
    queues = engines.queues
    weights = (GroupWeight("a", 2), GroupWeight("a*", 5), GroupWeight("*", 1))
    await create_queue(engines, WORK, group_weights=weights)
    await send(queues, WORK, b"a", group="a")
    await send(queues, WORK, *[b"b"] * 3, group="b")

    assert await receive(queues, WORK) == [b"a", b"b", b"b", b"b"]


async def test_weights_give_each_group_its_share_under_overload(engines, clock):
    """Two groups send more than four consumers can process; one of weight 3 waits a third."""
    queues = engines.queues
    await create_queue(engines, WORK, group_weights=(GroupWeight("gold", 3),))
    done: Counter[bytes] = Counter()
    for tick in range(150):  # of 100 ms, in which 4 messages are done and 8 are sent
        for group in ("gold", "tin"):
            await send(queues, WORK, *[group.encode()] * 4, group=group)
        for _ in range(4):
            [message] = await queues.receive(WORK)
            await settle(queues, WORK, message, SettleAction.ACK)
            done[message.body] += tick >= 1
        clock.advance(ms=100)

    assert 0.95 * 3 <= done[b"gold"] / done[b"tin"] <= 1.05 * 3
