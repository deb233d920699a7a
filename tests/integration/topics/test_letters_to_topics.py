"""Dead letters of queues that are published to a topic."""

from collections.abc import Sequence
from unittest import mock

import pytest

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StorageUnavailable, ValidationFailed
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec, QueueType
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, TopicType, Unmatched
from storage.domain.topics.route import RouteSpec
from tests.integration.topics.routing import BILLING, CRM, ORDERS, receive_first, target_of

pytestmark = pytest.mark.one_store

WORK = QueueName("work.eu")
DEAD = TopicName("dead")


@pytest.fixture
async def work(topics: Storage) -> Storage:
    """A queue whose messages die at the second receive, into a topic."""
    await topics.topics.put(DEAD, StreamSpec(shards=4))
    spec = QueueSpec(dead_letters=DeadLetterTarget(None, 1, DEAD.name), attempts_max=None)
    await topics.catalog.put_queue(WORK, spec)
    return topics


async def die(
    storage: Storage, *bodies: bytes, queue: QueueName = WORK, reason: str = ""
) -> list[str]:
    """Send messages, fail them once, and receive, which dead-letters them; return their ids."""
    messages = [NewMessage(body, headers=(("h", "", b"1"),)) for body in bodies]
    await storage.queues.send(queue, messages)
    ids = await fail(storage, queue, len(bodies), reason)
    assert await storage.queues.receive(queue, messages_max=100) == []
    return ids


async def fail(storage: Storage, queue: QueueName, count: int, reason: str = "") -> list[str]:
    received = await storage.queues.receive(queue, messages_max=100)
    assert len(received) == count
    nacks = [
        Settlement(one.receipt_handle, SettleAction.NACK, reason=reason, delay_ms=0)
        for one in received
    ]
    await storage.queues.settle(queue, nacks)
    return [one.message_id for one in received]


async def bodies_of(storage: Storage, topic: TopicName) -> Sequence[bytes]:
    states = await storage.record_reader.shards(topic.stream)
    count = sum(state.next - state.start for state in states)
    found: list[bytes] = []
    for state in states:
        read = await storage.record_reader.read_shard(
            topic.stream, state.shard.index, ReadFrom(offset=state.start)
        )
        found += [one.record.data for one in read.records]
    assert len(found) == count
    return sorted(found)


async def test_dead_letter_is_published_with_its_reason(work, router):
    match = {"subject": "work.*", "filter": {"headers": {"dead-letter-reason": ["declined"]}}}
    spec = RouteSpec(target=target_of(CRM), match=match)
    await work.topic_routes.put(RouteName(DEAD, "declined"), spec)
    [message_id] = await die(work, b"a", reason="declined")

    message = await receive_first(work, CRM)

    assert message.body == b"a"
    assert {name: value.decode() for name, _, value in message.headers} == {
        "h": "1",
        "dead-letter-queue": "work.eu",
        "dead-letter-reason": "declined",
        "dead-letter-receive-count": "1",
        "dead-letter-message-id": message_id,
    }
    stats = await work.queues.stats(WORK)
    assert (stats.moved_out, stats.moving, stats.ready) == (1, 0, 0)


async def test_dead_letters_are_published_once_after_lost_answer(work, monkeypatch):
    publish = work.queues._transfer.publish

    async def lose_answer(topic, batch, letters):
        await publish(topic, batch, letters)
        raise StorageUnavailable

    lossy = work.queues._transfer._replace(publish=lose_answer)
    monkeypatch.setattr(work.queues, "_transfer", lossy)
    await die(work, *(b"%d" % n for n in range(9)))
    assert (await work.queues.stats(WORK)).moving == 9
    monkeypatch.undo()

    await work.queues.sweep(WORK)

    assert await bodies_of(work, DEAD) == [b"%d" % n for n in range(9)]
    assert (await work.queues.stats(WORK)).moving == 0


