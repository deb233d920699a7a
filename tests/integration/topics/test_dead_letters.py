"""Dead letters of routes: each message that its target does not get is in the dead-letter queue once."""

import pytest

from consumers.routing.topic_router import TopicRouter
from storage.bootstrap import Storage
from storage.domain.names import QueueName, RouteName
from storage.domain.queues.dead_letter_origin import origin_of
from storage.domain.queues.message import ReceivedMessage
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.topics.route import RouteFailurePolicy
from storage.domain.topics.topic import NewPublication
from storage.domain.topics.transform import Transform
from tests.integration.topics.routing import (
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    publish,
    receive_all,
    receive_first,
    until,
)

pytestmark = pytest.mark.one_store

DEAD, LOST, SMALL, FIFO = (QueueName(one) for one in ("dead", "lost", "small", "fifo"))
BIG = b"x" * 2_000
STRICT = Transform(paths={"id": "/body/id"}, template="<id>", strict=True)


@pytest.fixture
async def dead(topics: Storage) -> Storage:
    """The topic, with a dead-letter queue and a target for small messages."""
    await topics.catalog.put_queue(DEAD, QueueSpec())
    await topics.catalog.put_queue(SMALL, QueueSpec(message_bytes_max=1_024))
    return topics


async def send(storage: Storage, *bodies: bytes, **fields) -> None:
    for body in bodies:
        await storage.topics.publish(ORDERS, [NewPublication(body, **fields)])


async def are_counted(storage: Storage, route: str, expected: tuple[int, int, int]) -> None:
    """Wait until so many messages are delivered, dead-lettered and dropped."""

    async def is_met() -> bool:
        current = await storage.topic_routes.get(RouteName(ORDERS, route))
        return (current.delivered, current.dead_lettered, current.dropped) == expected

    await until(is_met)


def reason_of(message: ReceivedMessage) -> tuple[str, str]:
    origin = origin_of(message.system)
    assert origin is not None
    return origin.source, origin.reason


async def test_failed_transform_is_dead_lettered_alone(dead, put_route, router):
    await put_route("billing", BILLING, transform=STRICT, dead_letter_queue="dead")

    await send(dead, b'{"id": "a"}', b"{}", b'{"id": "b"}', subject="order", key="c7")

    assert await receive_all(dead, BILLING, 2) == [b"a", b"b"]
    letter = await receive_first(dead, DEAD)
    assert letter.body == b"{}"
    assert reason_of(letter) == ("route:orders/billing", "transform_failed")
    system = {name: value for name, _, value in letter.system}
    assert system[":topic"] == b"orders"
    assert system[":subject"] == b"order"
    assert system[":route"] == b"billing"
    assert system[":key"] == b"c7"
    assert system[":source_offset"] == b"1"
    await are_counted(dead, "billing", (2, 1, 0))


async def test_empty_copy_is_dead_lettered(dead, put_route, router):
    """A queue has no message without body and headers."""
    transform = Transform(paths={"id": "/body/id"}, template="<id>")
    await put_route("billing", BILLING, transform=transform, dead_letter_queue="dead")

    await send(dead, b'{"id": ""}')

    letter = await receive_first(dead, DEAD)
    assert (letter.body, reason_of(letter)[1]) == (b'{"id": ""}', "validation_failed")


async def test_failed_transform_without_queue_is_dropped(topics, put_route, router):
    await put_route("billing", BILLING, transform=STRICT)

    await send(topics, b"{}", b'{"id": "a"}')

    assert await receive_all(topics, BILLING, 1) == [b"a"]
    await are_counted(topics, "billing", (1, 0, 1))


async def test_many_failed_transforms_are_dead_lettered_in_order(dead, put_route):
    await put_route("billing", BILLING, transform=STRICT, dead_letter_queue="dead")
    bodies = [b'{"id": "%d"}' % nth if nth % 3 else b"%d" % nth for nth in range(300)]
    await dead.topics.publish(ORDERS, [NewPublication(body) for body in bodies])

    async with RunningRouter(dead):
        delivered = await receive_all(dead, BILLING, 200)
        letters = await receive_all(dead, DEAD, 100)

    assert delivered == [b"%d" % nth for nth in range(300) if nth % 3]
    assert letters == [b"%d" % nth for nth in range(0, 300, 3)]
    assert await is_empty(dead, DEAD)


async def test_message_without_group_is_dead_lettered(dead, put_route, router):
    await dead.catalog.put_queue(FIFO, QueueSpec(type=QueueType.FIFO))
    await put_route("fifo", FIFO, dead_letter_queue="dead")

    await publish(dead, "a", key="k")
    await publish(dead, "keyless")
    await publish(dead, "b", key="k")

    assert await receive_all(dead, FIFO, 2) == [b"a", b"b"]
    assert reason_of(await receive_first(dead, DEAD))[1] == "validation_failed"
    await are_counted(dead, "fifo", (2, 1, 0))


