"""Clients of queues, as in `tests.chaos.queue_clients`, at the engines instead of over HTTP."""

import asyncio
from functools import partial
from typing import Any

from storage.bootstrap import Storage
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, ReceivedMessage, SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec, QueueType
from storage.sources.events import EVENT_ID_HEADER
from tests.chaos.checking.queues import STAYING
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.queue_protocols import Delivery
from tests.chaos.stage import DOOMED, FRAGILE, LINE, MORGUE, RECEIVES_MAX, VISIBILITY_S, WORK
from tests.simulator.world import SimulatedCaller, World

PAUSE_S = 0.15
VISIBILITY_MS = int(VISIBILITY_S * 1000)
DELAY_S = 1.0
STANDSTILL_S = 120.0
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

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._number = 0

    def next_value(self) -> str:
        """Return a value that no client has sent."""
        self._number += 1
        return f"{self.name}:{self._number}"

    async def send(
        self, queue: str, value: str, *, group: str = "", delay_s: float = 0.0
    ) -> Outcome:
        delay_ms = int(delay_s * 1000) or None
        message = NewMessage(
            value.encode(), group=group, dedup_id=value if group else "", delay_ms=delay_ms
        )

        def read(sent: Any) -> dict[str, Any]:
            return {"seen": (Seen(value=value, id=sent[0].message_id, group=group),)}

        about: dict[str, Any] = {"values": (value,), "group": group, "promised_s": delay_s}
        done = await self.call(
            Kind.SEND,
            queue,
            lambda storage: storage.queues.send(QueueName(queue), [message]),
            read,
            **about,
        )
        return done.outcome

    async def receive(self, queue: str, most: int, wait_s: float = 0.0) -> tuple[Seen, ...]:
        verb = partial(_receive, queue, most, int(wait_s * 1000))
        done = await self.call(Kind.RECEIVE, queue, verb, _deliveries, promised_s=VISIBILITY_S)
        return done.seen

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> None:
        assert isinstance(delivery, Delivery)
        delay_ms = 0 if kind is Kind.NACK else None
        settlement = Settlement(delivery.handle, SettleAction(kind.value), delay_ms=delay_ms)
        about: dict[str, Any] = {"values": (delivery.value,), "delivery": delivery.receive_count}

        def read(settled: Any) -> dict[str, Any]:
            return {"error": settled[0].error} if settled[0].error else {}

        verb = partial(_settle, queue, settlement)
        await self.call(kind, queue, verb, read, **about)


async def _receive(queue: str, most: int, wait_ms: int, storage: Storage) -> Any:
    return await storage.queues.receive(QueueName(queue), messages_max=most, wait_ms=wait_ms)


async def _settle(queue: str, settlement: Settlement, storage: Storage) -> Any:
    return await storage.queues.settle(QueueName(queue), [settlement])


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


async def create_queues(world: World) -> None:
    """Create the queues; one that is a target comes first."""
    storage = await world.storage()
    for name, spec in _SPECS.items():
        await storage.catalog.put_queue(QueueName(name), spec)


async def send(world: World, name: str) -> None:
    """Send each value once, some with a delay."""
    client = QueueClient(world, name)
    while not world.over:
        delay_s = DELAY_S if client.chance.random() < 0.1 else 0.0
        await client.send(WORK, client.next_value(), delay_s=delay_s)
        await client.pause(PAUSE_S)


async def send_in_order(world: World, name: str) -> None:
    """Send to own groups, repeating each send until it is accepted."""
    client = QueueClient(world, name)
    while not world.over:
        group, value = f"{name}-{client.chance.randrange(2)}", client.next_value()
        while await client.send(LINE, value, group=group) is not Outcome.OK and not world.over:
            await client.pause(PAUSE_S)
        await client.pause(PAUSE_S)


async def send_what_fails(world: World, name: str) -> None:
    """Send to both queues in which everything is dead-lettered."""
    client = QueueClient(world, name)
    while not world.over:
        for queue in _FAILING:
            await client.send(queue, client.next_value())
        await client.pause(3 * PAUSE_S)


async def work(world: World, name: str) -> None:
    """Acknowledge most messages, return some, forget some, and acknowledge some too late."""
    client = QueueClient(world, name)
    while not world.over:
        for delivery in await client.receive(WORK, client.chance.randint(1, 5), wait_s=1.0):
            luck = client.chance.random()
            if luck < 0.1:
                await asyncio.sleep(VISIBILITY_S * 1.2)
            if luck < 0.85:
                await client.settle(WORK, delivery, Kind.ACK)
            elif luck < 0.93:
                await client.settle(WORK, delivery, Kind.NACK)
        await client.pause(PAUSE_S / 4)


async def work_in_order(world: World, name: str) -> None:
    """Acknowledge one by one; sometimes stop, which blocks the group."""
    client = QueueClient(world, name)
    while not world.over:
        for delivery in await client.receive(LINE, client.chance.randint(1, 5), wait_s=1.0):
            if client.chance.random() < 0.05:
                break
            await client.settle(LINE, delivery, Kind.ACK)
        await client.pause(PAUSE_S / 4)


async def break_down(world: World, name: str) -> None:
    """Return everything, until it is dead-lettered."""
    client = QueueClient(world, name)
    while not world.over:
        for queue in _FAILING:
            for delivery in await client.receive(queue, 5):
                await client.settle(queue, delivery, Kind.NACK)
        await client.pause(2 * PAUSE_S)


async def tombstone(world: World, name: str) -> None:
    """Receive from the dead-letter queue."""
    client = QueueClient(world, name)
    while not world.over:
        for delivery in await client.receive(MORGUE, 5, wait_s=1.0):
            if client.chance.random() < 0.8:
                await client.settle(MORGUE, delivery, Kind.ACK)
        await client.pause(PAUSE_S)


async def sweep(world: World, name: str) -> None:
    """Do the maintenance of the queues."""
    client = QueueClient(world, name)
    while not world.over:
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
        await _empty(client, queue)
    for queue in _SPECS:
        await _note_counts(client, queue)
        await _list_dead_letters(client, queue)


async def _empty(client: QueueClient, queue: str) -> None:
    kind = Kind.NACK if queue in _FAILING else Kind.ACK
    give_up_at = client.world.history.now() + STANDSTILL_S
    while await _left(client, queue) and client.world.history.now() < give_up_at:
        deliveries = await client.receive(queue, 10)
        for delivery in deliveries:
            await client.settle(queue, delivery, kind)
        await _sweep_all(client)
        if not deliveries:
            await asyncio.sleep(VISIBILITY_S / 2)


async def _counts(client: QueueClient, queue: str) -> dict[str, int]:
    stats = await client.insist(lambda storage: storage.queues.stats(QueueName(queue)))
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


CLIENTS = (
    send,
    send,
    send_in_order,
    send_what_fails,
    work,
    work,
    work_in_order,
    work_in_order,
    break_down,
    tombstone,
    sweep,
)
