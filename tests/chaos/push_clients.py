"""Who sends what webhooks deliver, and who follows a stream's events."""

from functools import partial
from random import Random

from tests.chaos.events_door import Follower
from tests.chaos.queue_doors import QueueDoor
from tests.chaos.stage import PAUSE_S, POSTED, POSTED_LINE, Stage

GROUPS = 4
FOLLOWS_S = (0.3, 2.0)


async def send(stage: Stage, name: str, door: QueueDoor, chance: Random) -> None:
    """Messages, each once, and messages of groups of its own, each until it is accepted, in turn."""
    number = 0
    while stage.goes_on:
        value, group = f"{name}:{number}", f"{name}-{chance.randrange(GROUPS)}"
        if number % 2:
            await stage.insist(partial(door.send, POSTED_LINE, value, group=group))
        else:
            await door.send(POSTED, value)
        number += 1
        await stage.pause(chance, 2 * PAUSE_S)


async def follow(stage: Stage, name: str, door: Follower, chance: Random) -> None:
    """Everything; it hangs up now and then, and goes on."""
    while stage.goes_on:
        await door.follow(chance.uniform(*FOLLOWS_S))
