"""Presence: starting, ending and killed processes, and closing of sockets from anywhere."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from api.websocket.codec import JSON
from api.websocket.presence import SocketsHere
from api.websocket.session import PushSession
from api.websocket.session_registry import Sessions
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Principal, Role
from storage.domain.clock import SystemClock
from storage.domain.errors import SocketNotFound
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.presence import ProcessRole, ProcessSeen, SocketSeen
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.operations.presence import ProcessRegistry, registered
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.secured_service import running_secured_service
from tests.websocket_client import Server, running_server

ORDERS = QueueName("orders")
KNOWN = Limits(presence_heartbeat_ms=50)


def process(id_: str, role: ProcessRole = ProcessRole.SWEEPER) -> ProcessSeen:
    return ProcessSeen(id=id_, role=role, host="h", pid=7, version="1", started_at_ms=5)


def socket(id_: str, process: str = "one", namespace: str = "default") -> SocketSeen:
    return SocketSeen(
        id=id_,
        process=process,
        principal="ada",
        namespace=namespace,
        address="192.0.2.1",
        protocol="millstream.v1.json",
        connected_at_ms=4,
        queued_bytes=0,
    )


def ids(found: tuple[ProcessSeen, ...] | tuple[SocketSeen, ...]) -> list[str]:
    return [result.id for result in found]


@pytest.fixture
def presence(engines: Storage) -> ProcessRegistry:
    return engines.presence


async def test_process_is_listed_with_its_latest_report(presence, clock):
    await presence.heartbeat(process("one"))
    clock.advance(ms=1000)
    told = ProcessSeen(
        id="two",
        role=ProcessRole.API,
        host="mill",
        pid=8,
        version="2",
        started_at_ms=6,
        event_loop_lag_ms=1.5,
        sockets=3,
        sessions=4,
    )
    await presence.heartbeat(told)

    first, second = await presence.processes()

    assert first.seen_at_ms == clock.now_ms()
    assert second.seen_at_ms == clock.now_ms() - 1000
    assert (first.sockets, first.event_loop_lag_ms, second.id) == (3, 1.5, "one")


async def test_killed_process_and_its_sockets_disappear(presence, clock):
    await presence.heartbeat(process("one"), [socket("s1")])
    clock.advance(ms=limits.PRESENCE_STALE_MS - 1)
    await presence.heartbeat(process("two"))
    before = ids(await presence.processes()), ids(await presence.sockets("default"))

    clock.advance(ms=1)

    assert before == (["one", "two"], ["s1"])
    assert ids(await presence.processes()) == ["two"]
    assert ids(await presence.sockets("default")) == []


async def test_ending_process_deregisters(presence):
    async with registered(presence, ProcessRole.DELIVERER) as here:
        async with asyncio.timeout(PATIENCE_S):
            while not await presence.processes():  # noqa: ASYNC110 no event tells
                await asyncio.sleep(0.01)
        [seen] = await presence.processes()

    assert (seen.id, seen.role, seen.pid) == (here.id, ProcessRole.DELIVERER, here.pid)
    assert await presence.processes() == ()


async def test_request_to_process_is_delivered_once(presence):
    await presence.heartbeat(process("one"), [socket("s1"), socket("s2")])
    await presence.request_close("default", "s1")

    assert await presence.heartbeat(process("other")) == ()
    assert await presence.heartbeat(process("one")) == ("s1",)
    assert await presence.heartbeat(process("one")) == ()


async def test_undelivered_request_expires(presence, clock):
    await presence.heartbeat(process("one"), [socket("s1")])
    await presence.request_close("default", "s1")
    clock.advance(ms=limits.PRESENCE_STALE_MS)
    await presence.heartbeat(process("two"))

    assert await presence.heartbeat(process("one")) == ()


async def test_socket_of_another_namespace_is_not_found(presence):
    await presence.heartbeat(process("one"), [socket("s1", namespace="acme")])

    with pytest.raises(SocketNotFound):
        await presence.request_close("default", "s1")
    assert ids(await presence.sockets("default")) == []
    assert ids(await presence.sockets("acme")) == ["s1"]


async def test_process_with_many_sockets_reports_first_ones():
    sessions = Sessions(Limits(), asyncio.get_running_loop().time)
    opened: list[PushSession] = [
        sessions.open(LOCAL_ADMINISTRATOR, JSON) for _ in range(limits.PRESENCE_SOCKETS_MAX + 3)
    ]
    here = SocketsHere(sessions, SystemClock())

    sockets, count = here.sockets("one"), here.describe(process("one")).sessions
    await sessions.close()

    assert (len(sockets), count) == (limits.PRESENCE_SOCKETS_MAX, len(opened))
    assert opened[0].id not in {
        each_socket.id for each_socket in sockets
    }  # it is what resumes a session


# Over HTTP, with two processes


@pytest.fixture
async def servers(redis_url, database_url) -> AsyncGenerator[tuple[Server, Server]]:
    """Two API processes of one deployment."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(open_storage(settings))
        other = await stack.enter_async_context(open_storage(settings))
        await one.catalog.put_queue(ORDERS, QueueSpec())
        first = await stack.enter_async_context(running_server(one, KNOWN))
        second = await stack.enter_async_context(running_server(other, KNOWN))
        await one.queues.send(ORDERS, [NewMessage(b"one")])
        yield first, second


