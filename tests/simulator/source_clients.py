"""Providers that post events to two sources, one into a queue and one into a stream."""

import asyncio
from functools import partial
from typing import Any

from storage.bootstrap import Storage
from storage.domain.names import QueueName, SourceName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.sources.signatures import sign
from storage.domain.sources.source import SourceSpec, SourceTarget, WebhookProvider
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.sources.receiver import Reception
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.stage import EVENTS, SHARDS, VISIBILITY_S, WORK
from tests.simulator.queue_clients import QueueClient, empty
from tests.simulator.stream_protocol import set_shard_count
from tests.simulator.world import SimulatedCaller, World

PAUSE_S = 0.15
_SECRET = "a provider's secret"
_TARGETS = {WORK: SourceTarget(queue=WORK), EVENTS: SourceTarget(stream=EVENTS, key="/key")}


async def create_sources(storage: Storage) -> None:
    """Create the targets and their sources."""
    visibility_ms = int(VISIBILITY_S * 1000)
    spec = QueueSpec(visibility_timeout_ms=visibility_ms, attempts_max=None)
    await storage.catalog.put_queue(QueueName(WORK), spec)
    await storage.catalog.put_stream(StreamName(EVENTS), StreamSpec(shards=SHARDS, archive=False))
    for target, into in _TARGETS.items():
        source = SourceSpec(provider=WebhookProvider.GITHUB, secrets=(_SECRET,), into=into)
        await storage.sources.put(SourceName(target), source)


async def post(world: World, name: str) -> None:
    """Post each event until it is accepted, and some once more."""
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        for target in _TARGETS:
            number += 1
            event_id = f"{name}:{number}"
            while await _post(client, target, event_id) is not Outcome.OK and world.goes_on:
                await client.pause(PAUSE_S)
            if client.chance.random() < 0.2:
                await _post(client, target, event_id)
        await client.pause(PAUSE_S)


async def _post(client: SimulatedCaller, target: str, event_id: str) -> Outcome:
    verb = partial(_receive, target, event_id)
    done = await client.call(Kind.EVENT, target, verb, lambda _: {}, values=(event_id,))
    return done.outcome


async def _receive(target: str, event_id: str, storage: Storage) -> Reception:
    source = await storage.sources.current(SourceName(target))
    body = b'{"id": "%s", "key": "%s"}' % (event_id.encode(), event_id[-1:].encode())
    headers = sign(source.spec, _SECRET, body, event_id=event_id, timestamp=0)
    return await storage.source_receiver.receive(source, headers, body)


async def reshard(world: World, name: str) -> None:
    """Split and merge the target, ignoring the answers."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await client.pause(1.0)
        count = client.chance.randint(1, 4)
        await client.attempt(partial(set_shard_count, StreamName(EVENTS), count))


async def sweep(world: World, name: str) -> None:
    """Continue transfers and reshards whose process was killed."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        await asyncio.sleep(1.0)
        await _sweep(client)


async def _sweep(client: SimulatedCaller) -> None:
    await client.attempt(lambda storage: storage.source_transfer.sweep())
    await client.attempt(lambda storage: storage.streams.resharder.finish(StreamName(EVENTS)))


async def drain(world: World) -> None:
    """Empty the outboxes, then read both targets."""
    client = QueueClient(world, "drain")
    while waiting := await client.insist(_waiting):
        world.waits_for = f"{waiting} events to leave the outboxes"
        await _sweep(client)
        await client.pause(PAUSE_S)
    await empty(client, WORK)
    seen = await client.insist(_records)
    client.note(Kind.READ, EVENTS, seen=tuple(seen))


async def _waiting(storage: Storage) -> int:
    counts = [
        await storage.source_transfer.counts(source) for source in await storage.sources.all()
    ]
    return sum(count.waiting for count in counts)


async def _records(storage: Storage) -> list[Seen]:
    name, seen = StreamName(EVENTS), list[Seen]()
    for state in await storage.record_reader.shards(name):
        where = ReadFrom(offset=state.start)
        page = await storage.record_reader.read_shard(name, state.shard.index, where)
        seen += [_seen(state.shard.index, record) for record in page.records]
    return seen


def _seen(shard: int, record: Any) -> Seen:
    headers = {name: value.decode() for name, _, value in record.record.headers}
    return Seen(value=headers["event-id"], shard=shard, offset=record.offset)


CLIENTS = (post, post, post, reshard, sweep)
