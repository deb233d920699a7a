"""Publishing: the routes of a message are decided when it is accepted, against the table that the log agrees with."""

import asyncio

import pytest
import redis

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import (
    FanOutTooLarge,
    FenceMismatch,
    StreamReadOnly,
    TooManyRoutes,
    TopicNotFound,
    Unroutable,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import RouteName, StreamName, TopicName
from storage.domain.streams.stream import RING_SIZE, ReadFrom, StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, Unmatched
from storage.domain.topics.topic import NewPublication, routes_of
from storage.postgres.repositories.routes import LockedRoutes
from storage.redis.keys import log_keys
from tests.integration.topics.routing import AUDIT, BILLING, ORDERS, publish, set_token


async def numbers(storage, offset: int = 0) -> list[tuple[int, ...]]:
    read = await storage.record_reader.read_shard(ORDERS.stream, 0, ReadFrom(offset=offset))
    return [routes_of(one.record.headers) for one in read.records]


async def test_message_names_routes_that_match_it(topics, put_route):
    billing = await put_route("billing", BILLING, {"subject": "order.*"})
    audit = await put_route("audit", AUDIT)

    published = await publish(topics, "order.created", "refund.created")

    assert [one.routes for one in published] == [2, 1]
    assert await numbers(topics) == [(billing.number, audit.number), (audit.number,)]


async def test_publish_without_route_is_kept_in_log(topics):
    [published] = await publish(topics, "order.created")

    assert (published.offset, published.routes) == (0, 0)
    assert await numbers(topics) == [()]


async def test_other_process_matches_with_changed_routes(topics, settings, put_route):
    """Its table is old until the log refuses the token that it has."""
    async with open_storage(settings) as other:
        await publish(other, "order.created")
        billing = await put_route("billing", BILLING)

        [published] = await publish(other, "order.created")

        assert published.routes == 1
        await topics.topic_routes.delete(RouteName(ORDERS, "billing"))
        [published] = await publish(other, "order.created")
        assert published.routes == 0
        assert await numbers(topics) == [(), (billing.number,), ()]


async def test_rolled_back_change_leaves_former_routes(topics, put_route, monkeypatch):
    """The tokens of the logs are ahead of Postgres; the next publisher sets them again."""
    billing = await put_route("billing", BILLING)
    await publish(topics, "a")

    async def fail(*_):
        raise RuntimeError("killed before the commit")

    monkeypatch.setattr(LockedRoutes, "insert", fail)
    with pytest.raises(RuntimeError):
        await put_route("audit", AUDIT)

    [published] = await publish(topics, "b")

    assert published.routes == 1
    assert await numbers(topics) == [(billing.number,), (billing.number,)]


async def test_new_process_repairs_log_without_token(topics, settings, put_route, redis_url):
    """A log that was restored or lost has none, and a process without a table would agree with it."""
    await put_route("billing", BILLING)
    log_id = (await topics.topics.get(ORDERS)).shards[0].log_id
    with redis.Redis.from_url(redis_url) as store:
        assert store.hdel(log_keys("default", log_id)[1], "fence")

    async with open_storage(settings) as other:
        [published] = await publish(other, "order.created")

    assert published.routes == 1


@pytest.mark.parametrize("token", ["routes:1", "", "another"])
async def test_late_command_sets_no_older_token(topics, put_route, token):
    """A reshard passes the token of a parent on to its children, and may do so late."""
    await put_route("billing", BILLING)
    await put_route("audit", AUDIT)

    with pytest.raises(FenceMismatch):
        await set_token(topics, token)

    [published] = await publish(topics, "a")
    assert published.routes == 2


async def test_version_rises_above_that_of_a_log(topics, put_route):
    """Postgres was restored to an earlier time, or a change was rolled back."""
    await put_route("billing", BILLING)
    await set_token(topics, "routes:7")

    [published] = await publish(topics, "a")
    audit = await put_route("audit", AUDIT)

    assert published.routes == 1
    assert audit.number == 9


async def test_plain_append_to_topic_is_refused(topics, put_route):
    await put_route("billing", BILLING)

    with pytest.raises(StreamReadOnly):
        await topics.streams.append(ORDERS.stream, [Record(b"x")])


async def test_routes_with_sql_alone_are_limited(topics, put_route, monkeypatch):
    monkeypatch.setattr(limits, "WHERE_ROUTES_MAX", 1)
    alone = {"where": "headers.x > 1"}
    await put_route("first", AUDIT, [{"subject": "a"}, alone])

    for match in (alone, alone | {"subject": "#"}):
        with pytest.raises(TooManyRoutes):
            await put_route("second", AUDIT, match)

    await put_route("first", AUDIT, alone)
    await put_route("second", AUDIT, {"subject": "a", "where": "headers.x > 1"})


async def test_repeat_with_key_adds_nothing_after_change(topics, put_route):
    """The routes of a message do not count to its fingerprint: they may change before a repeat."""
    await put_route("billing", BILLING)
    message = [NewPublication(b"1", "order.created")]
    [first] = await topics.topics.publish(ORDERS, message, idempotency_key="k")
    await put_route("audit", AUDIT)

    [repeat] = await topics.topics.publish(ORDERS, message, idempotency_key="k")

    assert (repeat.duplicate, repeat.routes, repeat.offset) == (True, None, first.offset)
    assert len(await numbers(topics)) == 1


@pytest.fixture
async def refusing(topics):
    """The topic refuses messages that no route takes."""
    await topics.topics.put(ORDERS, StreamSpec(topic=TopicSpec(unmatched=Unmatched.REFUSE)))


async def test_unmatched_message_refuses_its_call(topics, put_route, refusing):
    await put_route("billing", BILLING, {"subject": "order.#"})

    refused = await topics.topics.publish(
        ORDERS, [NewPublication(b"1", "order"), NewPublication(b"2", "refund")]
    )

    assert [type(one) for one in refused] == [Unroutable, Unroutable]
    assert refused[0].detail.startswith("Message 1:")
    assert await numbers(topics) == []
    [published] = await publish(topics, "order")
    assert published.routes == 1


async def test_process_with_old_table_refuses_no_matched_message(
    topics, settings, put_route, refusing
):
    async with open_storage(settings) as other:
        [refused] = await other.topics.publish(ORDERS, [NewPublication(b"1", "order")])
        assert isinstance(refused, Unroutable)
        await put_route("billing", BILLING)

        [published] = await publish(other, "order")

    assert published.routes == 1


async def test_fan_out_is_bounded(topics, put_route, monkeypatch):
    monkeypatch.setattr(limits, "FAN_OUT_BYTES_MAX", 9)
    await put_route("billing", BILLING)
    await put_route("audit", AUDIT)

    [fits] = await topics.topics.publish(ORDERS, [NewPublication(b"1234")])
    [refused] = await topics.topics.publish(ORDERS, [NewPublication(b"12345")])

    assert fits.routes == 2
    assert isinstance(refused, FanOutTooLarge)


@pytest.mark.parametrize("subject", ["order.*", "order..created", "a b", "x" * 256, "#"])
async def test_invalid_subject_is_refused(topics, subject):
    with pytest.raises(ValidationFailed):
        await topics.topics.publish(ORDERS, [NewPublication(b"1", subject)])


async def test_publish_to_missing_topic_fails(topics):
    with pytest.raises(TopicNotFound):
        await topics.topics.publish(TopicName("none"), [NewPublication(b"1")])


async def test_stream_and_topic_may_have_one_name(topics):
    await topics.catalog.put_stream(StreamName("orders"), StreamSpec())

    await publish(topics, "a")

    read = await topics.record_reader.read_shard(StreamName("orders"), 0, ReadFrom(offset=0))
    assert not read.records


async def test_stream_with_prefix_of_topic_is_refused(topics):
    with pytest.raises(ValidationFailed):
        await topics.catalog.put_stream(StreamName("topic:other"), StreamSpec())


async def test_publish_continues_through_reshard(topics, put_route):
    billing = await put_route("billing", BILLING)
    publishing = [publish(topics, f"k{nth}", key=f"k{nth}") for nth in range(20)]

    await asyncio.gather(
        *publishing, topics.streams.resharder.split(ORDERS.stream, 0, RING_SIZE // 2)
    )
    [published] = await publish(topics, "later", key="later")

    assert published.shard in (1, 2)
    read = await topics.record_reader.read_shard(
        ORDERS.stream, published.shard, ReadFrom(offset=published.offset)
    )
    assert routes_of(read.records[0].record.headers) == (billing.number,)