async def shown(client: httpx.AsyncClient, path: str, number: int) -> list[dict[str, Any]]:
    """Wait for the list to have so many items."""
    async with asyncio.timeout(PATIENCE_S):
        while len(items := (await client.get(path)).json()["items"]) != number:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return list(items)


async def test_socket_can_be_closed_through_another_process(servers):
    first, second = servers
    async with (
        first.socket() as socket,
        httpx.AsyncClient(base_url=second.url, timeout=PATIENCE_S) as client,
    ):
        await socket.subscribe("work", "queue:orders", credit={"messages": 5, "bytes": 1000})
        await socket.messages(1)
        processes = await shown(client, "/v1/processes", 2)
        [seen] = await shown(client, "/v1/sockets", 1)

        closed = await client.delete(f"/v1/sockets/{seen['id']}")

        assert closed.status_code == 204
        assert await socket.close_code() == 4012
        assert {one["role"] for one in processes} == {"api"}
        assert seen["process"] in {one["id"] for one in processes}
        assert seen["address"] == "127.0.0.1"
        assert (await client.delete("/v1/sockets/nothing")).json()["code"] == "socket_not_found"
        answer = await client.post("/v1/queues/orders/receive", json={"wait_seconds": 5})
        assert [one["body"] for one in answer.json()["messages"]] == ["one"]
        entries = (await client.get("/v1/audit?action=socket:close")).json()["items"]
        assert [one["outcome"] for one in entries][-1] == "done"


async def test_sockets_are_paged_without_secrets(
    servers,
):
    first, second = servers
    async with (
        first.socket() as each_socket,
        second.socket() as other,
        httpx.AsyncClient(base_url=second.url, timeout=PATIENCE_S) as client,
    ):
        await each_socket.subscribe("work", "queue:orders", credit={"messages": 5, "bytes": 1000})
        await each_socket.messages(1)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                seen = await shown(client, "/v1/sockets", 2)
                subscribed = [each for each in seen if each["subscriptions"]]
                if subscribed and subscribed[0]["queued_bytes"]:
                    break
                await asyncio.sleep(0.02)
        page = (await client.get("/v1/sockets?limit=1")).json()
        rest = (await client.get(f"/v1/sockets?limit=1&cursor={page['next_cursor']}")).json()

    [subscription] = subscribed[0]["subscriptions"]
    assert subscription["source"] == "queue:orders"
    assert (subscription["mode"], subscription["credit_messages"]) == ("work", 4)
    assert [each["id"] for each in page["items"] + rest["items"]] == [each["id"] for each in seen]
    assert rest["next_cursor"] is None
    assert each_socket.welcome["session"] not in str(seen)
    assert other.welcome["session"] not in str(seen)


@pytest.mark.one_store
async def test_closing_sockets_requires_more_than_viewing(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        viewer = await secured_service.key(Rights(roles=(Role.VIEWER,)))
        producer = await secured_service.key(Rights(roles=(Role.PRODUCER,)))
        root = Principal("root", "default", LOCAL_ADMINISTRATOR.policy)
        await secured_service.storage.presence.heartbeat(process("one"), [socket("s1")])

        seen = await secured_service.request("GET", "/v1/sockets", viewer)
        refused = await secured_service.request("DELETE", "/v1/sockets/s1", viewer)
        unseen = await secured_service.request("GET", "/v1/sockets", producer)
        done = await secured_service.request(
            "DELETE", "/v1/sockets/s1", await secured_service.key(by=root)
        )

    assert [item["id"] for item in seen.json()["items"]] == ["s1"]
    assert (refused.status_code, unseen.status_code, done.status_code) == (403, 403, 204)


async def test_failing_object_is_listed_by_one_role_of_a_process(storage):
    """The sweeper and the deliverer of `millstream up` each listed what failed in their process."""

    async def fail() -> None:
        raise ValueError("this object only")

    await storage.isolation.visit("queues", "queues/orders", fail, None)
    for name, role in (("one", ProcessRole.SWEEPER), ("two", ProcessRole.DELIVERER)):
        await storage.presence.heartbeat(process(name, role))
    together = await storage.presence.processes()
    await storage.presence.leave("one")
    await storage.presence.heartbeat(process("two", ProcessRole.DELIVERER))

    [left] = await storage.presence.processes()
    assert sum(len(seen.failing) for seen in together) == 1
    assert [entry.object for entry in left.failing] == ["queues/orders"]
