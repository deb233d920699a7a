"""Routes to spreads: one whose members and shares change, and one whose members do not exist."""

from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain.names import QueueName, RouteName, StreamName
from storage.domain.queues.queue import Queue, QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.route import RouteFailurePolicy, RouteSpec, RouteTarget, TopicRoute
from tests.chaos.checking.topics import SUBJECTS
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.stage import VISIBILITY_S
from tests.simulator.target_clients import PAUSE_S, TOPIC
from tests.simulator.world import SimulatedCaller, World

SPREAD = "spread"
FIRST, SECOND, THIRD = "spread-1", "spread-2", "spread-3"
ABSENT = "absent"
"""Route whose members do not exist, so that each message is a dead letter."""

ABSENT_LETTERS = "absent-letters"
LOGS = {FIRST: SPREAD, SECOND: SPREAD, THIRD: SPREAD, ABSENT_LETTERS: ABSENT}
"""Routes by the logs that have their messages."""

QUEUES = (FIRST, SECOND, ABSENT_LETTERS)
TARGETS: tuple[dict[str, Any], ...] = (
    {"spread": [{"queue": FIRST, "weight": 2}, {"queue": SECOND, "weight": 1}], "by": "key"},
    {
        "spread": [
            {"queue": FIRST, "weight": 2},
            {"queue": SECOND, "weight": 1},
            {"stream": THIRD, "weight": 1},
        ],
        "by": "key",
    },
    {"spread": [{"queue": SECOND, "weight": 3}, {"stream": THIRD, "weight": 1}], "by": "random"},
)
"""Targets of the spread, in the form of the REST API."""

_QUEUE = QueueSpec(visibility_timeout_ms=int(VISIBILITY_S * 1000), attempts_max=None)
_SPECS = [RouteSpec(target=msgspec.convert(target, RouteTarget)) for target in TARGETS]
_ABSENT = RouteSpec(
    target=msgspec.convert({"spread": [{"queue": "none-1"}, {"queue": "none-2"}]}, RouteTarget),
    on_failure=RouteFailurePolicy.DEAD_LETTER,
    dead_letter_queue=ABSENT_LETTERS,
)


async def create_spreads(storage: Storage) -> None:
    """Create the routes, and the members that exist."""
    for queue in QUEUES:
        await storage.catalog.put_queue(QueueName(queue), _QUEUE)
    await storage.catalog.put_stream(StreamName(THIRD), StreamSpec(archive=False))
    await storage.topic_routes.put(RouteName(TOPIC, ABSENT), _ABSENT)
    await put_spread(storage)


async def change_spread(world: World, name: str) -> None:
    """Change members, weights and what they depend on; let a member refuse everything meanwhile."""
    client = SimulatedCaller(world, name)
    await _put(client, _SPECS[0])  # which it has: its number becomes known
    while world.goes_on:
        await _put(client, client.chance.choice(_SPECS))
        await client.pause(client.chance.random())
        await client.attempt(partial(limit_member, client.chance.choice((1, None))))
        await client.pause(0.5)


async def _put(client: SimulatedCaller, spec: RouteSpec) -> None:
    verb = partial(put_spread, spec=spec)
    about = {"group": SPREAD, "values": SUBJECTS}
    while client.world.goes_on:
        done = await client.call(Kind.ROUTE, TOPIC.name, verb, revision_of, **about)
        if done.outcome is Outcome.OK:
            return
        await client.pause(PAUSE_S)


async def put_spread(storage: Storage, spec: RouteSpec = _SPECS[0]) -> TopicRoute:
    """Create or change the route to the spread."""
    return (await storage.topic_routes.put(RouteName(TOPIC, SPREAD), spec)).definition


def revision_of(route: TopicRoute) -> dict[str, Any]:
    """Return what the history has of a revision: its number, and that of its target."""
    target = _SPECS.index(replace(route.spec, paused=False))
    seen = Seen(value=SPREAD, offset=route.number, shard=target, id=route.stream_id)
    return {"seen": (seen,)}


async def limit_member(messages_max: int | None, storage: Storage) -> Queue:
    """Let a member refuse what exceeds a number of messages, or accept everything."""
    spec = replace(_QUEUE, messages_max=messages_max)
    return (await storage.catalog.put_queue(QueueName(SECOND), spec)).definition
