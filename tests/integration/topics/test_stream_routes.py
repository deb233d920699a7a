"""Routes whose source is a stream: its records, matched when they are read."""

import asyncio

import pytest

from consumers.feeds.feed import Feeds
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.concurrency.tasks import end
from storage.domain.errors import (
    RouteCycle,
    StreamNotFound,
    TopicNotFound,
    TopicReadOnly,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.report import MessageRouteState
from storage.domain.topics.route import UNMATCHED, RouteMode, RouteSpec
from storage.domain.topics.topic import NewPublication
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    read_all,
    receive_all,
    receive_first,
    target_of,
    until,
)

CLICKS = StreamName("clicks")
SOURCE = CLICKS.topic
EVEN = {"filter": {"body": {"even": [True]}}}


@pytest.fixture
async def clicks(topics):
    await topics.catalog.put_stream(CLICKS, StreamSpec())
    return topics


@pytest.fixture
def put_route(clicks):
    async def put(route: str, target, match=None, **fields):
        spec = RouteSpec(target=target_of(target), match=match, **fields)
        return (await clicks.topic_routes.put(RouteName(SOURCE, route), spec)).definition

    return put


def body(number: int) -> bytes:
    return b'{"even": %s, "n": %d}' % (b"false" if number % 2 else b"true", number)


async def append(storage, *numbers: int, key: str = "") -> None:
    for number in numbers:
        await storage.streams.append(CLICKS, [Record(body(number), key)])


async def test_each_matching_record_is_a_message_once(clicks, put_route, router):
    await append(clicks, *range(10))

    await put_route("tasks", BILLING, EVEN)
    await append(clicks, *range(10, 30))

    assert await receive_all(clicks, BILLING, 10) == [body(n) for n in range(10, 30, 2)]
    assert await is_empty(clicks, BILLING)


async def test_route_takes_records_from_before_its_router_knew_it(clicks, put_route):
    await put_route("first", CRM)
    async with RunningRouter(clicks):
        await append(clicks, 0)
        await receive_all(clicks, CRM, 1)
        await put_route("second", BILLING)
        await append(clicks, *range(1, 50))  # most of them before the next look at the routes

        assert await receive_all(clicks, BILLING, 49) == [body(n) for n in range(1, 50)]
        assert len(await receive_all(clicks, CRM, 49)) == 49


async def test_route_starts_in_past(clicks, put_route, router):
    await append(clicks, *range(100))

    await put_route("tasks", BILLING, EVEN, start=StartAt.EARLIEST)
    await append(clicks, *range(100, 120))

    assert await receive_all(clicks, BILLING, 60) == [body(n) for n in range(0, 120, 2)]
    assert await is_empty(clicks, BILLING)


async def test_change_delivers_each_record_by_one_revision_in_order(clicks, put_route, router):
    await put_route("tasks", AUDIT, EVEN)
    await append(clicks, *range(40))
    await put_route("tasks", AUDIT, {"filter": {"body": {"even": [False]}}})
    await append(clicks, *range(40, 80))

    expected = [body(n) for n in (*range(0, 40, 2), *range(41, 80, 2))]
    assert await read_all(clicks, AUDIT, 40) == expected


async def test_unmatched_route_takes_the_rest(clicks, put_route, router):
    await put_route("even", BILLING, EVEN)
    await put_route("shadow", AUDIT, None, mode=RouteMode.SHADOW)
    await put_route("rest", CRM, UNMATCHED)

    await append(clicks, *range(6))

    assert await receive_all(clicks, BILLING, 3) == [body(n) for n in (0, 2, 4)]
    assert await receive_all(clicks, CRM, 3) == [body(n) for n in (1, 3, 5)]


async def test_routing_goes_on_through_reshard(clicks, put_route, router):
    keys = [f"k{nth}" for nth in range(8)]
    await put_route("tasks", AUDIT)
    for nth in range(3):
        for key in keys:
            await clicks.streams.append(CLICKS, [Record(f"{key}:{nth}".encode(), key)])
        if not nth:
            await clicks.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)

    bodies = await read_all(clicks, AUDIT, 24)

    for key in keys:
        assert [one for one in bodies if one.startswith(f"{key}:".encode())] == [
            f"{key}:{nth}".encode() for nth in range(3)
        ]


async def test_router_does_not_read_what_precedes_first_route(clicks, put_route):
    await append(clicks, *range(20))
    route = await put_route("tasks", BILLING)

    progress = await clicks.topic_reports.progress(route.name)
    positions = await clicks.topic_routing.positions.read(route.stream_id)

    assert (progress.lag_messages, dict(positions.shards)) == (0, {0: 20})


async def test_route_after_deleted_ones_begins_anew(clicks, put_route):
    await put_route("tasks", BILLING)
    async with RunningRouter(clicks):
        await append(clicks, 0)
        await receive_all(clicks, BILLING, 1)
        await clicks.topic_routes.delete(RouteName(SOURCE, "tasks"))

        async def is_idle() -> bool:
            return not await clicks.topic_routing.routes.source_ids()

        await until(is_idle)
        await append(clicks, *range(1, 9))
        await put_route("tasks", BILLING)
        await append(clicks, 9)

        assert await receive_all(clicks, BILLING, 1) == [body(9)]
        assert await is_empty(clicks, BILLING)


