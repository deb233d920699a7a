"""Idle topics: one without messages has a single read, and continues where it was."""

import asyncio

import pytest

from consumers.feeds.feed import Feeds
from consumers.routing import topic_router
from consumers.routing.idle_topic import IdleTopic
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain.names import RouteName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import RING_SIZE
from tests.integration.topics.routing import (
    BILLING,
    CRM,
    DEADLINE_S,
    ORDERS,
    RunningRouter,
    publish,
    receive_all,
    until,
)

pytestmark = pytest.mark.one_store


@pytest.fixture(autouse=True)
def idle_at_once(monkeypatch):
    """Let topics be idle at the first report without a message."""
    monkeypatch.setattr(topic_router, "_IDLE_S", 0)


async def new_router(storage: Storage) -> TopicRouter:
    context = RoutingContext(storage, Feeds(storage.record_reader, {}))
    return TopicRouter(context, await storage.topics.get(ORDERS), 1)


async def until_idle(running: RunningRouter) -> None:
    async def is_idle() -> bool:
        assert running.router is not None
        return any(share._idle for share in running.router._shares.values())

    await until(is_idle)


async def test_router_ends_when_everything_is_stored(topics, put_route):
    await put_route("billing", BILLING)
    await publish(topics, "a", "b")

    async with asyncio.timeout(DEADLINE_S):
        idle = await (await new_router(topics)).run()

    route = await topics.topic_routes.get(RouteName(ORDERS, "billing"))
    stream = await topics.catalog.fresh_stream(ORDERS.stream)
    positions = await topics.topic_routing.positions.read(stream.stream_id)
    assert idle == IdleTopic({0: 2}, stream.routes_version)
    assert (positions.shards, route.delivered) == ({0: 2}, 2)


async def test_router_closes_its_buffers_when_cancelled_again(topics, put_route, monkeypatch):
    await put_route("billing", BILLING)
    await publish(topics, "a")
    router, is_closing = await new_router(topics), asyncio.Event()

    async def hang() -> None:
        is_closing.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(router._refreshes, "close", hang)
    running = asyncio.create_task(router.run())
    await is_closing.wait()
    await end(running)

    [buffer] = router._buffers.values()
    assert buffer._task.done()


@pytest.mark.parametrize("is_paused", [False, True])
async def test_router_goes_on_while_messages_wait(topics, put_route, is_paused):
    await put_route("billing", BILLING, paused=is_paused)
    if not is_paused:
        await topics.catalog.delete_queue(BILLING)
    await publish(topics, "a")
    router = await new_router(topics)
    running = asyncio.create_task(router.run())

    async def is_behind() -> bool:
        return bool((await topics.topic_routing.positions.read(router.stream_id)).lags)

    await until(is_behind)
    await router.report()
    assert not router._is_idle()
    assert not running.done()
    await end(running)


async def test_idle_topic_routes_its_next_message(topics, put_route, router):
    await put_route("billing", BILLING)
    await until_idle(router)

    for number in ("1", "2", "3"):
        await publish(topics, number)
        assert await receive_all(topics, BILLING, 1) == [number.encode()]
        await until_idle(router)


async def test_idle_topic_reads_history_for_new_route(topics, put_route, router):
    await put_route("billing", BILLING)
    await publish(topics, "a", "b")
    await receive_all(topics, BILLING, 2)
    await until_idle(router)

    await put_route("crm", CRM, start=StartAt.EARLIEST)

    assert await receive_all(topics, CRM, 2) == [b"a", b"b"]


async def test_idle_topic_follows_children_of_its_shards(topics, put_route, router):
    await put_route("billing", BILLING)
    await publish(topics, "a")
    await receive_all(topics, BILLING, 1)
    await until_idle(router)

    await topics.streams.resharder.split(ORDERS.stream, 0, RING_SIZE // 2)
    await publish(topics, "b", "c", "d")

    assert sorted(await receive_all(topics, BILLING, 3)) == [b"b", b"c", b"d"]


async def test_idle_topic_is_forgotten_when_deleted(topics, put_route, router):
    await put_route("billing", BILLING)
    await until_idle(router)

    await topics.topics.delete(ORDERS)

    async def is_forgotten() -> bool:
        return not any(share._idle for share in router.router._shares.values())

    await until(is_forgotten)
