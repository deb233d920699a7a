"""Publishers to a topic, changes of its routes, and routers in every process."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import Appended, LogRecord, ReadFrom, StreamSpec
from storage.domain.streams.topic_spec import TopicDedupScope, TopicSpec, TopicType
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.topic import NewPublication, PublicationOptions, Published
from storage.domain.topics.transform import HeaderTransform, Transform
from tests.chaos.checking.routing import last_log
from tests.chaos.checking.topics import ROUTE_COUNTS, SUBJECTS, subject_of
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.stage import EVENTS, SHARDS, VISIBILITY_S, WORK
from tests.simulator import spread_clients
from tests.simulator.queue_clients import QueueClient, empty
from tests.simulator.routing_clients import number_of, routing, run_routers, waiting_of
from tests.simulator.spread_clients import SPREAD
from tests.simulator.stream_protocol import set_shard_count
from tests.simulator.target_clients import (
    FULL,
    PAUSE_S,
    REPLACED,
    TOPIC,
    create_target,
    fill_target,
    note_full_target,
    read_all,
    replace_target,
)
from tests.simulator.world import SimulatedCaller, World

PAYMENTS = TopicName("payments")
"""FIFO topic, whose publishers repeat deduplication ids."""

LEDGER = "ledger"
"""FIFO queue with the messages of that topic."""

SOURCE = StreamName("source")
"""Stream with two routes: to COPIED, which gets everything, and to CHOSEN, whose match changes."""

COPIED = "copied"
CHOSEN = "chosen"
EXTRA = "extra"
STRICT = "strict"
DEAD = "dead"
LATE = "late"
TWICE = "twice"
"""Queue with a copy by each of two routes."""

TWICE_ROUTES = ("twice.first", "twice.second")
_QUEUES = (WORK, EXTRA, STRICT, DEAD, LEDGER, TWICE, FULL)
_STREAMS = (EVENTS, LATE, COPIED, CHOSEN)
_TARGETS = {
    WORK: RouteTarget(queue=WORK),
    EVENTS: RouteTarget(stream=EVENTS),
    EXTRA: RouteTarget(queue=EXTRA),
    STRICT: RouteTarget(queue=STRICT),
    LEDGER: RouteTarget(queue=LEDGER),
    COPIED: RouteTarget(stream=COPIED),
    CHOSEN: RouteTarget(stream=CHOSEN),
    FULL: RouteTarget(queue=FULL),
    REPLACED: RouteTarget(queue=REPLACED),
}
"""Targets by the route of the same name."""

_FITTING = (("fits", "", b"yes"),)
_STRICT = RouteSpec(
    target=_TARGETS[STRICT],
    match={"subject": ["s0", "s1"]},
    transform=Transform(
        paths={"fits": "/headers/fits"},
        headers=HeaderTransform(templates={"fits": "<fits>"}),
        strict=True,
    ),
    dead_letter_queue=DEAD,
)
"""Route that dead-letters messages without the header."""


_TWICE = RouteSpec(
    target=RouteTarget(queue=TWICE),
    match=[{"subject": "s0"}, {"subject": ["s0", "s1"]}, {"filter": {"subject": ["s0"]}}],
)
"""Route of which a message can meet several matches."""

_LATE = RouteSpec(target=RouteTarget(stream=LATE), start=StartAt.EARLIEST)
"""Route that is created late, and takes all messages."""


async def create_topic(storage: Storage) -> None:
    """Create the topics and their targets; the first has a route with dead letters."""
    spec = QueueSpec(visibility_timeout_ms=int(VISIBILITY_S * 1000), attempts_max=None)
    for queue in _QUEUES:
        kind = QueueType.FIFO if queue == LEDGER else QueueType.STANDARD
        await storage.catalog.put_queue(QueueName(queue), replace(spec, type=kind))
    for stream in _STREAMS:
        await storage.catalog.put_stream(StreamName(stream), StreamSpec(archive=False))
    await storage.topics.put(TOPIC, StreamSpec(shards=SHARDS, archive=False))
    await create_target(storage)
    await spread_clients.create_spreads(storage)
    for route in (EVENTS, FULL, REPLACED):
        await storage.topic_routes.put(RouteName(TOPIC, route), RouteSpec(target=_TARGETS[route]))
    for route in TWICE_ROUTES:
        await storage.topic_routes.put(RouteName(TOPIC, route), _TWICE)
    await storage.topic_routes.put(RouteName(TOPIC, STRICT), _STRICT)
    await storage.catalog.put_stream(SOURCE, StreamSpec(shards=SHARDS, archive=False))
    await storage.topic_routes.put(
        RouteName(SOURCE.topic, COPIED), RouteSpec(target=_TARGETS[COPIED])
    )
    fifo = TopicSpec(type=TopicType.FIFO, dedup_scope=TopicDedupScope.KEY)
    await storage.topics.put(PAYMENTS, StreamSpec(shards=SHARDS, archive=False, topic=fifo))
    for route in (EVENTS, LEDGER):
        await storage.topic_routes.put(
            RouteName(PAYMENTS, route), RouteSpec(target=_TARGETS[route])
        )


async def publish(world: World, name: str) -> None:
    """Publish one message after another with one key, each until it is accepted."""
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        number += 1
        value = f"{name}:{number}"
        while await _publish(client, value) is not Outcome.OK and world.goes_on:
            await client.pause(PAUSE_S)
        await client.pause(PAUSE_S)


async def _insist_on(client: SimulatedCaller, value: str) -> None:
    while await _publish(client, value) is not Outcome.OK:
        await client.pause(PAUSE_S)


async def publish_once(world: World, name: str) -> None:
    """Publish each message with one call, whatever its outcome, under a key of its own."""
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        number += 1
        await _publish(client, f"{name}-{number}:{number}")
        await client.pause(PAUSE_S)


async def _publish(client: SimulatedCaller, value: str) -> Outcome:
    key = value.rpartition(":")[0]
    verb = partial(_call_publish, key, value)
    done = await client.call(Kind.PUBLISH, TOPIC.name, verb, _published, values=(value,))
    return done.outcome


async def _call_publish(key: str, value: str, storage: Storage) -> object:
    headers = _FITTING if is_fitting(value) else ()
    message = NewPublication(value.encode(), subject_of(value), key, headers)
    [answer] = await storage.topics.publish(TOPIC, [message], idempotency_key=value)
    return answer


def _published(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Published):
        counts = {} if answer.routes is None else {"routes": answer.routes}
        return {"seen": (Seen(shard=answer.shard, offset=answer.offset),), "counts": counts}
    return {"error": answer.code}


async def append(world: World, name: str) -> None:
    """Append one record after another with one key to the source, each until it is accepted."""
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        number += 1
        value = f"{name}:{number}"
        while await _append(client, value) is not Outcome.OK and world.goes_on:
            await client.pause(PAUSE_S)
        await client.pause(PAUSE_S)


async def _append(client: SimulatedCaller, value: str) -> Outcome:
    verb = partial(_call_append, client.name, value)
    done = await client.call(Kind.PUBLISH, SOURCE.topic.name, verb, _appended, values=(value,))
    return done.outcome


async def _call_append(key: str, value: str, storage: Storage) -> object:
    headers = (("subject", "", subject_of(value).encode()),)
    record = Record(value.encode(), key, headers)
    [answer] = await storage.streams.append(SOURCE, [record], idempotency_key=value)
    return answer


def _appended(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Appended):
        return {"seen": (Seen(shard=answer.shard, offset=answer.offset),)}
    return {"error": answer.code}


async def pay(world: World, name: str) -> None:
    """Publish one message after another to the FIFO topic, with earlier ones, and repeat the call."""
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        number += 1
        earlier = [client.chance.randint(max(1, number - 5), number) for _ in range(2)]
        numbers = [number, *earlier[: client.chance.randint(0, 2)]]
        while await _pay(client, numbers) is not Outcome.OK and world.goes_on:
            await client.pause(PAUSE_S)
        if client.chance.random() < 0.5:
            await _pay(client, numbers)
        await client.pause(PAUSE_S)


async def _pay(client: SimulatedCaller, numbers: Sequence[int]) -> Outcome:
    values = tuple(f"{client.name}:{number}" for number in numbers)
    verb = partial(_call_pay, client.name, values)
    read = partial(_paid, values)
    done = await client.call(Kind.PUBLISH, PAYMENTS.name, verb, read, values=values)
    return done.outcome


async def _call_pay(key: str, values: Sequence[str], storage: Storage) -> object:
    messages = [
        NewPublication(one.encode(), subject_of(one), key, options=PublicationOptions(one))
        for one in values
    ]
    return await storage.topics.publish(PAYMENTS, messages)


def _paid(values: Sequence[str], answers: Any) -> dict[str, Any]:
    refused = [one for one in answers if not isinstance(one, Published)]
    if refused:
        return {"error": refused[0].code}
    pairs = zip(values, answers, strict=True)
    return {"seen": tuple(Seen(value=value, shard=a.shard, offset=a.offset) for value, a in pairs)}


def is_fitting(value: str) -> bool:
    """Return whether a message is published with what the strict route needs."""
    return int(value.rpartition(":")[2]) % 5 > 1


async def change_route(world: World, name: str) -> None:
    """Change the match of a route, pause it, and resume it."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        subjects = client.chance.sample(SUBJECTS, client.chance.randint(1, 3))
        await _put(client, WORK, subjects)
        await client.pause(1.0)
        await _pause(client, paused=client.chance.random() < 0.5)
        await client.pause(1.0)


