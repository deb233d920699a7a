"""Copies of messages with options, and targets that are FIFO."""

import pytest

from consumers.routing.topic_router import TopicRouter
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.clock import SystemClock
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.message import MessageState
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.stream import StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, TopicType
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.domain.topics.topic import NewPublication, PublicationOptions
from storage.domain.topics.transform import Transform
from tests.integration.topics.routing import (
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    receive_all,
    receive_first,
    until,
)

pytestmark = pytest.mark.one_store

LINE, DEAD = QueueName("line"), QueueName("dead")
NEXT = TopicName("next")
FIFO = TopicSpec(type=TopicType.FIFO)


async def send(storage: Storage, *bodies: bytes, key: str = "c7", topic=ORDERS, **options) -> None:
    """Publish a message for each body."""
    sent = PublicationOptions(**options)
    messages = [NewPublication(body, "order", key, options=sent) for body in bodies]
    await storage.topics.publish(topic, messages)


async def are_counted(storage: Storage, route: str, expected: tuple[int, int, int]) -> None:
    """Wait until so many messages are delivered, dead-lettered and dropped."""

    async def is_met() -> bool:
        current = await storage.topic_routes.get(RouteName(ORDERS, route))
        return (current.delivered, current.dead_lettered, current.dropped) == expected

    await until(is_met)


@pytest.fixture
async def line(topics: Storage) -> Storage:
    """The topic, with a FIFO queue and a dead-letter queue."""
    await topics.catalog.put_queue(LINE, QueueSpec(type=QueueType.FIFO))
    await topics.catalog.put_queue(DEAD, QueueSpec())
    return topics


async def test_options_apply_to_copies_in_queues(topics, put_route, router):
    await put_route("billing", BILLING, delay_ms=3_600_000)
    await put_route("crm", CRM)

    await send(topics, b"low", delay_ms=0)
    await send(topics, b"high", delay_ms=0, priority=9)
    await send(topics, b"late", delay_ms=3_600_000)

    async def are_delayed() -> bool:
        delayed, _ = await topics.inspector.browse(CRM, state=MessageState.DELAYED)
        return [one.body for one in delayed] == [b"late"]

    await until(are_delayed)
    assert await receive_all(topics, BILLING, 2) == [b"high", b"low"]


async def test_expired_message_is_dropped_with_reason(topics, put_route):
    await put_route("billing", BILLING)
    await send(topics, b"old", ttl_ms=1)
    await send(topics, b"new", ttl_ms=3_600_000)

    async with RunningRouter(topics):
        assert await receive_all(topics, BILLING, 1) == [b"new"]
        await are_counted(topics, "billing", (1, 0, 1))
    assert await is_empty(topics, BILLING)


async def test_last_drop_of_expired_message_is_reported(topics, put_route):
    await put_route("billing", BILLING)
    await send(topics, b"old", ttl_ms=1)

    async with RunningRouter(topics):
        await are_counted(topics, "billing", (0, 0, 1))

    route = await topics.topic_routes.get(RouteName(ORDERS, "billing"))
    assert route.failure == "The message's time to live was over."


async def test_delivered_message_is_not_dropped_later(topics, put_route, monkeypatch):
    """The first router stored no position, and its successor begins when the message has expired."""

    async def fail(*_):
        raise RuntimeError("killed before the report")

    await put_route("billing", BILLING)
    await send(topics, b"a", ttl_ms=60_000)
    with monkeypatch.context() as killed:
        killed.setattr(TopicRouter, "report", fail)
        async with RunningRouter(topics):
            assert await receive_all(topics, BILLING, 1) == [b"a"]
    await send(topics, b"b", ttl_ms=600_000)

    now_ms = SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + 120_000)
    async with RunningRouter(topics):
        await are_counted(topics, "billing", (2, 0, 0))


async def test_delayed_message_is_dead_lettered_by_fifo_queue(line, put_route, router):
    await put_route("line", LINE, dead_letter_queue="dead")

    await send(line, b"delayed", delay_ms=1_000)
    await send(line, b"urgent", priority=9)

    assert (await receive_first(line, LINE)).body == b"urgent"
    assert await receive_all(line, DEAD, 1) == [b"delayed"]


async def test_two_routes_bring_message_to_fifo_queue_twice(line, put_route, router):
    await put_route("one", LINE)
    await put_route("two", LINE)

    await send(line, b"a", b"b")

    assert sorted(await receive_all(line, LINE, 4)) == [b"a", b"a", b"b", b"b"]


async def test_two_routes_share_fifo_dead_letter_queue(line, put_route, router):
    """The second dead letter had the id of the first, and was taken for a repeat."""
    strict = Transform(paths={"id": "/body/id"}, template="<id>", strict=True)
    await put_route("one", BILLING, transform=strict, dead_letter_queue=LINE.name)
    await put_route("two", CRM, transform=strict, dead_letter_queue=LINE.name)

    await send(line, b"a")

    assert await receive_all(line, LINE, 2) == [b"a", b"a"]


@pytest.fixture
async def chained(line: Storage) -> Storage:
    """A FIFO topic that receives the orders, with a route to a FIFO queue."""
    await line.topics.put(NEXT, StreamSpec(topic=FIFO))
    routes = (
        (ORDERS, RouteSpec(target=RouteTarget(topic=NEXT.name), dead_letter_queue=DEAD.name)),
        (NEXT, RouteSpec(target=RouteTarget(queue=LINE.name))),
    )
    for topic, spec in routes:
        await line.topic_routes.put(RouteName(topic, "next"), spec)
    return line


async def test_fifo_topic_is_a_target(chained, router):
    await send(chained, b"a", b"b", priority=9)
    await send(chained, b"keyless", key="")
    await send(chained, b"delayed", delay_ms=1_000)
    await send(chained, b"c")

    assert [(await receive_first(chained, LINE)).body for _ in range(3)] == [b"a", b"b", b"c"]
    assert await receive_all(chained, DEAD, 2) == [b"keyless", b"delayed"]
    await are_counted(chained, "next", (3, 2, 0))


async def test_copies_and_publications_share_a_fifo_topic(chained, router):
    await send(chained, b"a")
    await send(chained, b"b", topic=NEXT, dedup_id="d")
    await send(chained, b"c", topic=NEXT, dedup_id="d")

    assert sorted([(await receive_first(chained, LINE)).body for _ in range(2)]) == [b"a", b"b"]


async def test_id_used_again_after_window_reaches_fifo_queue(engines, clock):
    """The router was away, so that the queue gets both messages within five minutes."""
    await engines.topics.put(ORDERS, StreamSpec(topic=FIFO, archive=False))
    await engines.catalog.put_queue(LINE, QueueSpec(type=QueueType.FIFO))
    spec = RouteSpec(target=RouteTarget(queue=LINE.name))
    await engines.topic_routes.put(RouteName(ORDERS, "line"), spec)
    await send(engines, b"first", dedup_id="d")
    await send(engines, b"repeat", dedup_id="d")
    clock.advance(ms=limits.DEDUP_WINDOW_MS)
    await send(engines, b"second", dedup_id="d")

    async with RunningRouter(engines):
        received = [await receive_first(engines, LINE) for _ in range(2)]
        await are_counted(engines, "line", (2, 0, 0))

    assert [one.body for one in received] == [b"first", b"second"]
    assert all(one.dedup_id.endswith(".d") for one in received)
