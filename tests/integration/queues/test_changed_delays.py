"""Changed delays of FIFO queues, which apply to what the queue contains."""

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain.queues.message import NewMessage, SettleAction
from storage.domain.queues.policies import PoisonPolicy
from storage.domain.queues.queue import QueueSpec, QueueType
from tests.queue_operations import LINE, create_queue, receive, settle


def fifo_message(body: bytes, group: str) -> NewMessage:
    return NewMessage(body, group=group, dedup_id=body.decode())


async def drain(engines: Storage) -> AsyncIterator[bytes]:
    """Yield the bodies of all messages, each of which is acknowledged."""
    while messages := await engines.queues.receive(LINE, messages_max=100):
        for message in messages:
            yield message.body
            await settle(engines.queues, LINE, message, SettleAction.ACK)


async def change_delay(engines, after_ms):
    before_ms = (await engines.catalog.queue(LINE)).spec.delay_ms
    await engines.catalog.change_queue(LINE, lambda spec: replace(spec, delay_ms=after_ms))
    await engines.inspector.redelay(LINE, before_ms)


async def states(engines):
    stats = await engines.queues.stats(LINE)
    return stats.ready, stats.delayed, stats.in_flight


@pytest.mark.parametrize("count", [1, 7, 2_500])
@pytest.mark.parametrize(("before_ms", "after_ms"), [(0, 60_000), (60_000, 0), (60_000, 90_000)])
async def test_changed_delay_applies_to_waiting_messages(
    engines, clock, count, before_ms, after_ms
):
    """Messages kept the delay of their sending, and later ones waited for them."""
    await create_queue(engines, LINE, delay_ms=before_ms)
    bodies = [str(number).encode() for number in range(count)]
    for start in range(0, count, 500):
        page = bodies[start : start + 500]
        await engines.queues.send(LINE, [fifo_message(body, f"g{len(body)}") for body in page])
    clock.advance(ms=10_000)

    await change_delay(engines, after_ms)
    waiting = await states(engines)
    early = []
    if after_ms:
        clock.advance(ms=after_ms - 10_001)
        early = await receive(engines.queues, LINE, messages_max=1)
        clock.advance(ms=1)
    received = [body async for body in drain(engines)]

    assert waiting == ((0, count, 0) if after_ms else (count, 0, 0))
    assert early == []
    assert sorted(received, key=int) == bodies
    for length in range(1, 5):
        of_group = [body for body in received if len(body) == length]
        assert of_group == sorted(of_group, key=int)


async def test_changed_delay_spares_received_messages(engines, clock):
    await create_queue(engines, LINE, delay_ms=0)
    await engines.queues.send(LINE, [fifo_message(body, "a") for body in (b"1", b"2")])
    [first] = await engines.queues.receive(LINE)
    await settle(engines.queues, LINE, first, SettleAction.RELEASE)

    await change_delay(engines, 5_000)
    received = await engines.queues.receive(LINE)
    await settle(engines.queues, LINE, received[0], SettleAction.ACK)
    clock.advance(ms=4_999)
    early = await receive(engines.queues, LINE)
    clock.advance(ms=1)

    assert [one.body for one in received] == [b"1"]
    assert early == []
    assert await receive(engines.queues, LINE) == [b"2"]


async def test_changed_delay_shifts_end_of_own_time(engines, clock):
    await create_queue(engines, LINE, delay_ms=0)
    timed = NewMessage(b"1", group="a", dedup_id="1", ttl_ms=8_000)
    await engines.queues.send(LINE, [timed])

    await change_delay(engines, 5_000)
    clock.advance(ms=12_999)

    assert await receive(engines.queues, LINE) == [b"1"]


async def test_changed_delay_applies_to_messages_of_parked_group(engines, clock):
    spec = QueueSpec(type=QueueType.FIFO, attempts_max=1, on_poison=PoisonPolicy.PARK_GROUP)
    await engines.catalog.put_queue(LINE, spec)
    await engines.queues.send(LINE, [fifo_message(body, "a") for body in (b"1", b"2", b"3")])
    [first] = await engines.queues.receive(LINE)
    await settle(engines.queues, LINE, first, SettleAction.NACK)
    before = await engines.queues.stats(LINE)

    await change_delay(engines, 60_000)
    delayed = await engines.queues.stats(LINE)
    await change_delay(engines, 0)
    after = await engines.queues.stats(LINE)

    assert (before.parked, delayed.parked, delayed.delayed) == (3, 1, 2)
    assert (after.parked, after.delayed) == (3, 0)
