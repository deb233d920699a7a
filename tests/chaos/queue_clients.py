"""Queue clients: senders, workers, failing workers and late ones."""

import asyncio
from functools import partial
from random import Random

from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.queue_protocols import QueueProtocol
from tests.chaos.stage import DOOMED, FRAGILE, LINE, MORGUE, VISIBILITY_S, WORK, ClientContext

GROUPS = 4
DELAY_S = 1.0
SLOWLY_S = 0.2
AWKWARD = "7"
LATE_S = VISIBILITY_S * 1.3
HELD_S = VISIBILITY_S * 0.6


async def send(stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random) -> None:
    """Send each value once, some with a delay."""
    number = 0
    while stage.goes_on:
        delay_s = DELAY_S if chance.random() < 0.05 else 0.0
        await protocol.send(WORK, f"{name}:{number}", delay_s=delay_s)
        number += 1
        await stage.pause(chance)


async def send_in_order(
    stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random
) -> None:
    """Send to own groups, repeating each send with its id until accepted."""
    number = 0
    while stage.goes_on:
        group = f"{name}-{chance.randrange(GROUPS)}"
        await stage.insist(partial(protocol.send, LINE, f"{name}:{number}", group=group))
        number += 1
        await stage.pause(chance)


async def send_what_fails(
    stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random
) -> None:
    """Send to both queues in which everything is dead-lettered."""
    number = 0
    while stage.goes_on:
        for queue in (FRAGILE, DOOMED):
            await protocol.send(queue, f"{name}:{queue}:{number}")
        number += 1
        await stage.pause(chance, SLOWLY_S)


async def work(stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random) -> None:
    """Acknowledge most messages, return some, forget some, and acknowledge awkward ones late."""
    later: set[asyncio.Task[None]] = set()
    while stage.goes_on:
        received = await protocol.receive(
            WORK, chance.randint(1, 10), wait_s=1, hidden_s=VISIBILITY_S
        )
        for delivery in received.seen:
            luck = chance.random()
            if _is_awkward(delivery):
                wait_s = LATE_S if delivery.receive_count == 1 else HELD_S
                task = asyncio.create_task(_acknowledge_later(stage, protocol, delivery, wait_s))
                later.add(task)
                task.add_done_callback(later.discard)
            elif luck < 0.92:
                await protocol.settle(WORK, delivery, Kind.ACK)
            elif luck < 0.97:
                await protocol.settle(WORK, delivery, Kind.NACK)
        if received.outcome is not Outcome.OK:
            await stage.pause(chance)
    await asyncio.gather(*later)


def _is_awkward(delivery: Seen) -> bool:
    """Return whether its first worker acknowledges after the second received it."""
    return delivery.receive_count <= 2 and delivery.value.endswith(AWKWARD)


async def _acknowledge_later(
    stage: ClientContext, protocol: QueueProtocol, delivery: Seen, seconds: float
) -> None:
    await asyncio.sleep(seconds)
    if stage.goes_on:
        await protocol.settle(WORK, delivery, Kind.ACK)


async def work_in_order(
    stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random
) -> None:
    """Acknowledge one by one; sometimes stop, which blocks the group."""
    while stage.goes_on:
        received = await protocol.receive(
            LINE, chance.randint(1, 10), wait_s=1, hidden_s=VISIBILITY_S
        )
        for delivery in received.seen:
            if chance.random() < 0.03:
                break
            await protocol.settle(LINE, delivery, Kind.ACK)
        if received.outcome is not Outcome.OK:
            await stage.pause(chance)


async def break_down(
    stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random
) -> None:
    """Nack everything."""
    while stage.goes_on:
        for queue in (FRAGILE, DOOMED):
            received = await protocol.receive(queue, 10, wait_s=0, hidden_s=VISIBILITY_S)
            for delivery in received.seen:
                await protocol.settle(queue, delivery, Kind.NACK)
        await stage.pause(chance, SLOWLY_S)


async def tombstone(
    stage: ClientContext, name: str, protocol: QueueProtocol, chance: Random
) -> None:
    """Receive from the dead-letter queue."""
    while stage.goes_on:
        received = await protocol.receive(MORGUE, 10, wait_s=1, hidden_s=VISIBILITY_S)
        for delivery in received.seen:
            if chance.random() < 0.8:
                await protocol.settle(MORGUE, delivery, Kind.ACK)
        await stage.pause(chance)
