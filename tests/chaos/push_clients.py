"""Senders of messages for webhooks, and followers of events."""

from functools import partial
from random import Random

from tests.chaos.event_follower import Follower
from tests.chaos.queue_protocols import QueueProtocol
from tests.chaos.stage import PAUSE_S, POSTED, POSTED_LINE, Stage

GROUPS = 4
FOLLOWS_S = (0.3, 2.0)


async def send(stage: Stage, name: str, protocol: QueueProtocol, chance: Random) -> None:
    """Send single messages, and messages of own groups until accepted, in turn."""
    number = 0
    while stage.goes_on:
        value, group = f"{name}:{number}", f"{name}-{chance.randrange(GROUPS)}"
        if number % 2:
            await stage.insist(partial(protocol.send, POSTED_LINE, value, group=group))
        else:
            await protocol.send(POSTED, value)
        number += 1
        await stage.pause(chance, 2 * PAUSE_S)


async def follow(stage: Stage, name: str, protocol: Follower, chance: Random) -> None:
    """Follow everything, with occasional disconnects."""
    while stage.goes_on:
        await protocol.follow(chance.uniform(*FOLLOWS_S))
