"""Idle topics: one without messages has no router until the next one comes."""

import asyncio

import attrs
import pytest

from consumers.feeds.feed import Feeds
from consumers.routing import topic_router
from consumers.routing.idle_topics import IdleTopic, IdleTopics
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.bootstrap import Storage, open_storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.names import RouteName, TopicName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.conditions import PATIENCE_S
from tests.integration.topics.routing import (
    BILLING,
    CRM,
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
    await until(lambda: has_idle(running, 1))


async def has_idle(running: RunningRouter, count: int) -> bool:
    assert running.router is not None
    return sum(len(share.idle) for share in running.router._shares.values()) == count


async def test_router_ends_when_everything_is_stored(topics, put_route):
    await put_route("billing", BILLING)
    await publish(topics, "a", "b")

    async with asyncio.timeout(PATIENCE_S):
        idle = await (await new_router(topics)).run()

    route = await topics.topic_routes.get(RouteName(ORDERS, "billing"))
    stream = await topics.catalog.fresh_stream(ORDERS.stream)
    positions = await topics.topic_routing.positions.read(stream.stream_id)
    assert attrs.asdict(idle) == attrs.asdict(IdleTopic.of(stream, {0: 2}, stream.routes_version))
    assert (positions.shards, route.delivered) == ({0: 2}, 2)


async def test_router_without_messages_ends_at_once(topics, put_route):
    await put_route("billing", BILLING)
    await publish(topics, "a")
    before = await (await new_router(topics)).run()

    router = await new_router(topics)
    idle = await router.run()

    assert router._tail is None
    assert idle.positions == before.positions == ((0, 1),)


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
        return await has_idle(router, 0)

    await until(is_forgotten)


async def test_idle_topic_routes_to_its_new_route(topics, put_route, router):
    await put_route("billing", BILLING)
    await until_idle(router)

    await put_route("crm", CRM)
    await publish(topics, "a")

    assert await receive_all(topics, CRM, 1) == [b"a"]
    assert await receive_all(topics, BILLING, 1) == [b"a"]


async def test_idle_topic_is_routed_by_next_holder_of_lease(topics, put_route, settings):
    await put_route("billing", BILLING)
    async with open_storage(settings) as other:
        async with RunningRouter(topics) as former:
            await publish(topics, "a")
            assert await receive_all(topics, BILLING, 1) == [b"a"]
            await until_idle(former)
        await publish(topics, "b")
        async with RunningRouter(other) as holder:
            assert await receive_all(topics, BILLING, 1) == [b"b"]
            await until_idle(holder)
            await publish(topics, "c")
            assert await receive_all(topics, BILLING, 1) == [b"c"]
    assert not topics.record_reader.wakeups._watchers


async def test_idle_topic_is_read_after_missed_wake_up(topics, put_route, router, monkeypatch):
    wakeups = topics.record_reader.wakeups
    await put_route("billing", BILLING)
    await until_idle(router)
    monkeypatch.setattr(wakeups, "_publish", lambda _: None)
    await publish(topics, "a")

    wakeups.wake_all()

    assert await receive_all(topics, BILLING, 1) == [b"a"]


async def test_message_before_the_watch_is_noticed(topics, put_route):
    """Nobody read a message that came between the router's last read and the watch."""
    await put_route("billing", BILLING)
    await publish(topics, "a")
    stream, started = await topics.topics.get(ORDERS), list[str]()

    async with IdleTopics(topics.record_reader, started.append) as idle:
        is_idle = await idle.add(IdleTopic.of(stream, {0: 0}, stream.routes_version))

    assert (is_idle, started) == (False, [stream.stream_id])


async def test_routers_that_begin_together_take_turns(topics, put_route, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_STARTS_MAX", 2)
    rows, reading, most = topics.topic_routing.positions, 0, 0
    read = rows.read

    async def count(stream_id):
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        try:
            return await read(stream_id)
        finally:
            reading -= 1

    monkeypatch.setattr(rows, "read", count)
    for number in range(10):
        await topics.topics.put(TopicName(f"many-{number}"), StreamSpec())

    async with RunningRouter(topics) as running:
        await until(lambda: has_idle(running, 11))

    assert most == 2
