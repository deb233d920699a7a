"""Short forms of queue operations, for tests of queue rules."""

from typing import Any

from storage.bootstrap import Storage
from storage.domain.clock import ManualClock
from storage.domain.errors import (
    ErrorCode,
)
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, ReceivedMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.queues.engine import Queues

WORK, DEAD = QueueName("work"), QueueName("dead")
LINE, LOST = QueueName("line.fifo"), QueueName("lost.fifo")
HOUR_MS = 3_600_000


async def create_queue(engines: Storage, name: QueueName, **spec: object) -> QueueName:
    kind = QueueType.FIFO if name.name.endswith(".fifo") else QueueType.STANDARD
    await engines.catalog.put_queue(name, QueueSpec(type=kind, attempts_max=None, **spec))  # type: ignore[arg-type]
    return name


async def send(
    queues: Queues, name: QueueName, *bodies: bytes, group: str = "", **options: object
) -> None:
    await queues.send(name, [NewMessage(body, group=group, **options) for body in bodies])  # type: ignore[arg-type]


async def receive(queues: Queues, name: QueueName, messages_max: int = 10) -> list[bytes]:
    return [message.body for message in await queues.receive(name, messages_max=messages_max)]


async def settle(
    queues: Queues,
    name: QueueName,
    message: ReceivedMessage,
    action: SettleAction,
    **options: Any,
) -> ErrorCode | None:
    verdict = Settlement(message.receipt_handle, action, **options)
    [settled] = await queues.settle(name, [verdict], any_delivery=True)
    return settled.error


async def expire_deliveries(
    queues: Queues, name: QueueName, clock: ManualClock, times: int
) -> list[ReceivedMessage]:
    """Receive a message this many times without settling it, and return the last delivery."""
    received: list[ReceivedMessage] = []
    for _ in range(times):
        received = await queues.receive(name, messages_max=10, visibility_timeout_ms=1_000)
        clock.advance(ms=1_000)
    return received
