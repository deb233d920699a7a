"""Routes whose source is a queue: its messages, each taken once, and none lost."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from unittest import mock

import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.errors import (
    QueueNotFound,
    RouteCycle,
    StorageUnavailable,
    TopicNotFound,
    TopicReadOnly,
    ValidationFailed,
)
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec, QueueType
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, TopicType, Unmatched
from storage.domain.topics.route import UNMATCHED, RouteMode, RouteSpec
from storage.domain.topics.topic import NewPublication
from storage.redis.queues.transfer import RedisTransferStore
from storage.settings import StorageSettings
from storage.streams.engine import Streams
from storage.topics.queue_intake import QueueIntake
from storage.topics.routes import TopicRoutes
from tests.conditions import PATIENCE_S
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

JOBS = QueueName("jobs.eu")
SOURCE = TopicName.of_queue(JOBS)
EVEN = {"filter": {"body": {"even": [True]}}}
ODD = {"filter": {"body": {"even": [False]}}}


@pytest.fixture
async def jobs(topics):
    await topics.catalog.put_queue(JOBS, QueueSpec())
    return topics


@pytest.fixture
def put_route(jobs):
    async def put(route: str, target, match=None, **fields):
        spec = RouteSpec(target=target_of(target), match=match, **fields)
        return (await jobs.topic_routes.put(RouteName(SOURCE, route), spec)).definition

    return put


def body(number: int) -> bytes:
    return b'{"even": %s, "n": %d}' % (b"false" if number % 2 else b"true", number)


async def send(storage, *numbers: int, **fields) -> list[str]:
    sent = await storage.queues.send(JOBS, [NewMessage(body(n), **fields) for n in numbers])
    return [one.message_id for one in sent]


async def dead(storage) -> list[tuple[bytes, str]]:
    letters, _ = await storage.dead_letters.browse(JOBS, messages_max=100)
    return [(one.body, one.reason) for one in letters]


@contextmanager
def failing(owner, method: str) -> Iterator[None]:
    """Let a method fail, and expect its failure."""
    away = mock.patch.object(owner, method, side_effect=StorageUnavailable)
    with away, pytest.raises(StorageUnavailable):
        yield


async def until_ready(storage, queue, count: int) -> None:
    async def is_ready() -> bool:
        return bool((await storage.queues.stats(queue)).ready == count)

    await until(is_ready)


async def test_one_put_forwards_a_queue(jobs, put_route, router):
    await send(jobs, *range(250))

    await put_route("work", BILLING)
    await send(jobs, *range(250, 300))

    assert await receive_all(jobs, BILLING, 300) == [body(n) for n in range(300)]
    stats = await jobs.queues.stats(JOBS)
    assert (stats.ready, stats.moved_out) == (0, 300)


async def test_each_route_gets_what_it_matches(jobs, put_route, router):
    await put_route("even", BILLING, EVEN)
    await put_route("all", AUDIT)

    await send(jobs, *range(10))

    assert await receive_all(jobs, BILLING, 5) == [body(n) for n in range(0, 10, 2)]
    assert await read_all(jobs, AUDIT, 10) == [body(n) for n in range(10)]


async def test_unmatched_message_is_a_dead_letter(jobs, put_route, router):
    await put_route("even", BILLING, EVEN)

    await send(jobs, *range(6))

    assert await receive_all(jobs, BILLING, 3) == [body(n) for n in (0, 2, 4)]
    assert await dead(jobs) == [(body(n), "unroutable") for n in (1, 3, 5)]
    stats = await jobs.queues.stats(JOBS)
    assert (stats.sent, stats.moved_out, stats.dead_lettered, stats.moving) == (6, 3, 3, 0)


async def test_unmatched_message_is_dropped_when_asked(jobs, put_route, router):
    spec = StreamSpec(topic=TopicSpec(unmatched=Unmatched.DROP))
    await jobs.topics.put(SOURCE, spec)
    await put_route("even", BILLING, EVEN)

    await send(jobs, *range(6))

    assert await receive_all(jobs, BILLING, 3) == [body(n) for n in (0, 2, 4)]
    assert await dead(jobs) == []
    assert len(await read_all(jobs, SOURCE.stream, 6)) == 6


async def test_unmatched_route_takes_the_rest(jobs, put_route, router):
    await put_route("even", BILLING, EVEN)
    await put_route("rest", CRM, UNMATCHED)

    await send(jobs, *range(6))

    assert await receive_all(jobs, CRM, 3) == [body(n) for n in (1, 3, 5)]
    assert await dead(jobs) == []


async def test_message_stays_without_a_live_route(jobs, put_route, router):
    await put_route("shadow", BILLING, mode=RouteMode.SHADOW)
    await send(jobs, 1)
    await asyncio.sleep(1.5)  # a router has seen the route by then
    assert (await receive_first(jobs, JOBS)).body == body(1)

    await put_route("work", BILLING)
    await receive_all(jobs, BILLING, 0)
    await jobs.topic_routes.delete(RouteName(SOURCE, "work"))
    await send(jobs, 2)

    assert (await receive_first(jobs, JOBS)).body == body(2)


async def test_departed_messages_return_when_routes_are_gone(jobs, put_route):
    await put_route("work", BILLING)
    await send(jobs, *range(3))
    with failing(Streams, "append_idempotent_batch"):
        await take(jobs)
    assert (await jobs.queues.stats(JOBS)).ready == 0

    await jobs.topic_routes.delete(RouteName(SOURCE, "work"))
    await jobs.queues.sweep(JOBS)

    assert await receive_all(jobs, JOBS, 3) == [body(n) for n in range(3)]


async def test_departed_messages_return_when_topic_is_gone(jobs, put_route):
    await put_route("work", BILLING)
    await send(jobs, *range(3))
    with failing(Streams, "append_idempotent_batch"):
        await take(jobs)

    await jobs.topics.delete(SOURCE)
    await jobs.queues.sweep(JOBS)

    assert await receive_all(jobs, JOBS, 3) == [body(n) for n in range(3)]


async def take(storage: Storage) -> int:
    return await storage.queue_intake.take(await storage.topics.fresh(SOURCE), 0)


async def test_message_of_topic_is_not_taken_again(jobs, put_route):
    """The transfer fails behind the append, and the routes change before it is repeated."""
    await put_route("even", BILLING, EVEN)
    await send(jobs, *range(0, 6, 2))
    with failing(RedisTransferStore, "clear"):
        await take(jobs)

    await put_route("even", BILLING, ODD)
    await jobs.queues.sweep(JOBS)
    await jobs.queues.sweep(JOBS)

    async with RunningRouter(jobs):
        assert await receive_all(jobs, BILLING, 3) == [body(n) for n in (0, 2, 4)]
        assert await is_empty(jobs, BILLING)
    assert await dead(jobs) == []
    assert (await jobs.queues.stats(JOBS)).ready == 0


async def test_repeat_decides_by_the_present_routes(jobs, put_route):
    """The append fails, and the message that was taken is unmatched when it is repeated."""
    await put_route("even", BILLING, EVEN)
    await send(jobs, 0, 1)
    with failing(Streams, "append_idempotent_batch"):
        await take(jobs)
    assert await dead(jobs) == [(body(1), "unroutable")]

    await put_route("even", BILLING, ODD)
    await jobs.queues.sweep(JOBS)

    assert sorted(await dead(jobs)) == [(body(1), "unroutable"), (body(0), "unroutable")]


@pytest.mark.parametrize("after", [ODD, None])
async def test_routes_that_change_while_messages_are_returned_decide_again(jobs, put_route, after):
    """The table is brought to its next version in place, beside the transfer that has decided by the former one."""
    await put_route("work", BILLING, EVEN)
    await send(jobs, 1, 2)
    intake, topic = jobs.queue_intake, await jobs.topics.fresh(SOURCE)
    return_refused, changes = QueueIntake._return, [after]

    async def return_later(*arguments) -> None:
        for change in changes:
            if change is not None:
                await put_route("work", BILLING, change)
            else:
                await jobs.topic_routes.delete(RouteName(SOURCE, "work"))
            await intake._tables.refresh(SOURCE, topic.stream_id)
        changes.clear()
        await return_refused(intake, *arguments)

    with mock.patch.object(QueueIntake, "_return", side_effect=return_later):
        await intake.take(topic, 0)

    in_topic = [
        one.record.data
        for one in (
            await jobs.record_reader.read_shard(SOURCE.stream, 0, ReadFrom(offset=0))
        ).records
    ]
    ready = (await jobs.queues.stats(JOBS)).ready
    if after is None:
        assert (in_topic, await dead(jobs), ready) == ([], [], 2)
    else:
        assert (in_topic, await dead(jobs)) == ([body(1)], [(body(2), "unroutable")])


async def test_each_message_is_taken_once_by_several_processes(
    jobs, put_route, redis_url, database_url, router
):
    await put_route("even", BILLING, EVEN)
    await put_route("odd", AUDIT, ODD)
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings) as other:
        for first in range(0, 200, 20):
            await send(jobs, *range(first, first + 20))
            await asyncio.gather(take(jobs), take(other), jobs.queues.sweep(JOBS))

    assert await receive_all(jobs, BILLING, 100) == [body(n) for n in range(0, 200, 2)]
    assert sorted(await read_all(jobs, AUDIT, 100)) == sorted(body(n) for n in range(1, 200, 2))
    assert await is_empty(jobs, BILLING)


async def test_groups_keep_their_order(jobs, topics, put_route, router):
    fifo, target = QueueName("ordered"), QueueName("target")
    for name in (fifo, target):
        await topics.catalog.put_queue(name, QueueSpec(type=QueueType.FIFO))
    spec = RouteSpec(target=target_of(target))
    await topics.topic_routes.put(RouteName(TopicName.of_queue(fifo), "work"), spec)

    for n in range(40):
        message = NewMessage(body(n), group=f"g{n % 3}", dedup_id=str(n))
        await topics.queues.send(fifo, [message])

    received: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(received) < 40:
            received += await receive_all(topics, target, 1)
    for group in range(3):
        own = [body(n) for n in range(40) if n % 3 == group]
        assert [one for one in received if one in own] == own


async def test_delayed_message_is_taken_when_it_is_due(jobs, put_route, router):
    await put_route("work", BILLING)

    await send(jobs, 1, delay_ms=2_000)
    await send(jobs, 2)

    assert await receive_all(jobs, BILLING, 2) == [body(2), body(1)]


async def test_copy_has_options_of_the_message(jobs, put_route):
    await put_route("work", BILLING)
    urgent = NewMessage(b"first", headers=(("h", "", b"1"),), content_type="a/b", priority=3)
    messages = [NewMessage(b"late"), urgent, NewMessage(b"gone", ttl_ms=300)]
    await jobs.queues.send(JOBS, messages)
    await take(jobs)
    await asyncio.sleep(0.4)

    async with RunningRouter(jobs):
        await until_ready(jobs, BILLING, 2)

    first, late = await jobs.queues.receive(BILLING, messages_max=10)
    assert (first.body, first.content_type) == (b"first", "a/b")
    assert ("h", "", b"1") in first.headers
    assert late.body == b"late"


@pytest.mark.parametrize("through", [(), (BILLING,), (ORDERS,), (BILLING, AUDIT, CRM)])
async def test_route_that_leads_back_to_its_queue_is_refused(jobs, put_route, through):
    path = [JOBS, *through, JOBS]
    for nth, (source, target) in enumerate(pairwise(path)):
        route = RouteName(topic_of(source), "next")
        put = jobs.topic_routes.put(route, RouteSpec(target=target_of(target)))
        if nth == len(through):
            with pytest.raises(RouteCycle):
                await put
        else:
            await put


def topic_of(source: QueueName | StreamName | TopicName) -> TopicName:
    """Return the topic that has the routes of a source."""
    if isinstance(source, QueueName):
        return TopicName.of_queue(source)
    return source.topic if isinstance(source, StreamName) else source


async def test_messages_pass_a_cycle_of_queues_a_few_times(jobs, put_route, router):
    """Two changes at the same time can make a cycle."""
    back = TopicName.of_queue(BILLING)
    await put_route("there", BILLING, dead_letter_queue=CRM.name)
    spec = RouteSpec(target=target_of(JOBS), dead_letter_queue=CRM.name)
    with mock.patch.object(TopicRoutes, "_check_cycle"):
        await jobs.topic_routes.put(RouteName(back, "back"), spec)

    await send(jobs, 1)

    assert await receive_all(jobs, CRM, 1) == [body(1)]


async def test_all_partitions_are_taken(jobs, topics, router):
    wide = QueueName("wide")
    await topics.catalog.put_queue(wide, QueueSpec(partitions=4))
    spec = RouteSpec(target=target_of(BILLING))
    await topics.topic_routes.put(RouteName(TopicName.of_queue(wide), "work"), spec)
    for n in range(60):
        await topics.queues.send(wide, [NewMessage(body(n))])

    assert sorted(await receive_all(jobs, BILLING, 60)) == sorted(body(n) for n in range(60))


async def test_paused_queue_keeps_its_messages(jobs, put_route, router):
    await put_route("work", BILLING)
    await send(jobs, 0)
    assert await receive_all(jobs, BILLING, 1) == [body(0)]  # the router waits for more

    await jobs.catalog.change_queue(JOBS, lambda spec: replace(spec, paused=True))
    await send(jobs, 1)
    await asyncio.sleep(0.5)
    assert (await jobs.queues.stats(JOBS)).ready == 1

    await jobs.catalog.change_queue(JOBS, lambda spec: replace(spec, paused=False))

    assert await receive_all(jobs, BILLING, 1) == [body(1)]


async def test_routes_are_deleted_with_the_queue(jobs, put_route, router):
    await put_route("work", BILLING)
    await send(jobs, 1)
    await receive_all(jobs, BILLING, 1)

    await jobs.catalog.delete_queue(JOBS)
    with pytest.raises(TopicNotFound):
        await jobs.topics.fresh(SOURCE)

    await jobs.catalog.put_queue(JOBS, QueueSpec())
    await send(jobs, 2)
    assert (await receive_first(jobs, JOBS)).body == body(2)


async def test_topic_that_outlived_its_queue_takes_nothing(jobs, put_route, router):
    await put_route("work", BILLING)
    with failing(jobs.catalog, "delete_topic"):
        await jobs.catalog.delete_queue(JOBS)
    await jobs.catalog.put_queue(JOBS, QueueSpec())
    await send(jobs, 1)
    assert (await receive_first(jobs, JOBS)).body == body(1)

    await put_route("other", CRM)
    await send(jobs, 2)

    assert await receive_all(jobs, CRM, 1) == [body(2)]
    assert await is_empty(jobs, BILLING)


async def test_topic_of_a_queue_is_not_published_to(jobs, put_route):
    await put_route("work", BILLING)
    with pytest.raises(TopicReadOnly):
        await jobs.topics.publish(SOURCE, [NewPublication(b"x")])


async def test_topic_requires_its_queue(jobs):
    missing = RouteName(TopicName("queue:missing"), "work")
    with pytest.raises(QueueNotFound):
        await jobs.topic_routes.put(missing, RouteSpec(target=target_of(BILLING)))


async def test_dry_run_creates_no_topic(jobs):
    spec = RouteSpec(target=target_of(BILLING))
    put = await jobs.topic_routes.put(RouteName(SOURCE, "work"), spec, dry_run=True)

    assert (put.created, put.definition.number) == (True, 1)
    with pytest.raises(TopicNotFound):
        await jobs.topics.fresh(SOURCE)


@pytest.mark.parametrize(
    "change", [StreamSpec(shards=2), StreamSpec(topic=TopicSpec(type=TopicType.FIFO))]
)
async def test_topic_of_a_queue_has_one_standard_shard(jobs, change):
    with pytest.raises(ValidationFailed):
        await jobs.topics.put(SOURCE, change)


async def test_settings_can_be_changed(jobs, put_route):
    await put_route("work", BILLING)
    created = (await jobs.topics.fresh(SOURCE)).spec
    assert (created.archive, created.retention_ms) == (False, limits.TOPIC_RETENTION_MS_DEFAULT)

    stream = await jobs.topics.change(
        SOURCE, lambda spec: replace(spec, topic=TopicSpec(unmatched=Unmatched.DROP))
    )

    assert not stream.spec.topic.refuses_unmatched
    assert stream.spec.topic.queue_id == (await jobs.catalog.queue(JOBS)).log_id


async def test_largest_message_is_taken(jobs, put_route, router):
    await put_route("work", BILLING)
    await jobs.queues.send(JOBS, [NewMessage(b"x" * limits.MESSAGE_BYTES_MAX)])

    assert await receive_all(jobs, BILLING, 1) == [b"x" * limits.MESSAGE_BYTES_MAX]


async def test_dead_letters_cannot_go_to_the_topic_of_a_queue(jobs, put_route):
    await put_route("work", BILLING)
    spec = QueueSpec(dead_letters=DeadLetterTarget(None, 1, SOURCE.name))
    with pytest.raises(ValidationFailed):
        await jobs.catalog.put_queue(CRM, spec)
