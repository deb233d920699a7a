"""Senders to queues that have routes, changes of these routes, and routers in every process."""

from functools import partial
from typing import Any

from storage.bootstrap import Storage
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from tests.chaos.checking.topics import SUBJECTS, subject_of
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.stage import VISIBILITY_S
from tests.simulator.queue_clients import QueueClient, empty
from tests.simulator.routing_clients import number_of, routing, run_routers, waiting_of
from tests.simulator.target_clients import PAUSE_S, read_all
from tests.simulator.world import SimulatedCaller, World

LINE = QueueName("line")
"""FIFO queue whose route changes: what it does not match is a dead letter."""

SPARE = QueueName("spare")
"""Queue whose route is deleted and created again: without it, messages stay."""

ORDERED = "ordered"
"""Stream with the messages of the first."""

MOVED = "moved"
"""Queue with the messages of the second."""

_ROUTES = {LINE: ORDERED, SPARE: MOVED}
_TARGETS = {ORDERED: RouteTarget(stream=ORDERED), MOVED: RouteTarget(queue=MOVED)}


async def create_queues(storage: Storage) -> None:
    """Create the queues, their targets, and the route of the first."""
    spec = QueueSpec(visibility_timeout_ms=int(VISIBILITY_S * 1000), attempts_max=None)
    fifo = QueueSpec(type=QueueType.FIFO, attempts_max=None)
    for queue, own in ((LINE, fifo), (SPARE, spec), (QueueName(MOVED), spec)):
        await storage.catalog.put_queue(queue, own)
    await storage.catalog.put_stream(StreamName(ORDERED), StreamSpec(archive=False))
    await _call_put(LINE, SUBJECTS, storage)


async def send_in_order(world: World, name: str) -> None:
    """Send one message after another with one group, each until it is accepted."""
    await _send(world, name, LINE)


async def send(world: World, name: str) -> None:
    """Send one message after another, each until it is accepted."""
    await _send(world, name, SPARE)


async def _send(world: World, name: str, queue: QueueName) -> None:
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        number += 1
        value = f"{name}:{number}"
        while await _send_one(client, queue, value) is not Outcome.OK and world.goes_on:
            await client.pause(PAUSE_S)
        await client.pause(PAUSE_S)


async def _send_one(client: SimulatedCaller, queue: QueueName, value: str) -> Outcome:
    verb = partial(_call_send, queue, client.name, value)
    topic = TopicName.of_queue(queue).name
    return (await client.call(Kind.PUBLISH, topic, verb, _sent, values=(value,))).outcome


async def _call_send(queue: QueueName, client: str, value: str, storage: Storage) -> object:
    headers = (("subject", "", subject_of(value).encode()),)
    group, dedup_id = (client, value) if queue == LINE else ("", "")
    message = NewMessage(value.encode(), headers=headers, group=group, dedup_id=dedup_id)
    return await storage.queues.send(queue, [message], idempotency_key=value)


def _sent(_: Any) -> dict[str, Any]:
    return {}


async def change_route(world: World, name: str) -> None:
    """Change the match of the first queue's route."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await client.pause(2 * client.chance.random())
        subjects = client.chance.sample(SUBJECTS, client.chance.randint(1, 3))
        await _put(client, LINE, tuple(sorted(subjects)))


async def remake_route(world: World, name: str) -> None:
    """Create the route of the second queue, and delete it, again and again."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await _put(client, SPARE, SUBJECTS[:2])
        await client.pause(client.chance.random())
        await client.call(Kind.ROUTE, _topic(SPARE), _delete, lambda _: {}, group=MOVED)
        await client.pause(client.chance.random())


async def _put(client: SimulatedCaller, queue: QueueName, subjects: tuple[str, ...]) -> Outcome:
    verb = partial(_call_put, queue, subjects)
    about = {"group": _ROUTES[queue], "values": subjects}
    return (await client.call(Kind.ROUTE, _topic(queue), verb, number_of, **about)).outcome


async def _call_put(queue: QueueName, subjects: tuple[str, ...], storage: Storage) -> TopicRoute:
    match = {"filter": {"headers": {"subject": [*subjects]}}}
    spec = RouteSpec(target=_TARGETS[_ROUTES[queue]], match=match)
    return (await storage.topic_routes.put(_route(queue), spec)).definition


async def _delete(storage: Storage) -> TopicRoute:
    return await storage.topic_routes.delete(_route(SPARE))


def _route(queue: QueueName) -> RouteName:
    return RouteName(TopicName.of_queue(queue), _ROUTES[queue])


def _topic(queue: QueueName) -> str:
    return TopicName.of_queue(queue).name


async def sweep(world: World, name: str) -> None:
    """Do the maintenance of the queues, which finishes transfers, beside the routers."""
    client = QueueClient(world, name)
    while world.goes_on:
        await client.pause(2 * client.chance.random())
        for queue in _ROUTES:
            await client.attempt(lambda storage: storage.queues.sweep(queue))  # noqa: B023


async def drain(world: World) -> None:
    """Route everything, then read the targets, the topics and the dead letters."""
    client = QueueClient(world, "drain")
    for queue in _ROUTES:
        while await _put(client, queue, SUBJECTS) is not Outcome.OK:
            await client.pause(PAUSE_S)
    async with routing(world):
        while left := await client.insist(_left):
            world.waits_for = f"{left} messages and buffers to be routed"
            await client.pause(PAUSE_S)
    await empty(client, MOVED)
    client.note(Kind.READ, ORDERED, seen=tuple(await client.insist(partial(read_all, ORDERED))))
    for queue in _ROUTES:
        topic = TopicName.of_queue(queue)
        records = await client.insist(partial(read_all, topic.stream.name))
        client.note(Kind.TAKEN, topic.name, seen=tuple(records))
        letters = await client.insist(partial(_dead_letters, queue))
        client.note(Kind.DEAD_LETTERS, topic.name, seen=tuple(letters))


async def _left(storage: Storage) -> int:
    """Return how many messages are in the queues, and how many buffers are behind."""
    left = 0
    for queue in _ROUTES:
        stats = await storage.queues.stats(queue)
        left += stats.ready + stats.in_flight + stats.delayed + stats.moving
        left += await waiting_of(TopicName.of_queue(queue).stream, storage)
    return left


async def _dead_letters(queue: QueueName, storage: Storage) -> list[Seen]:
    letters, _ = await storage.dead_letters.browse(queue, messages_max=1000)
    return [Seen(value=one.body.decode(), id=one.message_id) for one in letters]


CLIENTS = (
    send_in_order,
    send_in_order,
    send,
    send,
    change_route,
    remake_route,
    sweep,
    run_routers,
    run_routers,
)
