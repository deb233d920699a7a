"""Who sends, who works, who fails, and who comes too late."""

import asyncio
from functools import partial
from random import Random

from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.queue_doors import QueueDoor
from tests.chaos.stage import DOOMED, FRAGILE, LINE, MORGUE, VISIBILITY_S, WORK, Stage

GROUPS = 4
DELAY_S = 1.0
SLOWLY_S = 0.2
AWKWARD = "7"
LATE_S = VISIBILITY_S * 1.3
HELD_S = VISIBILITY_S * 0.6


async def send(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """Each value once; some with a delay."""
    number = 0
    while stage.goes_on:
        delay_s = DELAY_S if chance.random() < 0.05 else 0.0
        await door.send(WORK, f"{name}:{number}", delay_s=delay_s)
        number += 1
        await stage.pause(chance)


async def send_in_order(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """To groups of its own; a send is repeated with its id until it is accepted."""
    number = 0
    while stage.goes_on:
        group = f"{name}-{chance.randrange(GROUPS)}"
        await stage.insist(partial(door.send, LINE, f"{name}:{number}", group=group))
        number += 1
        await stage.pause(chance)


async def send_what_fails(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """To both queues in which everything becomes a dead letter."""
    number = 0
    while stage.goes_on:
        for queue in (FRAGILE, DOOMED):
            await door.send(queue, f"{name}:{queue}:{number}")
        number += 1
        await stage.pause(chance, SLOWLY_S)


async def work(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """Acknowledge most, give some back, forget some; the awkward ones are acknowledged too late, and then held."""
    later: set[asyncio.Task[None]] = set()
    while stage.goes_on:
        received = await door.receive(WORK, chance.randint(1, 10), wait_s=1, hidden_s=VISIBILITY_S)
        for delivery in received.seen:
            luck = chance.random()
            if _is_awkward(delivery):
                wait_s = LATE_S if delivery.receives == 1 else HELD_S
                task = asyncio.create_task(_acknowledge_later(stage, door, delivery, wait_s))
                later.add(task)
                task.add_done_callback(later.discard)
            elif luck < 0.92:
                await door.settle(WORK, delivery, Kind.ACK)
            elif luck < 0.97:
                await door.settle(WORK, delivery, Kind.NACK)
        if received.outcome is not Outcome.OK:
            await stage.pause(chance)
    await asyncio.gather(*later)


def _is_awkward(delivery: Seen) -> bool:
    """Whether its workers behave badly: the first comes back when the second has it."""
    return delivery.receives <= 2 and delivery.value.endswith(AWKWARD)


async def _acknowledge_later(stage: Stage, door: QueueDoor, delivery: Seen, seconds: float) -> None:
    await asyncio.sleep(seconds)
    if stage.goes_on:
        await door.settle(WORK, delivery, Kind.ACK)


async def work_in_order(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """Acknowledge one after another; sometimes stop in the middle, and everything behind must wait."""
    while stage.goes_on:
        received = await door.receive(LINE, chance.randint(1, 10), wait_s=1, hidden_s=VISIBILITY_S)
        for delivery in received.seen:
            if chance.random() < 0.03:
                break
            await door.settle(LINE, delivery, Kind.ACK)
        if received.outcome is not Outcome.OK:
            await stage.pause(chance)


async def break_down(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """Fail at everything."""
    while stage.goes_on:
        for queue in (FRAGILE, DOOMED):
            received = await door.receive(queue, 10, wait_s=0, hidden_s=VISIBILITY_S)
            for delivery in received.seen:
                await door.settle(queue, delivery, Kind.NACK)
        await stage.pause(chance, SLOWLY_S)


async def bury(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """Take the dead letters out of the queue that they have of their own."""
    while stage.goes_on:
        received = await door.receive(MORGUE, 10, wait_s=1, hidden_s=VISIBILITY_S)
        for delivery in received.seen:
            if chance.random() < 0.8:
                await door.settle(MORGUE, delivery, Kind.ACK)
        await stage.pause(chance)
