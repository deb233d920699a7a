"""Router: every accepted message reaches each of its routes once and in order, whoever fails meanwhile."""

import asyncio
from asyncio import CancelledError
from typing import Any

import pytest

from consumers.feeds.blocks import Block
from consumers.feeds.feed import Feeds
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.bootstrap import Storage, open_storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError, StaleGeneration
from storage.domain.log.address import LogAddress
from storage.domain.names import QueueName, RouteName
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.stream import RING_SIZE, ShardRead, StreamSpec
from storage.domain.topics.report import MessageRouteState, RouteState
from storage.domain.topics.route import RouteFailurePolicy, RouteSpec
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    publish,
    read_all,
    receive_all,
    target_of,
    until,
)

pytestmark = pytest.mark.one_store

NUMBERS = [f"n.{nth}" for nth in range(200)]
BODIES = [one.encode() for one in NUMBERS]


async def counts(storage, route: str) -> tuple[int, int]:
    current = await storage.topic_routes.get(RouteName(ORDERS, route))
    return current.delivered, current.dropped


async def test_each_route_receives_its_messages_once(topics, put_route, router):
    await put_route("billing", BILLING, {"subject": "order.*"})
    await put_route("crm", CRM, {"subject": "#.vip"})
    await put_route("audit", AUDIT)

    await publish(topics, "order.created", "customer.vip", "order.vip", "refund")

    assert await receive_all(topics, BILLING, 2) == [b"order.created", b"order.vip"]
    assert await receive_all(topics, CRM, 2) == [b"customer.vip", b"order.vip"]
    assert await read_all(topics, AUDIT, 4) == [
        b"order.created",
        b"customer.vip",
        b"order.vip",
        b"refund",
    ]
    assert await is_empty(topics, BILLING)
    assert await is_empty(topics, CRM)


async def test_copy_keeps_headers_and_names_its_origin(topics, put_route, router):
    await put_route("billing", BILLING)

    await publish(topics, "order.created", headers=(("tenant", "", b"t7"),), key="c7")

    [message] = await topics.queues.receive(BILLING, wait_ms=10_000)
    assert message.headers == (("tenant", "", b"t7"),)
    system = {name: value for name, _, value in message.system}
    assert system[":topic"] == b"orders"
    assert system[":subject"] == b"order.created"
    assert system[":route"] == b"billing"


async def test_messages_of_one_shard_keep_their_order(topics, put_route, router):
    await put_route("billing", BILLING)
    await put_route("audit", AUDIT)

    await publish(topics, *NUMBERS)

    assert await receive_all(topics, BILLING, 200) == BODIES
    assert await read_all(topics, AUDIT, 200) == BODIES


async def test_route_receives_nothing_from_before_it(topics, put_route, router):
    await publish(topics, "before")
    await put_route("billing", BILLING)
    await publish(topics, "after")

    assert await receive_all(topics, BILLING, 1) == [b"after"]
    assert await is_empty(topics, BILLING)


async def test_changed_route_receives_what_it_took_before(topics, put_route):
    await put_route("billing", BILLING, {"subject": "a"})
    await publish(topics, "a", "b")
    await put_route("billing", BILLING, {"subject": "b"})
    await publish(topics, "a", "b")

    async with RunningRouter(topics):
        assert await receive_all(topics, BILLING, 2) == [b"a", b"b"]
    assert await is_empty(topics, BILLING)


async def test_deleted_route_receives_nothing_more(topics, put_route):
    await put_route("billing", BILLING)
    await put_route("crm", CRM)
    await publish(topics, "a")
    await topics.topic_routes.delete(RouteName(ORDERS, "billing"))

    async with RunningRouter(topics):
        assert await receive_all(topics, CRM, 1) == [b"a"]
    assert await is_empty(topics, BILLING)


async def test_route_deleted_while_paused_receives_nothing(topics, put_route, router):
    name = RouteName(ORDERS, "billing")
    await put_route("billing", BILLING, paused=True)
    await put_route("crm", CRM)
    await publish(topics, "a", "b")
    assert await receive_all(topics, CRM, 2) == [b"a", b"b"]

    await topics.topic_routes.delete(name)
    stream = await topics.topics.get(ORDERS)

    async def is_forgotten() -> bool:
        changes = await topics.topic_routing.routes.changes(ORDERS, stream.stream_id, 0)
        return len(changes.routes) == 1

    await until(is_forgotten)
    assert await is_empty(topics, BILLING)


