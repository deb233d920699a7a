"""Routes to other topics: each message once, through at most eight topics, and never in a circle."""

import itertools

import pytest
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import RouteCycle, ValidationFailed
from storage.domain.names import RouteName, TopicName
from storage.domain.streams.stream import StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, Unmatched
from storage.domain.topics.route import RouteSpec, RouteTarget
from tests.conditions import eventually
from tests.integration.topics.routing import BILLING, ORDERS, publish, receive_all

pytestmark = pytest.mark.one_store

ALL = TopicName("all")


async def put(storage, topic, route, target, **fields):
    """Put a route from a topic."""
    spec = RouteSpec(target=target, **fields)
    await storage.topic_routes.put(RouteName(topic, route), spec)


@pytest.fixture
async def chained(topics):
    """The topic `all`, which receives the orders, with a route to a queue."""
    await topics.topics.put(ALL, StreamSpec())
    await put(topics, ORDERS, "all", RouteTarget(topic=ALL.name))
    await put(topics, ALL, "billing", RouteTarget(queue=BILLING.name), match={"subject": "order.*"})
    return topics


@pytest.mark.usefixtures("router")
async def test_message_is_matched_again_in_target_topic(chained):
    await publish(chained, "order.a", "refund", "order.b", key="c7")

    assert await receive_all(chained, BILLING, 2) == [b"order.a", b"order.b"]
    read = await chained.record_reader.shards(ALL.stream)
    assert [state.next for state in read] == [3]


async def test_message_waits_until_target_topic_exists(topics, router):
    await put(topics, ORDERS, "all", RouteTarget(topic=ALL.name))
    await publish(topics, "order.a")
    await topics.topics.put(ALL, StreamSpec())
    await put(topics, ALL, "billing", RouteTarget(queue=BILLING.name))

    assert await receive_all(topics, BILLING, 1) == [b"order.a"]


@pytest.mark.usefixtures("router")
async def test_message_that_target_topic_refuses_is_dropped(chained):
    spec = StreamSpec(topic=TopicSpec(unmatched=Unmatched.REFUSE))
    await chained.topics.put(ALL, spec)

    await publish(chained, "refund", "order.a")

    assert await receive_all(chained, BILLING, 1) == [b"order.a"]

    async def counts():
        route = await chained.topic_routes.get(RouteName(ORDERS, "all"))
        return route.delivered, route.dropped

    await eventually(counts, (1, 1))


@pytest.mark.usefixtures("router")
async def test_message_passes_at_most_eight_topics(topics):
    chain = [ORDERS, *(TopicName(f"t{number}") for number in range(limits.TOPIC_HOPS_MAX + 1))]
    for topic in chain[1:]:
        await topics.topics.put(topic, StreamSpec())
    for source, target in itertools.pairwise(chain):
        await put(topics, source, "next", RouteTarget(topic=target.name))

    await publish(topics, "a")

    async def dropped():
        route = await topics.topic_routes.get(RouteName(chain[-2], "next"))
        return route.dropped, route.failure

    await eventually(dropped, (1, "The message has passed 8 topics."))
    last = await topics.record_reader.shards(chain[-1].stream)
    assert [state.next for state in last] == [0]


@pytest.mark.parametrize("target", [ORDERS, ALL])
async def test_route_that_leads_back_is_refused(chained, target):
    source = ALL if target == ORDERS else ORDERS
    route = RouteName(source if target == ORDERS else ALL, "back")

    with pytest.raises(RouteCycle):
        await put(chained, route.topic, route.route, RouteTarget(topic=target.name))

    spec = (await chained.topic_routes.get(RouteName(ALL, "billing"))).spec
    with pytest.raises(RouteCycle):
        await chained.topic_routes.change(
            RouteName(ALL, "billing"),
            lambda _: replace(spec, target=RouteTarget(topic=target.name)),
        )


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        (RouteTarget(topic="a:b"), "/target/topic"),
        (RouteTarget(topic=""), "/target/topic"),
        (RouteTarget(queue=""), "/target/queue"),
        (RouteTarget(topic="a", queue="b"), "/target"),
    ],
)
async def test_invalid_target_is_refused_with_a_pointer(topics, target, pointer):
    with pytest.raises(ValidationFailed) as refusal:
        await put(topics, ORDERS, "r", target)

    assert [fault.pointer for fault in refusal.value.faults] == [pointer]
