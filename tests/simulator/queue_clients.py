"""Clients of queues at the engines: those of the chaos tests, by another protocol."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from random import Random
from typing import Any

from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain.names import QueueName
from storage.domain.queues.consumer import ConsumerProtocol, queue_consumer
from storage.domain.queues.message import NewMessage, ReceivedMessage, SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget, DedupScope, QueueSpec, QueueType
from storage.sources.events import EVENT_ID_HEADER
from tests.chaos import queue_clients
from tests.chaos.checking.queues import STAYING
from tests.chaos.history import Kind, Operation, Seen, name_of
from tests.chaos.queue_protocols import Delivery, QueueProtocol
from tests.chaos.stage import (
    DOOMED,
    FRAGILE,
    LINE,
    MORGUE,
    RECEIVES_MAX,
    VISIBILITY_S,
    WORK,
    ClientContext,
)
from tests.simulator.world import Client, SimulatedCaller, World

CONSUMER = queue_consumer("simulated", ConsumerProtocol.REST, "192.0.2.7", b"")
PARTITIONS = 3
VISIBILITY_MS = int(VISIBILITY_S * 1000)
_FAILING = (FRAGILE, DOOMED)
_SPECS = {
    WORK: QueueSpec(visibility_timeout_ms=VISIBILITY_MS, attempts_max=None),
    LINE: QueueSpec(type=QueueType.FIFO, visibility_timeout_ms=VISIBILITY_MS, attempts_max=None),
    FRAGILE: QueueSpec(visibility_timeout_ms=VISIBILITY_MS, attempts_max=2),
    MORGUE: QueueSpec(visibility_timeout_ms=VISIBILITY_MS, attempts_max=None),
    DOOMED: QueueSpec(
        visibility_timeout_ms=VISIBILITY_MS,
        attempts_max=None,
        dead_letters=DeadLetterTarget(MORGUE, RECEIVES_MAX),
    ),
}


class QueueClient(SimulatedCaller):
    """Calls of one client of queues."""

    async def send(
        self, queue: str, value: str, *, group: str = "", delay_s: float = 0.0
    ) -> Operation:
        delay_ms = int(delay_s * 1000) or None
        message = NewMessage(
            value.encode(), group=group, dedup_id=value if group else "", delay_ms=delay_ms
        )

        def read(sent: Any) -> dict[str, Any]:
            return {"seen": (Seen(value=value, id=sent[0].message_id, group=group),)}

        about: dict[str, Any] = {"values": (value,), "group": group, "promised_s": delay_s}
        return await self.call(
            Kind.SEND,
            queue,
            lambda storage: storage.queues.send(QueueName(queue), [message]),
            read,
            **about,
        )

    async def receive(
        self, queue: str, most: int, wait_s: int = 0, hidden_s: float = 0.0
    ) -> Operation:
        verb = partial(_receive, queue, most, wait_s * 1000)
        return await self.call(Kind.RECEIVE, queue, verb, _deliveries, promised_s=hidden_s)

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation:
        assert isinstance(delivery, Delivery)
        delay_ms = 0 if kind is Kind.NACK else None
        settlement = Settlement(delivery.handle, SettleAction(kind.value), delay_ms=delay_ms)
        about: dict[str, Any] = {"values": (delivery.value,), "delivery": delivery.receive_count}

        def read(settled: Any) -> dict[str, Any]:
            return {"error": settled[0].error} if settled[0].error else {}

        verb = partial(_settle, queue, settlement)
        return await self.call(kind, queue, verb, read, **about)


async def _receive(queue: str, most: int, wait_ms: int, storage: Storage) -> Any:
    name = QueueName(name_of(queue))
    return await storage.queues.receive(name, messages_max=most, wait_ms=wait_ms, consumer=CONSUMER)


async def _settle(queue: str, settlement: Settlement, storage: Storage) -> Any:
    return await storage.queues.settle(QueueName(name_of(queue)), [settlement])


def _deliveries(messages: list[ReceivedMessage]) -> dict[str, Any]:
    return {"seen": tuple(map(_delivery, messages))}


def _delivery(message: ReceivedMessage) -> Delivery:
    event_ids = [value for name, _, value in message.headers if name == EVENT_ID_HEADER]
    return Delivery(
        value=(*event_ids, message.body)[0].decode(),
        id=message.message_id,
        offset=message.offset,
        group=message.group,
        receive_count=message.receive_count,
        handle=message.receipt_handle,
    )


async def create_queues(storage: Storage) -> None:
    """Create the queues; one that is a target comes first."""
    for name, spec in _SPECS.items():
        await storage.catalog.put_queue(QueueName(name), spec)


async def create_partitioned_queues(storage: Storage) -> None:
    """Create the same queues with partitions."""
    for name, spec in _SPECS.items():
        is_fifo = spec.type is QueueType.FIFO
        scope = DedupScope.GROUP if is_fifo else DedupScope.QUEUE
        await storage.catalog.put_queue(
            QueueName(name), replace(spec, partitions=PARTITIONS, dedup_scope=scope)
        )


async def sweep(world: World, name: str) -> None:
    """Do the maintenance of the queues."""
    client = QueueClient(world, name)
    while world.goes_on:
        await asyncio.sleep(1.0)
        await _sweep_all(client)


async def _sweep(name: QueueName, storage: Storage) -> int:
    return await storage.queues.sweep(name)


async def _sweep_all(client: QueueClient) -> None:
    for queue in _SPECS:
        await client.attempt(partial(_sweep, QueueName(queue)))


async def drain(world: World) -> None:
    """Empty all queues, dead letters last, and record their counts and dead letters."""
    client = QueueClient(world, "drain")
    for queue in (*(name for name in _SPECS if name != MORGUE), MORGUE):
        await empty(client, queue)
    for queue in _SPECS:
        await _note_counts(client, queue)
        await _list_dead_letters(client, queue)


async def empty(client: QueueClient, queue: str) -> None:
    """Settle the messages of a queue until none is left."""
    kind = Kind.NACK if queue in _FAILING else Kind.ACK
    while left := await _left(client, queue):
        client.world.waits_for = f"{queue} to be empty: {left} messages are left"
        received = await client.receive(queue, 10)
        for delivery in received.seen:
            await client.settle(queue, delivery, kind)
        await _sweep_all(client)
        if not received.seen:
            await asyncio.sleep(VISIBILITY_S / 2)


async def _counts(client: QueueClient, queue: str) -> dict[str, int]:
    name = QueueName(name_of(queue))
    stats = await client.insist(lambda storage: storage.queues.stats(name))
    counts = {name: getattr(stats, name) for name in stats.__struct_fields__}
    return {name: count for name, count in counts.items() if isinstance(count, int)}


async def _left(client: QueueClient, queue: str) -> int:
    counts = await _counts(client, queue)
    return sum(counts[name] for name in STAYING)


async def _note_counts(client: QueueClient, queue: str) -> None:
    counts, target = await _counts(client, queue), ""
    if queue == DOOMED:
        target, counts["receives_max"] = MORGUE, RECEIVES_MAX
    client.note(Kind.STATS, queue, counts=counts, target=target)


async def _list_dead_letters(client: QueueClient, queue: str) -> None:
    letters, _ = await client.insist(
        lambda storage: storage.dead_letters.browse(QueueName(queue), messages_max=1000)
    )
    seen = tuple(Seen(value=one.body.decode(), id=one.message_id) for one in letters)
    client.note(Kind.DEAD_LETTERS, queue, seen=seen)


ChaosClient = Callable[[ClientContext, str, QueueProtocol, Random], Coroutine[Any, Any, None]]


def _simulated(client: ChaosClient) -> Client:
    @wraps(client)
    async def run(world: World, name: str) -> None:
        protocol = QueueClient(world, name)
        await client(world, name, protocol, protocol.chance)

    return run


CLIENTS = (
    *map(
        _simulated,
        (
            queue_clients.send,
            queue_clients.send,
            queue_clients.send_in_order,
            queue_clients.send_what_fails,
            queue_clients.work,
            queue_clients.work,
            queue_clients.work_in_order,
            queue_clients.work_in_order,
            queue_clients.break_down,
            queue_clients.tombstone,
        ),
    ),
    sweep,
)