async def test_paused_route_receives_all_after_resume(topics, put_route, router):
    name = RouteName(ORDERS, "billing")
    await put_route("billing", BILLING)
    await put_route("crm", CRM)
    await publish(topics, "a")
    assert await receive_all(topics, BILLING, 1) == [b"a"]
    await topics.topic_routes.pause(name, paused=True)
    stream = await topics.topics.get(ORDERS)

    async def is_held() -> bool:
        return bool((await topics.topic_routing.positions.read(stream.stream_id)).lags)

    await until(is_held)
    await publish(topics, *NUMBERS)
    assert len(await receive_all(topics, CRM, 201)) == 201
    assert await is_empty(topics, BILLING)

    await topics.topic_routes.pause(name, paused=False)

    assert await receive_all(topics, BILLING, 200) == BODIES
    await publish(topics, "z")
    assert await receive_all(topics, BILLING, 1) == [b"z"]


async def test_paused_route_stops_batch_that_is_retried(topics, put_route, router):
    name, target = RouteName(ORDERS, "lost"), QueueName("lost")
    await put_route("lost", target)
    await put_route("same", target, {"subject": "n.7"})
    await publish(topics, *NUMBERS)
    stream = await topics.topics.get(ORDERS)

    async def is_retried() -> bool:
        return bool((await topics.topic_routes.get(name)).failure)

    await until(is_retried)
    await topics.topic_routes.pause(name, paused=True)

    async def is_held() -> bool:
        read = await topics.topic_routing.positions.read(stream.stream_id)
        return any("#" in key for key in read.lags)

    await until(is_held)
    await topics.catalog.put_queue(target, QueueSpec())
    assert await receive_all(topics, target, 1) == [b"n.7"]
    assert await is_empty(topics, target)

    await topics.topic_routes.pause(name, paused=False)
    assert await receive_all(topics, target, 200) == BODIES


