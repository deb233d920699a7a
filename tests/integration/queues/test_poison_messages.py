"""Poison policies of message groups (skip, block, park), and manual pauses."""

import pytest

from storage.bootstrap import Storage
from storage.domain.errors import GroupNotParked, ValidationFailed
from storage.domain.queues.message import MessageState, NewMessage, SettleAction
from storage.domain.queues.policies import ParkedGroup, PoisonPolicy
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec, QueueType
from tests.queue_operations import (
    DEAD,
    HOUR_MS,
    LINE,
    WORK,
    create_queue,
    expire_deliveries,
    receive,
    send,
    settle,
)


async def parking(engines: Storage, attempts_max: int | None = 1) -> None:
    spec = QueueSpec(
        type=QueueType.FIFO, attempts_max=attempts_max, on_poison=PoisonPolicy.PARK_GROUP
    )
    await engines.catalog.put_queue(LINE, spec)


async def fail(engines: Storage, reason: str = "boom") -> None:
    """Nack the next message."""
    [message] = await engines.queues.receive(LINE)
    await settle(engines.queues, LINE, message, SettleAction.NACK, reason=reason)


async def parked(engines: Storage) -> list[ParkedGroup]:
    return await engines.parked_groups.browse(LINE)


async def test_poisoned_group_is_parked_in_order_while_others_continue(engines):
    queues = engines.queues
    await parking(engines)
    await send(queues, LINE, b"a1", b"a2", group="a")
    await send(queues, LINE, b"b1", group="b")
    await fail(engines)
    await send(queues, LINE, b"a3", group="a")

    others = await receive(queues, LINE)
    [group] = await parked(engines)
    stats = await queues.stats(LINE)

    assert others == [b"b1"]
    assert (group.group, group.reason, group.messages) == ("a", "boom", 3)
    assert (group.poison_offset, group.first_offset) == (0, 0)
    assert (stats.parked, stats.ready, stats.in_flight, stats.dead_lettered) == (3, 0, 1, 0)


async def test_resumed_group_is_delivered_in_order(engines, clock):
    queues = engines.queues
    await parking(engines)
    await send(queues, LINE, b"a1", b"a2", group="a")
    await fail(engines)
    await send(queues, LINE, b"a3", group="a")

    resumed = await engines.parked_groups.resume(LINE, "a")

    assert resumed == 3
    assert await parked(engines) == []
    assert (await queues.stats(LINE)).parked == 0
    assert await receive(queues, LINE) == [b"a1", b"a2", b"a3"]


async def test_resuming_group_resets_failures(engines):
    await parking(engines, attempts_max=2)
    await send(engines.queues, LINE, b"a1", group="a")
    await fail(engines)
    await fail(engines)
    await engines.parked_groups.resume(LINE, "a")

    await fail(engines)
    after_one = await parked(engines)
    await fail(engines, "again")
    [group] = await parked(engines)

    assert after_one == []
    assert group.reason == "again"


async def test_resuming_group_resets_crashes(engines, clock):
    queues = engines.queues
    await parking(engines, attempts_max=2)
    await send(queues, LINE, b"a1", group="a")
    await expire_deliveries(queues, LINE, clock, 2)
    await receive(queues, LINE)
    await engines.parked_groups.resume(LINE, "a")

    await expire_deliveries(queues, LINE, clock, 1)

    assert await receive(queues, LINE) == [b"a1"]


async def test_group_is_parked_when_leases_expire_too_often(engines, clock):
    await parking(engines)
    await send(engines.queues, LINE, b"a1", b"a2", group="a")
    await expire_deliveries(engines.queues, LINE, clock, 1)

    received = await receive(engines.queues, LINE)
    [group] = await parked(engines)

    assert received == []
    assert group.reason == "visibility timeout passed 1 times"


async def test_rejected_message_parks_its_group_despite_attempts_left(engines):
    await parking(engines, attempts_max=None)
    await send(engines.queues, LINE, b"a1", group="a")
    await fail(engines)
    [message] = await engines.queues.receive(LINE)

    await settle(engines.queues, LINE, message, SettleAction.REJECT, reason="not JSON")

    assert [group.reason for group in await parked(engines)] == ["not JSON"]


async def test_in_flight_messages_return_to_parked_group(engines, clock):
    queues = engines.queues
    await parking(engines)
    await send(queues, LINE, b"a1", b"a2", b"a3", group="a")
    first, second, third = await queues.receive(LINE, messages_max=3)

    await settle(queues, LINE, first, SettleAction.NACK)
    await settle(queues, LINE, second, SettleAction.ACK)
    await settle(queues, LINE, third, SettleAction.RELEASE)
    [group] = await parked(engines)
    await engines.parked_groups.resume(LINE, "a")

    assert group.messages == 2
    assert await receive(queues, LINE) == [b"a1", b"a3"]


async def test_poisoned_message_can_be_replaced_in_parked_group(engines):
    queues = engines.queues
    await parking(engines)
    await send(queues, LINE, b"{", b"{}", group="a")
    await fail(engines)

    await engines.inspector.replace(LINE, "0", b"mended")
    await engines.parked_groups.resume(LINE, "a")

    assert await receive(queues, LINE) == [b"mended", b"{}"]


