"""Clients over WebSocket: publishers, workers, readers and members."""

import asyncio
from functools import partial
from random import Random

from tests.chaos.history import Kind
from tests.chaos.socket_protocol import Member, Publisher, Reader, Worker
from tests.chaos.stage import EVENTS, LINE, PAUSE_S, WORK, Stage

GROUPS = 3


async def publish(stage: Stage, name: str, protocol: Publisher, chance: Random) -> None:
    """Publish messages, grouped messages and records in turn, each until accepted."""
    keeping = asyncio.create_task(protocol.session.keep(stage.over))
    number = 0
    while stage.goes_on:
        value, group = f"{name}:{number}", f"{name}-{chance.randrange(GROUPS)}"
        asks = (
            partial(protocol.send, WORK, value),
            partial(protocol.send, LINE, value, group),
            partial(protocol.append, EVENTS, value, group),
        )
        await stage.insist(asks[number % len(asks)])
        number += 1
        await stage.pause(chance)
    await keeping


async def work(stage: Stage, name: str, protocol: Worker, chance: Random) -> None:
    """Acknowledge most messages, return some."""
    keeping = asyncio.create_task(protocol.session.keep(stage.over))
    while stage.goes_on:
        if not protocol.arrived:
            await asyncio.sleep(PAUSE_S)
            continue
        delivery = protocol.arrived.popleft()
        kind = Kind.ACK if chance.random() < 0.95 else Kind.NACK
        await protocol.settle(delivery, kind)
        await protocol.grant()
    await keeping


async def read(stage: Stage, name: str, protocol: Reader, chance: Random) -> None:
    """Read everything once."""
    await protocol.session.keep(stage.over)


async def belong(stage: Stage, name: str, protocol: Member, chance: Random) -> None:
    """Commit what was received."""
    keeping = asyncio.create_task(protocol.session.keep(stage.over))
    while stage.goes_on:
        for shard, up_to in [*protocol.due.items()]:
            await protocol.commit(shard, up_to)
            if protocol.due.get(shard) == up_to:
                protocol.due.pop(shard)
        await stage.pause(chance, 5 * PAUSE_S)
    await keeping