async def test_missing_target_holds_back_no_other_route(topics, put_route, router, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_OUTBOX_RECORDS", 10)
    await put_route("lost", QueueName("lost"))
    await put_route("billing", BILLING)
    await publish(topics, *NUMBERS)
    assert await receive_all(topics, BILLING, 200) == BODIES

    await topics.catalog.put_queue(QueueName("lost"), QueueSpec())

    assert await receive_all(topics, QueueName("lost"), 200) == BODIES
    await publish(topics, "z")
    assert await receive_all(topics, QueueName("lost"), 1) == [b"z"]


async def test_failing_target_does_not_delay_reports_of_others(topics, put_route, router):
    """Every route of a topic was reported as behind while one target was missing."""
    await put_route("lost", QueueName("lost"))
    await put_route("billing", BILLING)
    [published] = await publish(topics, "a")

    async def states() -> dict[str, MessageRouteState]:
        routes = await topics.topic_reports.routes_of_message(ORDERS, published.id)
        return {one.route.name.route: one.state for one in routes if one.route}

    async def is_delivered() -> bool:
        return (await states())["billing"] is MessageRouteState.FINISHED

    await until(is_delivered)
    lost = await topics.topic_reports.progress(RouteName(ORDERS, "lost"))

    assert (await states())["lost"] is MessageRouteState.WAITING
    assert (lost.state, lost.lag_messages) == (RouteState.FAILING, 1)
    assert await lagging_routes(topics) == ["lost"]
    assert await topics.topic_reports.lagging("elsewhere") == []


async def lagging_routes(storage: Storage) -> list[str]:
    """Return the names of the routes that are reported as lagging."""
    return [one.route.name.route for one in await storage.topic_reports.lagging("default")]


async def test_lagging_routes_are_those_that_are_not_paused(topics, put_route, router, monkeypatch):
    monkeypatch.setattr(limits, "LAGGING_ROUTES_MAX", 3)
    for nth in range(4):
        await put_route(f"lost-{nth}", QueueName(f"lost-{nth}"))
    await put_route("halted", BILLING, paused=True)
    await publish(topics, "a")

    async def are_failing() -> bool:
        return len(await lagging_keys(topics)) == 5

    await until(are_failing)

    assert await lagging_routes(topics) == ["lost-0", "lost-1", "lost-2"]


async def test_failing_target_gets_its_messages_from_next_router(topics, put_route):
    await put_route("lost", QueueName("lost"))
    await put_route("billing", BILLING)
    async with RunningRouter(topics):
        await publish(topics, "a")
        assert await receive_all(topics, BILLING, 1) == [b"a"]

        async def is_saved() -> bool:
            return bool(await lagging_keys(topics))

        await until(is_saved)
    await topics.catalog.put_queue(QueueName("lost"), QueueSpec())

    async with RunningRouter(topics):
        await publish(topics, "b")

        assert await receive_all(topics, QueueName("lost"), 2) == [b"a", b"b"]
        assert await receive_all(topics, BILLING, 1) == [b"b"]


async def lagging_keys(storage: Storage) -> set[str]:
    """Return the keys of the buffers behind the router."""
    stream = await storage.topics.get(ORDERS)
    return set((await storage.topic_routing.positions.read(stream.stream_id)).lags)


async def test_full_target_receives_all_in_the_end(topics, put_route, router, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_OUTBOX_RECORDS", 10)
    full = QueueName("full")
    await topics.catalog.put_queue(full, QueueSpec(messages_max=50, overflow=Overflow.REJECT))
    await put_route("full", full)
    await put_route("billing", BILLING)
    monkeypatch.setattr(limits, "ROUTER_BATCH_RECORDS", 20)
    await publish(topics, *NUMBERS)

    assert await receive_all(topics, BILLING, 200) == BODIES
    assert await receive_all(topics, full, 200) == BODIES


@pytest.mark.parametrize("partitions", [1, 3])
async def test_queue_with_room_for_less_than_a_batch_receives_all(
    topics, put_route, router, partitions
):
    """A batch was refused as a whole, again and again, and nothing of it was ever delivered."""
    small = QueueName("small")
    spec = QueueSpec(messages_max=3, overflow=Overflow.REJECT, partitions=partitions)
    await topics.catalog.put_queue(small, spec)
    await publish(topics, *NUMBERS[:20])
    await put_route("small", small)
    await publish(topics, *NUMBERS[:20])

    assert await receive_all(topics, small, 20) == BODIES[:20]


async def test_message_that_does_not_fit_is_dropped_alone(topics, put_route, router):
    fifo = QueueName("fifo")
    await topics.catalog.put_queue(fifo, QueueSpec(type=QueueType.FIFO))
    await put_route("fifo", fifo)
    await put_route("billing", BILLING)
    await publish(topics, "a", "b", key="k")
    await publish(topics, "keyless")
    await publish(topics, "c", key="k")

    assert await receive_all(topics, fifo, 3) == [b"a", b"b", b"c"]
    assert await receive_all(topics, BILLING, 4) == [b"a", b"b", b"keyless", b"c"]

    async def is_counted() -> bool:
        return await counts(topics, "fifo") == (3, 1)

    await until(is_counted)
    route = await topics.topic_routes.get(RouteName(ORDERS, "billing"))
    assert (await counts(topics, "billing"), route.failure) == ((4, 0), "")


async def test_missing_target_drops_messages_where_route_says_so(topics, put_route, router):
    await put_route("lost", QueueName("lost"), on_failure=RouteFailurePolicy.DROP)
    await publish(topics, "a", "b")

    async def is_counted() -> bool:
        return await counts(topics, "lost") == (0, 2)

    await until(is_counted)


async def test_two_routers_add_each_message_once(topics, put_route, settings):
    """One that outlived its lease continues beside its successor, until that stores positions."""
    await put_route("billing", BILLING)
    await put_route("audit", AUDIT)
    stream = await topics.topics.get(ORDERS)
    async with open_storage(settings) as other:
        routers = [
            TopicRouter(RoutingContext(one, Feeds(one.record_reader, {})), stream, 1)
            for one in (topics, other)
        ]
        tasks = [asyncio.create_task(one.run()) for one in routers]
        for start in range(0, 200, 50):
            await publish(topics, *NUMBERS[start : start + 50])
        assert await receive_all(topics, BILLING, 200) == BODIES
        assert await read_all(topics, AUDIT, 200) == BODIES

        async def have_sent() -> bool:
            pairs = zip(routers, tasks, strict=True)
            return all(task.done() or one.sent() == {0: 200} for one, task in pairs)

        await until(have_sent)
        await end(*tasks)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {*map(type, outcomes)} in ({CancelledError}, {CancelledError, StaleGeneration})
    assert await is_empty(topics, BILLING)
    assert len(await read_all(topics, AUDIT, 200)) == 200


async def test_router_stopped_midway_leaves_nothing_out(topics, put_route, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_BATCH_RECORDS", 7)
    await put_route("billing", BILLING)
    await put_route("audit", AUDIT)
    await publish(topics, *NUMBERS)

    for count in (20, 60, 120):
        async with RunningRouter(topics):
            await read_all(topics, AUDIT, count)
    async with RunningRouter(topics):
        assert await receive_all(topics, BILLING, 200) == BODIES
        assert await read_all(topics, AUDIT, 200) == BODIES
    assert await is_empty(topics, BILLING)


async def test_children_follow_their_parents(topics, put_route, router):
    await put_route("audit", AUDIT)
    for nth in range(50):
        await publish(topics, f"n.{nth}", key="one")
        if nth in (10, 30):
            stream = await topics.catalog.fresh_stream(ORDERS.stream)
            [shard] = stream.open_shards_for(["one"])
            middle = (shard.first_hash_key + shard.last_hash_key) // 2
            await topics.streams.resharder.split(ORDERS.stream, shard.index, middle)

    assert await read_all(topics, AUDIT, 50) == [f"n.{nth}".encode() for nth in range(50)]


class BufferStub:
    """Buffer whose copies are sent when the router waits for it."""

    def __init__(self, oldest: dict[int, int], when_waited_for=lambda: None) -> None:
        self._oldest = oldest
        self._when_waited_for = when_waited_for

    def oldest(self) -> dict[int, int]:
        return self._oldest

    async def wait_until_sent(self, shard: int, wait_s: float) -> bool:
        self._when_waited_for()
        self._oldest.pop(shard, None)
        return True


async def test_shard_ends_after_copies_of_buffer_that_rejoins_meanwhile(topics):
    stream = await topics.topics.get(ORDERS)
    router = TopicRouter(RoutingContext(topics, Feeds(topics.record_reader, {})), stream, 1)
    rejoined: Any = BufferStub({0: 7, 1: 3})
    first: Any = BufferStub({0: 5}, lambda: router._buffers.setdefault("queue:crm", rejoined))
    router._buffers["queue:billing"] = first
    read = ShardRead(0, (), 9, 9, 9, 0, None)

    await router._finish_shard(Block(9, read, {}).chunk(9, 9))

    assert rejoined.oldest() == {1: 3}


async def test_producers_of_routed_shards_are_retired(topics, put_route, router):
    """A target knows at most 10,000 producers."""
    await put_route("audit", AUDIT)
    await publish(topics, "a", key="k")
    await topics.streams.resharder.split(ORDERS.stream, 0, RING_SIZE // 2)
    await publish(topics, "b", key="k")
    assert await read_all(topics, AUDIT, 2) == [b"a", b"b"]
    [shard] = (await topics.catalog.stream(AUDIT)).shards
    log = LogAddress(AUDIT.namespace, shard.log_id)

    async def is_retired() -> bool:
        watermarks = await topics.streams._idempotent_appender._watermarks.get(log, ())
        return bool(watermarks.producers == 1)

    await until(is_retired)


async def test_ended_revision_is_forgotten(topics, put_route, router):
    former = await put_route("billing", BILLING, {"subject": "a"})
    await publish(topics, "a")
    await put_route("billing", BILLING, {"subject": "b"})
    await publish(topics, "b")
    assert await receive_all(topics, BILLING, 2) == [b"a", b"b"]

    async def is_forgotten() -> bool:
        changes = await topics.topic_routing.routes.changes(ORDERS, former.stream_id, 0)
        return former.number not in {one.number for one in changes.routes}

    await until(is_forgotten)


async def test_expired_messages_are_counted_for_topic(engines, clock):
    """Their routes are unknown: nothing of them is left."""
    await engines.topics.put(ORDERS, StreamSpec(retention_ms=60_000))
    await engines.catalog.put_queue(BILLING, QueueSpec())
    spec = RouteSpec(target=target_of(BILLING))
    await engines.topic_routes.put(RouteName(ORDERS, "billing"), spec)
    stream = await engines.topics.get(ORDERS)
    await publish(engines, "a", "b", "c")
    clock.advance(ms=61_000)
    await publish(engines, "d")
    await engines.streams.trim(ORDERS.stream, 1_000)

    router = TopicRouter(RoutingContext(engines, Feeds(engines.record_reader, {})), stream, 1)
    running = asyncio.create_task(router.run())

    async def are_counted() -> bool:
        positions = await engines.topic_routing.positions.read(stream.stream_id)
        return (positions.shards, positions.expired) == ({0: 4}, 3)

    await until(are_counted)
    await end(running)
    assert await receive_all(engines, BILLING, 1) == [b"d"]


@pytest.mark.parametrize("match", [{"subject": "a..b"}, {"filter": {"x": []}}, {"other": 1}, 7])
async def test_invalid_match_is_refused(topics, put_route, match):
    with pytest.raises(MillstreamError) as refused:
        await put_route("billing", BILLING, match)

    assert refused.value.code == "match_invalid"