async def test_group_stays_parked_when_poisoned_message_is_removed(engines):
    queues = engines.queues
    await parking(engines)
    await send(queues, LINE, b"a1", b"a2", group="a")
    await fail(engines)

    await engines.inspector.drop(LINE, "0")

    assert await receive(queues, LINE) == []
    assert (await queues.stats(LINE)).parked == 1
    await engines.parked_groups.resume(LINE, "a")
    assert await receive(queues, LINE) == [b"a2"]


async def test_delayed_retry_joins_its_parked_group_when_due(engines, clock):
    queues = engines.queues
    await parking(engines, attempts_max=2)
    await send(queues, LINE, b"a1", b"a2", group="a")
    first, second = await queues.receive(LINE, messages_max=2)
    await settle(queues, LINE, second, SettleAction.NACK, delay_ms=5_000)
    await settle(queues, LINE, first, SettleAction.REJECT)

    before = await queues.stats(LINE)
    clock.advance(ms=5_000)
    after = await queues.stats(LINE)
    await engines.parked_groups.resume(LINE, "a")

    assert (before.parked, before.delayed) == (1, 1)
    assert (after.parked, after.delayed) == (2, 0)
    assert await receive(queues, LINE) == [b"a1", b"a2"]


async def test_one_poisoned_group_does_not_affect_1000_others(engines):
    queues = engines.queues
    await parking(engines)
    for body in (b"1", b"2"):
        messages = [NewMessage(body, group=f"g{number}") for number in range(1_000)]
        await queues.send(LINE, messages)
    await fail(engines)

    received = await queues.receive(LINE, messages_max=1_000)
    received += await queues.receive(LINE, messages_max=1_000)

    assert len(received) == 1_998
    assert [group.group for group in await parked(engines)] == ["g0"]


async def test_parked_messages_are_browsable_and_expire(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE, retention_ms=HOUR_MS)
    await send(queues, LINE, b"a1", b"a2", group="a")
    await engines.parked_groups.park(LINE, "a", "maintenance")

    shown, _ = await engines.inspector.browse(LINE, state=MessageState.PARKED)
    ready, _ = await engines.inspector.browse(LINE, state=MessageState.READY)
    clock.advance(ms=HOUR_MS)
    stats = await queues.stats(LINE)

    assert [message.body for message in shown] == [b"a1", b"a2"]
    assert ready == []
    assert (stats.parked, stats.expired) == (0, 2)


async def test_purge_leaves_no_group_parked(engines):
    queues = engines.queues
    await parking(engines)
    await send(queues, LINE, b"a1", group="a")
    await fail(engines)

    await queues.purge(LINE)
    await send(queues, LINE, b"new", group="a")

    assert (await queues.stats(LINE)).parked == 0
    assert await receive(queues, LINE) == [b"new"]


async def test_block_policy_retries_forever_and_blocks_group(engines):
    queues = engines.queues
    spec = QueueSpec(type=QueueType.FIFO, attempts_max=1, on_poison=PoisonPolicy.BLOCK)
    await engines.catalog.put_queue(LINE, spec)
    await send(queues, LINE, b"a1", b"a2", group="a")

    for _ in range(3):
        await fail(engines)

    [again] = await queues.receive(LINE)
    assert (again.body, again.failures) == (b"a1", 3)
    assert await receive(queues, LINE) == []


@pytest.mark.parametrize("name", [WORK, LINE])
async def test_group_can_be_paused_and_resumed_manually(engines, name):
    queues = engines.queues
    await create_queue(engines, name)
    await send(queues, name, b"a1", group="a")
    await send(queues, name, b"b1", group="b")

    await engines.parked_groups.park(name, "a", "deploying")
    await engines.parked_groups.park(name, "a", "not this reason")
    await send(queues, name, b"a2", group="a")
    meanwhile = await receive(queues, name)
    [group] = await engines.parked_groups.browse(name)
    await engines.parked_groups.resume(name, "a")

    assert meanwhile == [b"b1"]
    assert (group.group, group.reason, group.poison_offset) == ("a", "deploying", None)
    assert sorted(await receive(queues, name)) == [b"a1", b"a2"]


async def test_group_can_be_paused_before_it_has_messages(engines):
    await create_queue(engines, LINE)
    await engines.parked_groups.park(LINE, "a", "not yet")
    await send(engines.queues, LINE, b"a1", group="a")

    assert await receive(engines.queues, LINE) == []
    assert (await engines.queues.stats(LINE)).parked == 1


async def test_resuming_group_that_is_not_parked_is_rejected(engines):
    await create_queue(engines, LINE)

    with pytest.raises(GroupNotParked):
        await engines.parked_groups.resume(LINE, "a")


async def test_parked_groups_are_listed_by_name(engines):
    await create_queue(engines, LINE)
    for group in ("b", "c", "a"):
        await engines.parked_groups.park(LINE, group, "")

    first = await engines.parked_groups.browse(LINE, groups_max=2)
    rest = await engines.parked_groups.browse(LINE, after="b")

    assert [group.group for group in first] == ["a", "b"]
    assert [group.group for group in rest] == ["c"]


@pytest.mark.parametrize(
    ("name", "more"),
    [(WORK, {}), (LINE, {"dead_letters": DeadLetterTarget("lost.fifo", 3)})],
)
async def test_park_policy_is_rejected_where_it_cannot_apply(engines, name, more):
    await create_queue(engines, DEAD)

    with pytest.raises(ValidationFailed) as refused:
        await create_queue(engines, name, on_poison=PoisonPolicy.PARK_GROUP, **more)

    assert "/on_poison" in [fault.pointer for fault in refused.value.faults]
