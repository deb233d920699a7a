"""A queue over a WebSocket: deliveries as far as credit goes, verdicts, broken and closed sockets."""

from collections.abc import AsyncGenerator

import pytest

from storage.domain.limits import Limits
from storage.domain.messages import NewMessage
from storage.domain.names import QueueName
from storage.domain.queues import QueueSpec
from storage.lifespan import open_storage
from tests.sockets import Server, serving

ORDERS = QueueName("orders")
KNOWN = Limits(
    hello_ms_max=500,
    push_heartbeat_ms=300,
    push_pong_ms_max=300,
    push_tick_ms=50,
    resume_ms=800,
    slow_consumer_ms=800,
)


@pytest.fixture
async def storage(settings):
    async with open_storage(settings) as storage:
        yield storage


@pytest.fixture
async def server(storage) -> AsyncGenerator[Server]:
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    async with serving(storage, KNOWN) as server:
        yield server


async def send(storage, *bodies: bytes) -> None:
    await storage.queues.send(ORDERS, [NewMessage(body) for body in bodies])


async def test_a_message_comes_and_is_acknowledged(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")

        [message] = await socket.messages(1)
        told = await socket.ask("ack", sub="a", receipt_handles=[message["receipt_handle"]])

    assert message["body"] == "one"
    assert told["results"] == [{"status": "ok"}]
    stats = await storage.queues.stats(ORDERS)
    assert (stats.ready, stats.in_flight) == (0, 0)
