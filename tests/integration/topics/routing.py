"""Names, and what tests of topics do: publish, route, receive."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from consumers.routing import router as routing
from consumers.routing import topic_router
from consumers.routing.router import Router
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain.log.address import LogAddress
from storage.domain.names import QueueName, StreamName, TopicName
from storage.domain.queues.message import ReceivedMessage, SettleAction, Settlement
from storage.domain.streams.stream import ReadFrom
from storage.domain.topics.route import RouteTarget
from storage.domain.topics.topic import NewPublication, Published
from tests.conditions import PATIENCE_S

ORDERS = TopicName("orders")
BILLING, CRM = QueueName("billing"), QueueName("crm")
AUDIT = StreamName("audit")
RELOAD_S = 0.05
SAVE_S = 0.2  # longer than a takeover takes, which then meets what was not saved


def shorten_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have routers read the topics and report often: many tests would wait for nothing else."""
    monkeypatch.setattr(routing, "_RELOAD_S", RELOAD_S)
    monkeypatch.setattr(topic_router, "_SAVE_S", SAVE_S)


class RunningRouter:
    """Router of a storage, to be used as `async with`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._task: asyncio.Task[None] | None = None
        self.router: Router | None = None

    async def __aenter__(self) -> "RunningRouter":
        self.router = Router(self._storage)
        self._task = asyncio.create_task(self.router.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            await end(self._task)


def target_of(name: QueueName | StreamName | TopicName) -> RouteTarget:
    """Return the target with that name."""
    if isinstance(name, QueueName):
        return RouteTarget(queue=name.name)
    if isinstance(name, TopicName):
        return RouteTarget(topic=name.name)
    return RouteTarget(stream=name.name)


async def publish(storage: Storage, *subjects: str, **fields) -> list[Published]:
    """Publish one message for each subject, with the subject as its body."""
    messages = [NewPublication(one.encode() or b"-", one, **fields) for one in subjects]
    published = []
    for answer in await storage.topics.publish(ORDERS, messages):
        assert isinstance(answer, Published), answer
        published.append(answer)
    return published


async def set_token(storage: Storage, token: str) -> None:
    """Set the fencing token of the topic's first shard, as a late command or a restore does."""
    stream = await storage.catalog.stream(ORDERS.stream)
    log = LogAddress(stream.name.namespace, stream.shards[0].log_id)
    streams = storage.streams
    await streams._hot.set_fence(log, token, None, streams._provisioner.store_epoch)


async def receive_all(storage: Storage, queue: QueueName, count: int) -> list[bytes]:
    """Receive and delete `count` messages; return their bodies in order."""
    bodies: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(bodies) < count:
            bodies += await _receive(storage, queue)
    return bodies


async def _receive(storage: Storage, queue: QueueName) -> list[bytes]:
    received = await storage.queues.receive(queue, messages_max=100, wait_ms=1_000)
    if received:
        acks = [Settlement(one.receipt_handle, SettleAction.ACK) for one in received]
        await storage.queues.settle(queue, acks)
    return [one.body for one in received]


async def receive_first(storage: Storage, queue: QueueName) -> ReceivedMessage:
    """Receive a message, waiting for it, and delete it."""
    [received] = await storage.queues.receive(queue, wait_ms=20_000)
    ack = Settlement(received.receipt_handle, SettleAction.ACK)
    await storage.queues.settle(queue, [ack])
    return received


async def is_empty(storage: Storage, queue: QueueName) -> bool:
    """Return whether the queue has no message."""
    return not await storage.queues.receive(queue, wait_ms=0)


async def read_all(storage: Storage, stream: StreamName, count: int) -> list[bytes]:
    """Read records from the beginning of the first shard until there are `count`."""
    bodies: list[bytes] = []

    async def has_all() -> bool:
        read = await storage.record_reader.read_shard(stream, 0, ReadFrom(offset=0))
        bodies[:] = [one.record.data for one in read.records]
        return len(bodies) >= count

    await until(has_all)
    return bodies


async def until(is_met: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds; fail after PATIENCE_S."""
    async with asyncio.timeout(PATIENCE_S):
        while not await is_met():  # noqa: ASYNC110 - the state is in the stores
            await asyncio.sleep(0.02)