async def change_stream_route(world: World, name: str) -> None:
    """Change the match of a route of the source."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await client.pause(2 * client.chance.random())
        subjects = sorted(client.chance.sample(SUBJECTS, client.chance.randint(1, 2)))
        match = {"filter": {"headers": {"subject": subjects}}}
        spec = RouteSpec(target=_TARGETS[CHOSEN], match=match)
        verb = partial(_call_put, CHOSEN, spec, topic=SOURCE.topic)
        about = {"group": CHOSEN, "values": tuple(subjects)}
        await client.call(Kind.ROUTE, SOURCE.topic.name, verb, number_of, **about)


async def remake_route(world: World, name: str) -> None:
    """Put a route and delete it, again and again."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await _put(client, EXTRA, SUBJECTS[:2])
        await client.pause(1.0)
        await _delete(client)
        await client.pause(0.5)


async def _put(client: SimulatedCaller, route: str, subjects: Any) -> None:
    match = {"subject": sorted(subjects)}
    spec = RouteSpec(target=_TARGETS[route], match=match)
    verb = partial(_call_put, route, spec)
    about = {"group": route, "values": tuple(match["subject"])}
    while client.world.goes_on:
        done = await client.call(Kind.ROUTE, TOPIC.name, verb, number_of, **about)
        if done.outcome is Outcome.OK:
            return
        await client.pause(PAUSE_S)