async def test_record_tells_which_routes_take_it(clicks, put_route, router):
    await append(clicks, 0)
    await put_route("even", BILLING, EVEN)
    await put_route("odd", CRM, {"filter": {"body": {"even": [False]}}})
    await append(clicks, 2)
    await receive_all(clicks, BILLING, 1)
    stream = await clicks.catalog.stream(CLICKS)

    async def states(offset: int) -> list[tuple[str, MessageRouteState]]:
        message_id = TopicMessageId(stream.stream_id, 0, offset)
        routes = await clicks.topic_reports.routes_of_message(SOURCE, message_id)
        return [(one.route.name.route, one.state) for one in routes]

    async def is_finished() -> bool:
        return await states(1) == [("even", MessageRouteState.FINISHED)]

    await until(is_finished)
    assert await states(0) == []


async def test_two_routers_deliver_each_record_once(clicks, put_route):
    await put_route("tasks", BILLING)
    stream = await clicks.catalog.stream(CLICKS)
    await append(clicks, *range(20))
    async with RunningRouter(clicks):
        context = RoutingContext(clicks, Feeds(clicks.record_reader, {}))
        other = TopicRouter(context, stream, 10**6)
        routing = asyncio.create_task(other.run())
        try:
            assert len(await receive_all(clicks, BILLING, 20)) == 20
            assert await is_empty(clicks, BILLING)
        finally:
            await end(routing)


async def test_empty_record_reaches_queue_and_not_topic(clicks, put_route, router):
    await put_route("queue", BILLING)
    topic = await put_route("topic", ORDERS)

    await clicks.streams.append(CLICKS, [Record(b"", "k")])

    assert await receive_all(clicks, BILLING, 1) == [b""]

    async def is_dropped() -> bool:
        return bool((await clicks.topic_routes.get(topic.name)).dropped == 1)

    await until(is_dropped)


async def test_key_is_group_in_fifo_queue(clicks, put_route, router):
    fifo = QueueName("fifo")
    await clicks.catalog.put_queue(fifo, QueueSpec(type=QueueType.FIFO))
    await put_route("tasks", fifo)
    await append(clicks, 1, key="c7")

    message = await receive_first(clicks, fifo)

    assert (message.body, message.group) == (body(1), "c7")


async def test_deleting_stream_deletes_its_routes(clicks, put_route):
    await put_route("tasks", BILLING)
    await clicks.catalog.delete_stream(CLICKS)

    with pytest.raises(TopicNotFound, match="Stream 'clicks' does not exist"):
        await clicks.topic_routes.get(RouteName(SOURCE, "tasks"))
    assert not await clicks.topic_routing.routes.source_ids()


async def test_streams_with_routes_are_listed_behind_topics(clicks, put_route):
    await put_route("tasks", BILLING)

    async def names(**page) -> list[str]:
        listed = await clicks.topics.list_topics("default", **page)
        return [one.name.topic.name for one in listed]

    assert await names() == ["orders", "stream:clicks"]
    assert await names(prefix="stream:c") == ["stream:clicks"]
    assert await names(limit=1) == ["orders"]
    assert await names(after="orders") == ["stream:clicks"]
    assert await names(after="stream:clicks") == []


@pytest.mark.parametrize("verb", ["put", "change", "delete", "publish"])
async def test_topic_of_stream_is_changed_as_stream(clicks, verb):
    arguments = {
        "put": (StreamSpec(),),
        "change": (lambda spec: spec,),
        "delete": (),
        "publish": ([NewPublication(b"x")],),
    }
    with pytest.raises(TopicReadOnly):
        await getattr(clicks.topics, verb)(SOURCE, *arguments[verb])


async def test_cycles_through_streams_are_refused(clicks, put_route):
    await put_route("a", ORDERS)
    spec = RouteSpec(target=target_of(CLICKS))

    with pytest.raises(RouteCycle):
        await clicks.topic_routes.put(RouteName(ORDERS, "back"), spec)
    with pytest.raises(RouteCycle, match="Stream 'clicks'"):
        await put_route("self", CLICKS)


async def test_hops_end_cycle_that_two_changes_made(clicks, put_route, router):
    await put_route("forth", AUDIT)
    spec = RouteSpec(target=target_of(CLICKS))
    unchecked = clicks.topic_routes._check_cycle
    clicks.topic_routes._check_cycle = _allow
    try:
        back = await clicks.topic_routes.put(RouteName(AUDIT.topic, "back"), spec)
    finally:
        clicks.topic_routes._check_cycle = unchecked

    await append(clicks, 1)

    async def is_ended() -> bool:
        routes = [await clicks.topic_routes.get(RouteName(SOURCE, "forth")), back.definition]
        routes[1] = await clicks.topic_routes.get(back.definition.name)
        return sum(int(route.dropped) for route in routes) == 1

    await until(is_ended)


async def test_missing_stream_has_no_routes(topics):
    name = RouteName(TopicName("stream:none"), "a")
    with pytest.raises(TopicNotFound):
        await topics.topic_routes.put(name, RouteSpec(target=target_of(BILLING)))
    with pytest.raises(StreamNotFound):
        await topics.catalog.stream(name.topic.stream)


async def test_unmatched_of_past_is_refused(clicks, put_route):
    with pytest.raises(ValidationFailed):
        await put_route("rest", CRM, UNMATCHED, start=StartAt.EARLIEST)


async def _allow(*_) -> None:
    pass