@pytest.mark.parametrize("target", [None, DeadLetterTarget(BILLING.name, 1)])
async def test_letter_for_a_topic_follows_a_change_of_target(work, monkeypatch, target):
    away = work.queues._transfer._replace(publish=mock.AsyncMock(side_effect=StorageUnavailable))
    monkeypatch.setattr(work.queues, "_transfer", away)
    await die(work, b"a", b"b")
    monkeypatch.undo()

    await work.catalog.put_queue(WORK, QueueSpec(dead_letters=target, attempts_max=None))
    await work.queues.sweep(WORK)

    own, other = await work.queues.stats(WORK), await work.queues.stats(BILLING)
    expected = (2, 0, 0) if target is None else (0, 0, 2)
    assert (own.ready, own.moving, other.ready) == expected


async def test_letter_for_a_queue_departs_again_when_target_is_a_topic(work):
    to_queue = QueueSpec(dead_letters=DeadLetterTarget(BILLING.name, 1), attempts_max=None)
    to_topic = (await work.catalog.queue(WORK)).spec
    await work.catalog.put_queue(WORK, to_queue)
    with mock.patch.object(
        type(work.queues._transfer.hot), "accept", side_effect=StorageUnavailable
    ):
        await die(work, b"a", b"b")
    assert (await work.queues.stats(WORK)).moving == 2

    await work.catalog.put_queue(WORK, to_topic)
    await work.queues.sweep(WORK)
    assert (await work.queues.stats(WORK)).ready == 2
    assert await work.queues.receive(WORK, messages_max=10) == []

    assert await bodies_of(work, DEAD) == [b"a", b"b"]
    assert (await work.queues.stats(WORK)).moving == 0


async def test_refusing_topic_accepts_dead_letters(work):
    await work.topics.put(DEAD, StreamSpec(shards=4, topic=TopicSpec(unmatched=Unmatched.REFUSE)))

    await die(work, b"a")

    assert await bodies_of(work, DEAD) == [b"a"]


async def test_message_stays_while_topic_is_missing(work):
    await work.topics.delete(DEAD)
    await work.queues.send(WORK, [NewMessage(b"a")])
    for _ in range(3):
        await fail(work, WORK, 1)

    assert (await work.queues.stats(WORK)).ready == 1


async def test_groups_of_fifo_queue_are_keys(work):
    topic, queue = TopicName("dead-fifo"), QueueName("fifo")
    fifo = StreamSpec(topic=TopicSpec(type=TopicType.FIFO))
    await work.topics.put(topic, fifo)
    spec = QueueSpec(
        type=QueueType.FIFO,
        dead_letters=DeadLetterTarget(None, 1, topic.name),
        attempts_max=None,
    )
    await work.catalog.put_queue(queue, spec)
    await work.queues.send(queue, [NewMessage(b"a", group="g", dedup_id="d")])
    await fail(work, queue, 1)

    assert await work.queues.receive(queue) == []

    read = await work.record_reader.read_shard(topic.stream, 0, ReadFrom(offset=0))
    assert [(one.record.data, one.record.key) for one in read.records] == [(b"a", "g")]


async def test_largest_message_becomes_dead_letter(work):
    body = b"x" * (limits.RECORD_BYTES_MAX_DEFAULT - 2)
    await die(work, body)

    assert await bodies_of(work, DEAD) == [body]  # without the headers that state its reason


@pytest.mark.parametrize(
    ("target", "type_"),
    [
        (DeadLetterTarget(None, 1, "none"), QueueType.STANDARD),
        (DeadLetterTarget(None, 1), QueueType.STANDARD),
        (DeadLetterTarget(BILLING.name, 1, ORDERS.name), QueueType.STANDARD),
        (DeadLetterTarget(None, 1, "../x"), QueueType.STANDARD),
        (DeadLetterTarget(None, 0, ORDERS.name), QueueType.STANDARD),
        (DeadLetterTarget(None, 1, "only-fifo"), QueueType.STANDARD),
    ],
)
async def test_unsuitable_target_is_refused(topics, target, type_):
    fifo = StreamSpec(topic=TopicSpec(type=TopicType.FIFO))
    await topics.topics.put(TopicName("only-fifo"), fifo)

    with pytest.raises(ValidationFailed):
        await topics.catalog.put_queue(WORK, QueueSpec(type=type_, dead_letters=target))