async def _call_put(
    route: str, spec: RouteSpec, storage: Storage, topic: TopicName = TOPIC
) -> TopicRoute:
    return (await storage.topic_routes.put(RouteName(topic, route), spec)).definition


async def _delete(client: SimulatedCaller) -> None:
    async def delete(storage: Storage) -> TopicRoute:
        return await storage.topic_routes.delete(RouteName(TOPIC, EXTRA))

    await client.call(Kind.ROUTE, TOPIC.name, delete, lambda _: {}, group=EXTRA)


async def _pause(client: SimulatedCaller, *, paused: bool) -> None:
    name = RouteName(TOPIC, WORK)
    await client.attempt(lambda storage: storage.topic_routes.pause(name, paused=paused))


async def start_in_past(world: World, name: str) -> None:
    """Put a route that takes all messages from the topic's beginning on, after some time."""
    client = SimulatedCaller(world, name)
    await client.pause(4 * client.chance.random())
    verb = partial(_call_put, LATE, _LATE)
    about = {"group": LATE, "values": SUBJECTS}
    while world.goes_on:
        done = await client.call(Kind.ROUTE, TOPIC.name, verb, number_of, **about)
        if done.outcome is Outcome.OK:
            return
        await client.pause(PAUSE_S)


async def read_decisions(world: World, name: str) -> None:
    """Read which routes take a message, of one message after another."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        verb = partial(_decided, client.chance.random())
        await client.call(Kind.DECIDED, TOPIC.name, verb, lambda seen: {"seen": seen})
        await client.pause(2 * PAUSE_S)


async def _decided(luck: float, storage: Storage) -> tuple[Seen, ...]:
    name = TOPIC.stream
    state = (states := await storage.record_reader.shards(name))[int(luck * len(states))]
    offset = state.start + int(luck * (state.next - state.start))
    page = await storage.record_reader.read_shard(
        name, state.shard.index, ReadFrom(offset=offset), records_max=1
    )
    return tuple([await _routes_of(state.shard.index, one, storage) for one in page.records])


async def _routes_of(shard: int, one: LogRecord, storage: Storage) -> Seen:
    stream = await storage.topics.get(TOPIC)
    place = TopicMessageId(stream.stream_id, shard, one.offset)
    routes = await storage.topic_reports.routes_of_message(TOPIC, place)
    numbers = tuple(route.number for route in routes)
    return Seen(value=one.record.data.decode(), shard=shard, offset=one.offset, routes=numbers)


async def reshard(world: World, name: str) -> None:
    """Split and merge the topics' shards, ignoring the answers."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await client.pause(1.0)
        count = client.chance.randint(1, 4)
        topic = client.chance.choice((TOPIC, PAYMENTS, SOURCE.topic))
        await client.attempt(partial(set_shard_count, topic.stream, count))


