"""Concurrent receives and settlements share script calls, invisibly to the callers."""

import asyncio
import random
from typing import Any

import pytest
import redis

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import ErrorCode, InFlightLimitReached
from storage.domain.queues.message import ReceivedMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.redis.queues.receive import Receives
from tests.queue_operations import LINE, WORK, create_queue, receive, send


async def all_receive(
    engines: Storage, name=WORK, *, callers: int = 20, most: int = 10, **more: Any
) -> list[list[ReceivedMessage]]:
    """Receive with so many callers concurrently."""
    messages = (engines.queues.receive(name, messages_max=most, **more) for _ in range(callers))
    return await asyncio.gather(*messages)


def bodies(found: list[list[ReceivedMessage]]) -> list[bytes]:
    return [message.body for some in found for message in some]


def script_calls(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        info = client.info("commandstats")
    assert isinstance(info, dict)
    return int(info["cmdstat_evalsha"]["calls"])


async def test_concurrent_receivers_get_distinct_messages_in_order(engines):
    await create_queue(engines, WORK)
    sent = [b"%d" % number for number in range(55)]
    await send(engines.queues, WORK, *sent)

    found = await all_receive(engines)

    assert bodies(found) == sent
    assert [len(some) for some in found] == [10] * 5 + [5] + [0] * 14
    assert (await engines.queues.stats(WORK)).in_flight == 55


@pytest.mark.one_store
async def test_concurrent_receives_share_script_calls(engines, redis_url):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"x"] * 500)
    before = script_calls(redis_url)

    found = await all_receive(engines, callers=50)
    received = script_calls(redis_url)
    await asyncio.gather(*(acknowledged(engines, some) for some in found))

    assert received - before <= 6
    assert script_calls(redis_url) - received <= 6
    assert (await engines.queues.stats(WORK)).acknowledged == 500


async def acknowledged(engines: Storage, messages: list[ReceivedMessage]) -> list[ErrorCode | None]:
    verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in messages]
    return [settled.error for settled in await engines.queues.settle(WORK, verdicts)]


async def test_batched_receives_keep_their_own_limits_and_timeouts(engines, clock):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"%d" % number for number in range(6)])

    few, many = await asyncio.gather(
        engines.queues.receive(WORK, messages_max=2, visibility_timeout_ms=1_000),
        engines.queues.receive(WORK, messages_max=10, visibility_timeout_ms=5_000),
    )
    clock.advance(ms=1_000)

    assert (len(few), len(many)) == (2, 4)
    assert few[0].visible_at_ms + 4_000 == many[0].visible_at_ms
    assert await receive(engines.queues, WORK) == [b"0", b"1"]


async def test_large_messages_reach_every_receiver_over_several_calls(engines, monkeypatch):
    monkeypatch.setattr(limits, "RECEIVE_BYTES_MAX", 5_000)
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[bytes([65 + number]) * 1_000 for number in range(20)])

    found = await all_receive(engines, callers=10, most=2)

    assert [len(some) for some in found] == [2] * 10
    assert len(set(bodies(found))) == 20


async def test_message_group_is_delivered_to_one_concurrent_receiver(engines):
    await create_queue(engines, LINE)
    for group in ("a", "b"):
        await send(engines.queues, LINE, *[group.encode()] * 15, group=group)

    found = await all_receive(engines, LINE, callers=5)

    groups = [{message.group for message in some} for some in found]
    assert sorted(map(sorted, groups)) == [[], [], [], ["a"], ["b"]]


async def test_concurrent_attempts_of_one_id_get_same_messages(engines):
    await create_queue(engines, LINE)
    await send(engines.queues, LINE, b"1", b"2", group="a")

    first, again = await all_receive(engines, LINE, callers=2, attempt_id="once")

    assert bodies([first]) == bodies([again]) == [b"1", b"2"]
    assert [one.receipt_handle for one in first] == [one.receipt_handle for one in again]


async def test_concurrent_receives_respect_in_flight_limit(engines):
    await engines.catalog.put_queue(WORK, QueueSpec(in_flight_max=25))
    await send(engines.queues, WORK, *[b"x"] * 50)

    messages = (engines.queues.receive(WORK, messages_max=10) for _ in range(5))
    results = await asyncio.gather(*messages, return_exceptions=True)

    assert [len(some) for some in results if isinstance(some, list)] == [10, 10, 5]
    assert [type(some) for some in results[3:]] == [InFlightLimitReached] * 2


async def test_batched_receives_split_between_grouped_and_ungrouped(engines):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"plain"] * 100)
    for group in ("a", "b", "c"):
        await send(engines.queues, WORK, *[b"grouped"] * 30, group=group)

    found = await all_receive(engines, callers=9, most=5)

    assert bodies(found).count(b"plain") in (22, 23)
    assert {bodies([some]).count(b"plain") for some in found} == {2, 3}


@pytest.mark.parametrize("left_already", [True, False])
async def test_messages_of_cancelled_receive_are_ready_again(engines, monkeypatch, left_already):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"%d" % number for number in range(30)])
    make, handed_out = Receives.commands, []

    def commands(gatherer: Receives, parts: Any) -> Any:
        if left_already:
            asked[1].cancel()
        return make(gatherer, parts)

    monkeypatch.setattr(Receives, "commands", commands)
    give_up = engines.queues.release

    async def release(name: Any, messages: Any) -> None:
        handed_out.extend(messages)
        await give_up(name, messages)

    monkeypatch.setattr(engines.queues, "release", release)
    asked = [asyncio.create_task(engines.queues.receive(WORK, messages_max=10)) for _ in range(3)]
    await asyncio.sleep(0)
    if not left_already:
        asked[1].cancel()

    results = await asyncio.gather(*asked, return_exceptions=True)
    await engines.queues.close()

    assert [type(some) for some in results] == [list, asyncio.CancelledError, list]
    assert len(handed_out) == (10 if left_already else 0)
    stats = await engines.queues.stats(WORK)
    assert (stats.in_flight, stats.ready) == (20, 10)


async def test_batched_settlements_are_answered_individually(engines, clock):
    chance = random.Random(7)
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"x"] * 60)
    found = await all_receive(engines, callers=6)
    clock.advance(ms=1)
    actions = [[chance.choice(list(SettleAction)) for _ in some] for some in found]
    for some in actions:
        some[0] = SettleAction.EXTEND
    found[3][0] = found[2][
        5
    ]  # two callers settle one delivery: only an acknowledgement may be repeated
    actions[2][5] = actions[3][0] = SettleAction.ACK

    settled = await asyncio.gather(
        *(
            engines.queues.settle(
                WORK,
                [
                    Settlement(one.receipt_handle, action, visibility_timeout_ms=9_000)
                    for one, action in zip(some, printed_action, strict=True)
                ],
            )
            for some, printed_action in zip(found, actions, strict=True)
        )
    )

    assert {one.error for some in settled for one in some} == {None}
    extended = [[one.visible_at_ms == clock.now_ms() + 9_000 for one in some] for some in settled]
    assert extended == [
        [action is SettleAction.EXTEND for action in printed_action] for printed_action in actions
    ]
    flat = [action for printed_action in actions for action in printed_action]
    stats = await engines.queues.stats(WORK)
    assert stats.acknowledged == flat.count(SettleAction.ACK) - 1
    assert stats.dead_lettered == flat.count(SettleAction.REJECT)
    assert (
        stats.in_flight == flat.count(SettleAction.EXTEND) + 1
    )  # found[3][0] was in flight, unsettled
