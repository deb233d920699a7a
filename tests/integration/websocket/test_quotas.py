"""Quotas of sockets: their publishes, and their number."""

import json
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import Quotas, Rates
from tests.websocket_client import Socket, running_server

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders", "acme")


@pytest.fixture
async def server(storage):
    await storage.namespaces.put("acme", Quotas())
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    async with running_server(storage, Limits()) as server:
        yield server


@asynccontextmanager
async def socket_in(server, namespace):
    address = server.url.replace("http", "ws") + "/v1/ws"
    headers = {"Millstream-Namespace": namespace}
    async with connect(address, additional_headers=headers, compression=None) as connection:
        socket = Socket(connection)
        await socket.hello()
        yield socket


async def test_publish_over_rate_is_answered_with_retry_time(storage, server):
    slow = Rates(messages_per_second=0.001, burst_seconds=3600)
    await storage.namespaces.put("acme", Quotas(rates=slow))

    async with socket_in(server, "acme") as socket:
        first = await socket.request("publish", to="queue:orders", items=[{"body": "a"}] * 2)
        second = await socket.request("publish", to="queue:orders", items=[{"body": "b"}] * 2)
        never = await socket.request("publish", to="queue:orders", items=[{"body": "b"}] * 4)
        third = await socket.request("publish", to="queue:orders", items=[{"body": "c"}])

    assert (first["type"], second["type"], third["type"]) == ("ok", "error", "ok")
    assert second["problem"]["code"] == "quota_exceeded"
    assert second["problem"]["retry_after_seconds"] > 300
    assert never["problem"]["code"] == "quota_too_small"
    assert (await storage.queues.stats(ORDERS)).ready == 3


async def test_upgrade_over_connection_limit_is_rejected(storage, server):
    await storage.namespaces.put("acme", Quotas(connections_max=1))

    async with socket_in(server, "acme"):
        with pytest.raises(InvalidStatus) as refusal:
            async with socket_in(server, "acme"):
                pass
    async with socket_in(server, "acme"):
        pass

    answer = refusal.value.response
    problem = json.loads(answer.body or b"{}")
    assert (answer.status_code, problem["code"]) == (429, "quota_exceeded")
    assert problem["policy"] == "connections"
    assert answer.headers["retry-after"] == "5"


async def test_upgrade_in_unknown_namespace_is_rejected(server):
    with pytest.raises(InvalidStatus) as refusal:
        async with socket_in(server, "nowhere"):
            pass

    assert refusal.value.response.status_code == 404


async def test_full_store_rejects_publishes_only(storage, server):
    async with socket_in(server, "acme") as socket:
        await socket.request("publish", to="queue:orders", items=[{"body": "a"}])
        storage.memory_guard.full = storage.memory_guard.is_shedding = True
        refusal = await socket.request("publish", to="queue:orders", items=[{"body": "b"}])
        storage.memory_guard.full = storage.memory_guard.is_shedding = False
        await socket.subscribe("s", "queue:orders")
        [message] = await socket.messages(1)

    assert refusal["problem"]["code"] == "backlog_full"
    assert message["body"] == "a"
