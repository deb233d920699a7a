"""Buffers that were behind the router, or ahead of it, as a router's successor finds them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from consumers.feeds.blocks import Chunk
from consumers.feeds.feed import Feeds
from consumers.routing.copies import Copy
from consumers.routing.lagging_reader import LaggingReader
from consumers.routing.target_sender import TargetSender
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.names import QueueName, RouteName
from storage.domain.topics.routing import TopicPositions
from tests.integration.topics.routing import (
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    publish,
    receive_all,
    until,
)

pytestmark = pytest.mark.one_store

NUMBERS = [f"n.{nth}" for nth in range(10)]
BODIES = [one.encode() for one in NUMBERS]


class Gate:
    """Refuses copies for a queue until it is opened, then lets some batches through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, queue: QueueName) -> None:
        self._queue = queue
        self._send = TargetSender.send
        self._open = asyncio.Semaphore(0)
        self.is_refusing = True
        monkeypatch.setattr(TargetSender, "send", self._passed(self))

    def open(self, batches: int) -> None:
        self.is_refusing = False
        for _ in range(batches):
            self._open.release()

    @staticmethod
    def _passed(gate: "Gate") -> Any:
        async def send(sender: TargetSender, copies: list[Copy]) -> None:
            if sender.target == gate._queue:
                if gate.is_refusing:
                    raise StorageUnavailable("away")
                await gate._open.acquire()
            await gate._send(sender, copies)

        return send


async def positions_of(storage: Storage) -> TopicPositions:
    stream = await storage.topics.get(ORDERS)
    return await storage.topic_routing.positions.read(stream.stream_id)


async def delivered(storage: Storage, route: str) -> int:
    return int((await storage.topic_routes.get(RouteName(ORDERS, route))).delivered)


async def test_copies_behind_those_of_a_recovered_target_are_counted_once(
    topics, put_route, monkeypatch
):
    """The positions of all routes went back to those of the target, and a successor counted what lies between again (T10)."""
    monkeypatch.setattr(limits, "ROUTER_BATCH_RECORDS", 2)
    gate = Gate(monkeypatch, CRM)
    await put_route("billing", BILLING)
    await put_route("crm", CRM)
    async with RunningRouter(topics):
        await publish(topics, *NUMBERS)

        async def is_behind() -> bool:
            positions = await positions_of(topics)
            return positions.shards == {0: 10} and bool(positions.lags)

        await until(is_behind)
        gate.open(1)

        async def has_some() -> bool:
            return await delivered(topics, "crm") == 2

        await until(has_some)
    gate.open(100)

    async with RunningRouter(topics):
        assert await receive_all(topics, CRM, 10) == BODIES

        async def has_all() -> bool:
            return await positions_of(topics) == TopicPositions({0: 10})

        await until(has_all)
    assert [await delivered(topics, route) for route in ("billing", "crm")] == [10, 10]


@asynccontextmanager
async def held_router(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, lags: Mapping[str, Mapping[int, int]]
) -> AsyncIterator[tuple[TopicRouter, asyncio.Event]]:
    """Run a router whose target `crm` is ahead of it; it routes what it has read once the event is set."""
    stream = await storage.topics.get(ORDERS)
    await storage.topic_routing.positions.save(
        stream.stream_id, TopicPositions({0: 2}, lags), {}, fence=0, report=1, expected=[]
    )
    router = TopicRouter(RoutingContext(storage, Feeds(storage.record_reader, {})), stream, 1)
    can_dispatch, dispatch = asyncio.Event(), router._dispatch

    async def dispatch_later(chunk: Chunk) -> None:
        await can_dispatch.wait()
        await dispatch(chunk)

    async def has_rejoined() -> bool:
        return "queue:crm" in router._buffers

    monkeypatch.setattr(router, "_dispatch", dispatch_later)
    task = asyncio.create_task(router.run())
    try:
        await until(has_rejoined)
        yield router, can_dispatch
    finally:
        await end(task)


async def test_route_behind_a_target_that_is_ahead_of_the_router_receives_all(
    topics, put_route, monkeypatch
):
    """The target's buffer took over the copies of the route, and skipped those that it had itself (T1)."""
    await put_route("billing", BILLING)
    await put_route("crm", CRM)
    behind = await put_route("behind", CRM)
    await publish(topics, *NUMBERS)
    lags = {"queue:crm": {0: 6}, f"queue:crm#{behind.number}": {0: 4}}

    async with held_router(topics, monkeypatch, lags) as (_, can_dispatch):
        can_dispatch.set()
        assert await receive_all(topics, BILLING, 8) == BODIES[2:]
        assert sorted(await receive_all(topics, CRM, 10)) == sorted([*BODIES[4:], *BODIES[6:]])

        async def has_all() -> bool:
            return await positions_of(topics) == TopicPositions({0: 10})

        await until(has_all)
    assert await is_empty(topics, CRM)


async def test_route_that_is_paused_ahead_of_the_router_goes_on_where_it_was(
    topics, put_route, monkeypatch
):
    """Its own reader began at the router, and what the target had was sent and counted again (T10)."""
    await put_route("billing", BILLING)
    route = await put_route("crm", CRM)
    await publish(topics, *NUMBERS)

    async with held_router(topics, monkeypatch, {"queue:crm": {0: 6}}) as (router, can_dispatch):
        name = RouteName(ORDERS, "crm")
        await topics.topic_routes.pause(name, paused=True)

        async def is_apart() -> bool:
            return f"queue:crm#{route.number}" in router._lagging

        await until(is_apart)
        can_dispatch.set()
        await topics.topic_routes.pause(name, paused=False)
        assert await receive_all(topics, CRM, 4) == BODIES[6:]

        async def has_counted() -> bool:
            return [await delivered(topics, one) for one in ("billing", "crm")] == [8, 4]

        await until(has_counted)
    assert await is_empty(topics, CRM)


async def test_target_that_falls_behind_keeps_what_it_was_ahead(topics, put_route, monkeypatch):
    """Its reader began at the router, and a successor would have counted again what the target had (T10)."""
    monkeypatch.setattr(limits, "ROUTER_OUTBOX_RECORDS", 1)
    monkeypatch.setattr(limits, "ROUTER_BLOCK_COPIES", 2)
    gate = Gate(monkeypatch, CRM)
    await put_route("billing", BILLING)
    await put_route("crm", CRM)
    await publish(topics, *NUMBERS)

    async with held_router(topics, monkeypatch, {"queue:crm": {0: 6}}) as (router, can_dispatch):
        begun, lagging_reader = dict[str, Mapping[int, int]](), router._lagging_reader

        def noted(key: str, positions: Mapping[int, int], *others: Any) -> LaggingReader:
            begun[key] = positions
            return lagging_reader(key, positions, *others)

        monkeypatch.setattr(router, "_lagging_reader", noted)
        can_dispatch.set()

        async def is_behind() -> bool:
            return "queue:crm" in begun

        await until(is_behind)
        gate.open(100)
        assert await receive_all(topics, CRM, 4) == BODIES[6:]
    assert begun["queue:crm"] == {0: 6}
