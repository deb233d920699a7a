"""Who publishes, works, reads and shares over sockets. Each is at work for as long as its session is kept."""

import asyncio
from functools import partial
from random import Random

from tests.chaos.history import Kind
from tests.chaos.socket_door import Member, Publisher, Reader, Worker
from tests.chaos.stage import EVENTS, LINE, PAUSE_S, WORK, Stage

GROUPS = 3


async def publish(stage: Stage, name: str, door: Publisher, chance: Random) -> None:
    """Messages, messages of groups, and records, in turn, each until it is accepted."""
    keeping = asyncio.create_task(door.session.keep(stage.over))
    number = 0
    while stage.goes_on:
        value, group = f"{name}:{number}", f"{name}-{chance.randrange(GROUPS)}"
        asks = (
            partial(door.send, WORK, value),
            partial(door.send, LINE, value, group),
            partial(door.append, EVENTS, value, group),
        )
        await stage.insist(asks[number % len(asks)])
        number += 1
        await stage.pause(chance)
    await keeping


async def work(stage: Stage, name: str, door: Worker, chance: Random) -> None:
    """Acknowledge most of what comes, give some back."""
    keeping = asyncio.create_task(door.session.keep(stage.over))
    while stage.goes_on:
        if not door.arrived:
            await asyncio.sleep(PAUSE_S)
            continue
        delivery = door.arrived.popleft()
        kind = Kind.ACK if chance.random() < 0.95 else Kind.NACK
        await door.settle(delivery, kind)
        await door.grant()
    await keeping


async def read(stage: Stage, name: str, door: Reader, chance: Random) -> None:
    """Everything, once."""
    await door.session.keep(stage.over)


async def belong(stage: Stage, name: str, door: Member, chance: Random) -> None:
    """Commit what came."""
    keeping = asyncio.create_task(door.session.keep(stage.over))
    while stage.goes_on:
        for shard, up_to in [*door.due.items()]:
            await door.commit(shard, up_to)
            if door.due.get(shard) == up_to:
                door.due.pop(shard)
        await stage.pause(chance, 5 * PAUSE_S)
    await keeping