async def test_dead_letter_queue_may_be_fifo(topics, put_route, router):
    await topics.catalog.put_queue(FIFO, QueueSpec(type=QueueType.FIFO))
    await put_route(
        "lost", LOST, on_failure=RouteFailurePolicy.DEAD_LETTER, dead_letter_queue="fifo"
    )

    await publish(topics, "a", "b")

    assert await receive_all(topics, FIFO, 2) == [b"a", b"b"]


async def test_missing_target_dead_letters_every_message(dead, put_route, router):
    dead_letter = RouteFailurePolicy.DEAD_LETTER
    await put_route("lost", LOST, on_failure=dead_letter, dead_letter_queue="dead")
    await put_route("waiting", LOST)
    await publish(dead, "a", "b")

    assert await receive_all(dead, DEAD, 2) == [b"a", b"b"]
    await are_counted(dead, "lost", (0, 2, 0))

    await dead.catalog.put_queue(LOST, QueueSpec())
    assert await receive_all(dead, LOST, 2) == [b"a", b"b"]
    await are_counted(dead, "waiting", (2, 0, 0))
    await are_counted(dead, "lost", (0, 2, 0))


async def test_missing_dead_letter_queue_holds_route_alone(topics, put_route, router):
    await put_route("billing", BILLING, transform=STRICT, dead_letter_queue="dead")
    await put_route("crm", CRM)
    await send(topics, b"{}", b'{"id": "a"}')
    assert await receive_all(topics, CRM, 2) == [b"{}", b'{"id": "a"}']

    async def is_waiting() -> bool:
        route = await topics.topic_routes.get(RouteName(ORDERS, "billing"))
        return "Dead-letter queue: " in route.failure

    await until(is_waiting)
    assert await is_empty(topics, BILLING)

    await topics.catalog.put_queue(DEAD, QueueSpec())
    assert await receive_all(topics, DEAD, 1) == [b"{}"]
    assert await receive_all(topics, BILLING, 1) == [b"a"]


async def test_route_that_waits_holds_back_no_other_of_target(topics, put_route, router):
    """The dead-letter queue of one is missing; the target has the messages of the other."""
    await put_route("strict", BILLING, transform=STRICT, dead_letter_queue="dead")
    await put_route("billing", BILLING)
    numbers = [b"%d" % nth for nth in range(30)]

    await send(topics, *numbers[:10], b'{"id": "a"}')
    assert await receive_all(topics, BILLING, 11) == [*numbers[:10], b'{"id": "a"}']
    await send(topics, *numbers[10:20])
    assert await receive_all(topics, BILLING, 10) == numbers[10:20]
    await topics.catalog.put_queue(DEAD, QueueSpec())

    assert await receive_all(topics, BILLING, 1) == [b"a"]
    assert await receive_all(topics, DEAD, 20) == numbers[:20]
    await send(topics, *numbers[20:])
    assert await receive_all(topics, DEAD, 10) == numbers[20:]
    assert await receive_all(topics, BILLING, 10) == numbers[20:]
    await are_counted(topics, "strict", (1, 30, 0))
    await are_counted(topics, "billing", (31, 0, 0))


async def test_route_that_waits_goes_on_after_restart(topics, put_route):
    await put_route("strict", BILLING, transform=STRICT, dead_letter_queue="dead")
    await put_route("billing", BILLING)
    await send(topics, b"1", b'{"id": "a"}', b"2")
    stream = await topics.topics.get(ORDERS)

    async def is_isolated() -> bool:
        return bool((await topics.topic_routing.positions.read(stream.stream_id)).lags)

    async with RunningRouter(topics):
        assert len(await receive_all(topics, BILLING, 3)) == 3
        await until(is_isolated)
    await topics.catalog.put_queue(DEAD, QueueSpec())
    await send(topics, b"3")

    async with RunningRouter(topics):
        assert await receive_all(topics, DEAD, 3) == [b"1", b"2", b"3"]
        assert sorted(await receive_all(topics, BILLING, 2)) == [b"3", b"a"]
        await are_counted(topics, "strict", (1, 3, 0))
        await are_counted(topics, "billing", (4, 0, 0))


async def test_full_dead_letter_queue_gets_all_in_the_end(topics, put_route, router):
    await topics.catalog.put_queue(DEAD, QueueSpec(messages_max=1, overflow=Overflow.REJECT))
    await put_route("billing", BILLING, transform=STRICT, dead_letter_queue="dead")

    await send(topics, b"1", b"2", b"3")

    assert await receive_all(topics, DEAD, 3) == [b"1", b"2", b"3"]
    await are_counted(topics, "billing", (0, 3, 0))


async def test_message_too_large_for_both_queues_is_dropped(dead, put_route, router):
    await dead.catalog.put_queue(DEAD, QueueSpec(message_bytes_max=1_024))
    await put_route("small", SMALL, dead_letter_queue="dead")

    await send(dead, b"a", BIG, b"b")

    assert await receive_all(dead, SMALL, 2) == [b"a", b"b"]
    await are_counted(dead, "small", (2, 0, 1))


