"""Owners of targets: a queue that is deleted and created again, and one that refuses everything."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import count

from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import QueueNotFound
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.queue import Queue, QueueSpec
from storage.domain.streams.stream import ReadFrom
from storage.domain.topics.topic import routes_of
from tests.chaos.checking.routing import last_log
from tests.chaos.history import Kind, Seen
from tests.chaos.stage import EVENTS, VISIBILITY_S
from tests.simulator.queue_clients import QueueClient
from tests.simulator.world import World

PAUSE_S = 0.15
TOPIC = TopicName("orders")
REPLACED = "replaced"
"""Queue that is deleted and created again."""

FULL = "full"
"""Queue that has no capacity for some time, again and again."""

DELIVERED_S_MAX = 60.0
"""Time in which another target receives a message without faults."""


_SPEC = QueueSpec(visibility_timeout_ms=int(VISIBILITY_S * 1000), attempts_max=None)


async def create_target(storage: Storage) -> Queue:
    """Create the queue that is deleted later."""
    return (await storage.catalog.put_queue(QueueName(REPLACED), _SPEC)).definition


async def replace_target(world: World, name: str) -> None:
    """Receive from the queue; delete it now and then, and create it again."""
    client = QueueClient(world, name)
    while world.goes_on:
        log = last_log(world.history.operations, REPLACED)
        received = await client.receive(log, 10)
        for delivery in received.seen:
            await client.settle(log, delivery, Kind.ACK)
        await client.pause(2 * PAUSE_S)
        if client.chance.random() < 0.2:
            await _replace(client)


async def _replace(client: QueueClient) -> None:
    invoked = client.world.history.now()
    await client.insist(_delete)
    client.note(Kind.TARGET_DELETED, REPLACED, invoked=invoked)
    await client.pause(1.0)
    await client.insist(create_target)


async def _delete(storage: Storage) -> bool:
    with suppress(QueueNotFound):  # after a call that was not answered
        await storage.catalog.delete_queue(QueueName(REPLACED))
    return True


async def fill_target(world: World, name: str) -> None:
    """Let the queue refuse everything, and accept everything."""
    client = QueueClient(world, name)
    while world.goes_on:
        await client.attempt(partial(_limit, 1))
        await client.pause(1.0)
        await client.attempt(partial(_limit, None))
        await client.pause(0.5)


async def _limit(messages_max: int | None, storage: Storage) -> Queue:
    spec = replace(_SPEC, messages_max=messages_max)
    return (await storage.catalog.put_queue(QueueName(FULL), spec)).definition


async def note_full_target(client: QueueClient, publish: Callable[[str], Awaitable[None]]) -> None:
    """Record what another target receives while the queue refuses more than its buffer holds."""
    world, fillers = client.world, (f"filler:{number}" for number in count(1))
    await client.insist(partial(_limit, 1))
    world.waits_for = f"the route to {FULL} to fail"
    while not await client.insist(_failures):
        await publish(next(fillers))
        await client.pause(PAUSE_S)
    for _ in range(limits.ROUTER_OUTBOX_RECORDS + 1):
        await publish(next(fillers))
    invoked, seen, last = world.history.now(), tuple[Seen, ...](), next(fillers)
    await publish(last)
    while not seen and world.history.now() < invoked + DELIVERED_S_MAX:
        await client.pause(PAUSE_S)
        records = await client.insist(partial(read_all, EVENTS))
        seen = tuple(one for one in records if one.value == last)
    client.note(Kind.TARGET_FULL, FULL, invoked=invoked, group=EVENTS, seen=seen)
    await client.insist(partial(_limit, None))


async def _failures(storage: Storage) -> list[str]:
    route = await storage.topic_routes.get(RouteName(TOPIC, FULL))
    return [route.failure] if route.failure else []


async def read_all(stream: str, storage: Storage) -> list[Seen]:
    """Return the records of a stream, those of a topic with their routes."""
    name, seen = StreamName(stream), list[Seen]()
    for state in await storage.record_reader.shards(name):
        where = ReadFrom(offset=state.start)
        page = await storage.record_reader.read_shard(name, state.shard.index, where)
        seen += [
            Seen(
                value=one.record.data.decode(),
                shard=state.shard.index,
                offset=one.offset,
                group=one.record.key,
                routes=routes_of(one.record.headers),
            )
            for one in page.records
        ]
    return seen