async def drain(world: World) -> None:
    """Route what is left, then read the topics and their targets."""
    client = QueueClient(world, "drain")
    await client.insist(_finish_reshard)
    await client.insist(_resume)
    await client.insist(partial(_call_put, LATE, _LATE))
    await client.insist(spread_clients.put_spread)
    await client.insist(partial(spread_clients.limit_member, None))
    async with routing(world):
        await note_full_target(client, partial(_insist_on, client))
        while waiting := await client.insist(_waiting):
            world.waits_for = f"{waiting} buffers to reach the end"
            await client.pause(PAUSE_S)
    for queue in (*_QUEUES, *spread_clients.QUEUES, last_log(world.history.operations, REPLACED)):
        await empty(client, queue)
    for topic, route, subjects in _LASTING:
        stored = await client.insist(partial(_get_route, RouteName(topic, route)))
        numbers = (spread_clients.revision_of if route == SPREAD else number_of)(stored)
        client.note(Kind.ROUTE, topic.name, group=route, values=subjects, **numbers)
        client.note(Kind.ROUTE_STATS, topic.name, counts=_counts(stored), **numbers)
    for stream in (*_STREAMS, spread_clients.THIRD):
        seen = tuple(await client.insist(partial(read_all, stream)))
        client.note(Kind.READ, stream, seen=seen)
    for topic in (TOPIC, PAYMENTS):
        records = await client.insist(partial(read_all, topic.stream.name))
        client.note(Kind.TAKEN, topic.name, seen=tuple(records))
    taken = await client.insist(_records_of_source)
    client.note(Kind.TAKEN, SOURCE.topic.name, seen=tuple(taken))


_LASTING = (
    (TOPIC, EVENTS, SUBJECTS),
    (TOPIC, STRICT, SUBJECTS[:2]),
    (TOPIC, LATE, SUBJECTS),
    (TOPIC, FULL, SUBJECTS),
    (TOPIC, REPLACED, SUBJECTS),
    (TOPIC, spread_clients.ABSENT, SUBJECTS),
    (TOPIC, SPREAD, SUBJECTS),
    *((TOPIC, route, SUBJECTS[:2]) for route in TWICE_ROUTES),
    (PAYMENTS, EVENTS, SUBJECTS),
    (PAYMENTS, LEDGER, SUBJECTS),
    (SOURCE.topic, COPIED, SUBJECTS),
)
"""Routes that are not changed, with their subjects."""


def _counts(route: TopicRoute) -> dict[str, int]:
    return {name: getattr(route, name) for name in ROUTE_COUNTS}


async def _get_route(route: RouteName, storage: Storage) -> TopicRoute:
    return await storage.topic_routes.get(route)


async def _finish_reshard(storage: Storage) -> bool:
    for topic in (TOPIC, PAYMENTS, SOURCE.topic):
        await storage.streams.resharder.finish(topic.stream)
    return True


async def _resume(storage: Storage) -> bool:
    if any(route.name.route == WORK for route in await storage.topic_routes.list(TOPIC)):
        await storage.topic_routes.pause(RouteName(TOPIC, WORK), paused=False)
    return True


async def _waiting(storage: Storage) -> int:
    """Return how many of the routers and the lagging readers have not reached the ends of all shards.

    A history that no router has begun is one more.
    """
    routes = [await storage.topic_routes.get(RouteName(TOPIC, LATE))]
    routes += await storage.topic_routes.list(SOURCE.topic)
    streams = (TOPIC.stream, PAYMENTS.stream, SOURCE)
    behind = sum([await waiting_of(stream, storage) for stream in streams])
    return behind + sum(route.unread_history is not None for route in routes)


async def _records_of_source(storage: Storage) -> list[Seen]:
    """Return the records of the source as what the route of all takes."""
    route = await storage.topic_routes.get(RouteName(SOURCE.topic, COPIED))
    records = await read_all(SOURCE.name, storage)
    return [replace(one, routes=(route.number,)) for one in records]


CLIENTS = (
    publish,
    publish,
    publish,
    publish_once,
    publish_once,
    pay,
    pay,
    append,
    append,
    change_stream_route,
    change_route,
    remake_route,
    start_in_past,
    reshard,
    replace_target,
    fill_target,
    spread_clients.change_spread,
    read_decisions,
    run_routers,
    run_routers,
)
