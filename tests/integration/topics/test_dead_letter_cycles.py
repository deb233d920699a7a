"""Dead letters that routes bring back: each message comes to an end."""

import pytest

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.dead_letter_origin import origin_of
from storage.domain.queues.message import NewMessage
from storage.domain.queues.moves import MoveState
from storage.domain.queues.queue import QueueSpec
from storage.domain.topics.route import RouteSpec
from storage.domain.topics.topic import NewPublication
from tests.integration.topics.routing import ORDERS, receive_first, target_of, until

JOBS, DEAD, SMALL = QueueName("jobs"), QueueName("dead"), QueueName("small")
OF_JOBS, OF_DEAD = TopicName.of_queue(JOBS), TopicName.of_queue(DEAD)
BIG = b"x" * 2_000


@pytest.fixture
async def queues(topics: Storage) -> Storage:
    """A queue that refuses big messages, and two that get them."""
    await topics.catalog.put_queue(SMALL, QueueSpec(message_bytes_max=1_024))
    for queue in (JOBS, DEAD):
        await topics.catalog.put_queue(queue, QueueSpec())
    return topics


async def put_route(storage: Storage, source: TopicName, target, **fields) -> RouteName:
    name = RouteName(source, "next")
    await storage.topic_routes.put(name, RouteSpec(target=target_of(target), **fields))
    return name


async def until_dropped(storage: Storage, *routes: RouteName) -> None:
    """Wait until one of the routes has dropped a message."""

    async def is_dropped() -> bool:
        return any([(await storage.topic_routes.get(name)).dropped for name in routes])

    await until(is_dropped)


async def until_ready(storage: Storage, queue: QueueName) -> None:
    async def is_ready() -> bool:
        return bool((await storage.queues.stats(queue)).ready == 1)

    await until(is_ready)


async def move_back(storage: Storage) -> None:
    """Move the dead letter to the queue of the route, and wait until it has arrived."""
    move = await storage.moves.start(DEAD, JOBS)

    async def is_over() -> bool:
        return (await storage.moves.get(move.move_id)).state is MoveState.COMPLETED

    await until(is_over)


async def test_source_cannot_be_its_own_dead_letter_queue(queues):
    with pytest.raises(ValidationFailed) as refused:
        await put_route(queues, OF_JOBS, SMALL, dead_letter_queue=JOBS.name)

    assert [fault.pointer for fault in refused.value.faults] == ["/dead_letter_queue"]


async def test_dead_letters_of_two_queues_come_to_an_end(queues, router):
    first = await put_route(queues, OF_JOBS, SMALL, dead_letter_queue=DEAD.name)
    second = await put_route(queues, OF_DEAD, SMALL, dead_letter_queue=JOBS.name)

    await queues.queues.send(JOBS, [NewMessage(BIG)])

    await until_dropped(queues, first, second)


async def test_dead_letters_routed_back_come_to_an_end(queues, router):
    first = await put_route(queues, OF_JOBS, SMALL, dead_letter_queue=DEAD.name)
    second = await put_route(queues, OF_DEAD, JOBS)

    await queues.queues.send(JOBS, [NewMessage(BIG)])

    await until_dropped(queues, first, second)


async def test_dead_letters_routed_to_their_topic_come_to_an_end(queues, router):
    first = await put_route(queues, ORDERS, SMALL, dead_letter_queue=DEAD.name)
    second = await put_route(queues, OF_DEAD, ORDERS)

    await queues.topics.publish(ORDERS, [NewPublication(BIG)])

    await until_dropped(queues, first, second)


async def test_moved_message_can_be_routed_as_often_as_a_new_one(queues, router):
    await put_route(queues, OF_JOBS, SMALL, dead_letter_queue=DEAD.name)
    await queues.queues.send(JOBS, [NewMessage(BIG)])

    for _ in range(limits.TOPIC_HOPS_MAX + 2):
        await until_ready(queues, DEAD)
        await move_back(queues)
    await until_ready(queues, DEAD)

    origin = origin_of((await receive_first(queues, DEAD)).system)
    assert origin is not None
    assert origin.reason == "message_too_large"