async def test_policy_that_changes_applies_to_waiting_messages(dead, put_route, router):
    await put_route("lost", LOST)
    await publish(dead, "a", "b")

    async def is_waiting() -> bool:
        return bool((await dead.topic_routes.get(RouteName(ORDERS, "lost"))).failure)

    await until(is_waiting)
    dead_letter = RouteFailurePolicy.DEAD_LETTER
    await put_route("lost", LOST, on_failure=dead_letter, dead_letter_queue="dead")

    assert await receive_all(dead, DEAD, 2) == [b"a", b"b"]


async def test_deleted_route_stops_waiting(topics, put_route, router):
    """Its copies that were on their way to a missing queue were tried for ever."""
    await put_route("lost", LOST)
    await put_route("strict", BILLING, transform=STRICT, dead_letter_queue="dead")
    await publish(topics, "a")
    stream = await topics.topics.get(ORDERS)

    async def are_waiting() -> bool:
        routes = await topics.topic_routes.list(ORDERS)
        return all(route.failure for route in routes)

    await until(are_waiting)
    for route in ("lost", "strict"):
        await topics.topic_routes.delete(RouteName(ORDERS, route))

    async def are_forgotten() -> bool:
        return not await topics.topic_routing.routes.ended(ORDERS, stream.stream_id)

    await until(are_forgotten)


@pytest.fixture
def unsaved(monkeypatch):
    """Routers die before they store a position."""

    async def die(*_):
        """Store nothing."""

    monkeypatch.setattr(TopicRouter, "report", die)
    return monkeypatch


async def test_dead_letter_is_not_delivered_after_takeover(dead, put_route, unsaved):
    """The target accepts it now, and its predecessor had dead-lettered it."""
    await put_route("small", SMALL, dead_letter_queue="dead")
    await send(dead, b"a", BIG, BIG)
    async with RunningRouter(dead):
        assert await receive_all(dead, SMALL, 1) == [b"a"]
        assert await receive_all(dead, DEAD, 2) == [BIG, BIG]
    await dead.catalog.put_queue(SMALL, QueueSpec())

    unsaved.undo()
    await send(dead, b"b")
    async with RunningRouter(dead):
        assert await receive_all(dead, SMALL, 1) == [b"b"]
        await are_counted(dead, "small", (3, 1, 0))

    assert await is_empty(dead, SMALL)
    assert await is_empty(dead, DEAD)


async def test_dead_letters_arrive_once_through_restarts(dead, put_route, unsaved):
    await put_route("billing", BILLING, transform=STRICT, dead_letter_queue="dead")
    bodies = [b'{"id": "%d"}' % nth if nth % 2 else b"%d" % nth for nth in range(100)]
    await dead.topics.publish(ORDERS, [NewPublication(body) for body in bodies])
    letters: list[bytes] = []

    for count in (5, 20):
        async with RunningRouter(dead):
            letters += await receive_all(dead, DEAD, count - len(letters))
    unsaved.undo()
    async with RunningRouter(dead):
        letters += await receive_all(dead, DEAD, 50 - len(letters))
        assert len(await receive_all(dead, BILLING, 50)) == 50

    assert letters == [b"%d" % nth for nth in range(0, 100, 2)]
    assert await is_empty(dead, DEAD)
    assert await is_empty(dead, BILLING)


async def test_dead_letters_of_missing_target_arrive_once(dead, put_route, unsaved):
    dead_letter = RouteFailurePolicy.DEAD_LETTER
    await put_route("lost", LOST, on_failure=dead_letter, dead_letter_queue="dead")
    await publish(dead, "a", "b")
    async with RunningRouter(dead):
        assert await receive_all(dead, DEAD, 2) == [b"a", b"b"]
    await dead.catalog.put_queue(LOST, QueueSpec())
    await publish(dead, "c")

    unsaved.undo()
    async with RunningRouter(dead):
        assert await receive_all(dead, LOST, 1) == [b"c"]
    assert await is_empty(dead, LOST)
    assert await is_empty(dead, DEAD)


async def test_producers_of_dead_letters_are_retired(dead, put_route, router):
    """A queue knows at most 10,000 producers."""
    await put_route("billing", BILLING, transform=STRICT, dead_letter_queue="dead")
    await send(dead, b"{}")
    assert await receive_all(dead, DEAD, 1) == [b"{}"]
    route = await dead.topic_routes.get(RouteName(ORDERS, "billing"))
    producer = route.dead_producer_id(0)
    assert await dead.queues.last_sequences(DEAD, [producer, "none"]) == {producer: 0}

    await put_route("billing", BILLING)

    async def is_retired() -> bool:
        return not await dead.queues.last_sequences(DEAD, [producer])

    await until(is_retired)
