"""FIFO topics: a deduplication id adds one message within exactly five minutes, whatever happens to shards and routes."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest
from msgspec.structs import replace

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import Unroutable, ValidationFailed
from storage.domain.names import QueueName, RouteName
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.domain.streams.topic_spec import TopicDedupScope, TopicSpec, TopicType, Unmatched
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.domain.topics.topic import (
    NewPublication,
    PublicationOptions,
    Published,
    content_dedup_id,
)
from tests.integration.topics.routing import ORDERS

WINDOW_MS = limits.DEDUP_WINDOW_MS
FIFO = TopicSpec(type=TopicType.FIFO)
BY_KEY = TopicSpec(type=TopicType.FIFO, dedup_scope=TopicDedupScope.KEY)
LINE = QueueName("line")
KEYS = ("c0", "c1", "c2", "c3")


def message(dedup_id: str, key: str = "c7", body: bytes = b"", **options) -> NewPublication:
    """Return a message whose body is its deduplication id."""
    body = body or dedup_id.encode()
    return NewPublication(body, "order", key, options=PublicationOptions(dedup_id, **options))


async def create(storage, topic: TopicSpec = FIFO, **spec) -> None:
    await storage.topics.put(ORDERS, StreamSpec(topic=topic, archive=False, **spec))


async def publish(storage, *messages: NewPublication, key: str = "") -> list[Published]:
    results = await storage.topics.publish(ORDERS, messages, idempotency_key=key)
    published = [one for one in results if isinstance(one, Published)]
    assert len(published) == len(results), results
    return published


async def bodies(storage) -> list[bytes]:
    """Return the bodies of all messages of the topic."""
    found: list[bytes] = []
    for state in await storage.record_reader.shards(ORDERS.stream):
        where = ReadFrom(offset=state.start)
        read = await storage.record_reader.read_shard(ORDERS.stream, state.shard.index, where)
        found += [one.record.data for one in read.records]
    return found


def summary(results: Sequence[Published]) -> list[tuple[int, bool]]:
    return [(one.offset, one.duplicate) for one in results]


@pytest.mark.parametrize("topic", [FIFO, BY_KEY])
async def test_dedup_id_adds_nothing_for_five_minutes(engines, clock, topic):
    await create(engines, topic)
    [first] = await publish(engines, message("d"))
    clock.advance(ms=WINDOW_MS - 1)
    [repeat] = await publish(engines, message("d", body=b"another"))
    clock.advance(ms=1)
    [later] = await publish(engines, message("d"))

    assert (repeat.duplicate, repeat.id, repeat.routes) == (True, first.id, None)
    assert (later.duplicate, later.offset) == (False, 1)
    assert await bodies(engines) == [b"d", b"d"]


async def test_repeat_does_not_renew_the_window(engines, clock):
    await create(engines)
    await publish(engines, message("d"))
    for _ in range(4):
        clock.advance(ms=WINDOW_MS // 4 - 1)
        await publish(engines, message("d"))
    clock.advance(ms=4)

    [later] = await publish(engines, message("d"))

    assert not later.duplicate


async def test_duplicates_in_a_batch_are_answered_with_first(engines):
    await create(engines)
    await publish(engines, message("b"))

    results = await publish(engines, *map(message, ("a", "b", "a", "c", "b")))

    assert summary(results) == [(1, False), (0, True), (1, True), (2, False), (0, True)]
    assert await bodies(engines) == [b"b", b"a", b"c"]


async def test_content_is_dedup_id_when_topic_says_so(engines):
    await create(engines, replace(FIFO, deduplicate_by_content=True))

    results = await publish(
        engines,
        NewPublication(b"same", key="a"),
        NewPublication(b"same", key="b"),
        message("own", body=b"same"),
        message(content_dedup_id(b"same"), body=b"different"),
    )

    assert summary(results) == [(0, False), (0, True), (1, False), (0, True)]


@pytest.mark.parametrize(("topic", "added"), [(FIFO, 1), (BY_KEY, 2)])
async def test_scope_decides_whether_keys_share_ids(engines, topic, added):
    await create(engines, topic)

    await publish(engines, message("d", "a"), message("d", "b"))

    assert len(await bodies(engines)) == added


async def test_refused_message_leaves_no_dedup_id(engines):
    await create(engines, replace(FIFO, unmatched=Unmatched.REFUSE))
    [refusal] = await engines.topics.publish(ORDERS, [message("d")])
    assert isinstance(refusal, Unroutable)
    await engines.topic_routes.put(
        RouteName(ORDERS, "r"), RouteSpec(target=RouteTarget(queue=LINE.name))
    )

    [published] = await publish(engines, message("d"))

    assert (published.duplicate, published.routes) == (False, 1)


async def test_stale_append_leaves_no_dedup_id(engines, settings, clock):
    """Another process has an old table: its first append is refused by the fence, and repeated."""
    await create(engines)
    async with open_storage(settings, clock=clock) as other:
        await publish(other, message("a"))
        await engines.topic_routes.put(
            RouteName(ORDERS, "r"), RouteSpec(target=RouteTarget(queue=LINE.name))
        )

        results = await publish(other, message("a"), message("b"))

        assert summary(results) == [(0, True), (1, False)]
        assert results[1].routes == 1


async def test_repeated_call_adds_nothing_after_the_window(engines, clock):
    """An idempotency key holds for ten minutes, and answers what the call was answered."""
    await create(engines)
    await publish(engines, message("a"))
    first = await publish(engines, message("a"), message("b"), key="k")
    only_known = await publish(engines, message("a"), key="l")
    clock.advance(ms=limits.IDEMPOTENCY_WINDOW_MS - 1)

    again = await publish(engines, message("a"), message("b"), key="k")
    again_known = await publish(engines, message("a"), key="l")

    assert summary(first) == [(0, True), (1, False)]
    assert summary(again) == [(0, True), (1, True)]
    assert summary(only_known) == summary(again_known) == [(0, True)]
    assert await bodies(engines) == [b"a", b"b"]


async def test_children_know_ids_of_their_parents(engines, clock):
    await create(engines, BY_KEY)
    first = await publish(engines, *(message("d", key) for key in KEYS))
    reshard = engines.streams.resharder.set_shard_count
    for count in (4, 2):
        clock.advance(ms=WINDOW_MS // 3)
        await reshard(ORDERS.stream, count)
        repeats = await publish(engines, *(message("d", key) for key in KEYS), message("e", "c0"))
        assert [(one.id, one.duplicate) for one in repeats[:-1]] == [
            (one.id, True) for one in first
        ]
    clock.advance(ms=WINDOW_MS - 2 * (WINDOW_MS // 3) - 1)
    [last] = await publish(engines, message("d", "c0"))
    clock.advance(ms=1)
    later = await publish(engines, *(message("d", key) for key in KEYS))

    assert last.duplicate
    assert not any(one.duplicate for one in later)
    assert sorted(await bodies(engines)) == [b"d"] * 8 + [b"e"]


async def test_publisher_with_old_shards_adds_nothing_twice(engines, settings, clock):
    await create(engines, BY_KEY)
    async with open_storage(settings, clock=clock) as other:
        await publish(other, *(message("d", key) for key in KEYS))
        await engines.streams.resharder.set_shard_count(ORDERS.stream, 3)

        messages = [message(one, key) for key in KEYS for one in ("d", "e")]
        results = await publish(other, *messages)

        assert [one.duplicate for one in results] == [True, False] * len(KEYS)
        assert sorted(await bodies(engines)) == [b"d"] * 4 + [b"e"] * 4


async def test_topic_with_one_scope_is_not_resharded(engines):
    await create(engines)
    resharder = engines.streams.resharder

    with pytest.raises(ValidationFailed, match="scope 'key'"):
        await resharder.set_shard_count(ORDERS.stream, 2)
    with pytest.raises(ValidationFailed, match="scope 'key'"):
        await resharder.split(ORDERS.stream, 0, 2**127)

    stream = await resharder.set_shard_count(ORDERS.stream, 1)
    assert (len(stream.shards), stream.shards_target) == (1, None)


@pytest.mark.parametrize(
    ("before", "after", "pointer"),
    [
        (FIFO, TopicSpec(), "/type"),
        (TopicSpec(), FIFO, "/type"),
        (FIFO, BY_KEY, "/dedup_scope"),
        (BY_KEY, FIFO, "/dedup_scope"),
    ],
)
async def test_type_and_scope_are_immutable(engines, before, after, pointer):
    await create(engines, before)

    with pytest.raises(ValidationFailed) as refusal:
        await create(engines, after)

    assert [(one.pointer, one.code) for one in refusal.value.faults] == [(pointer, "immutable")]
    await create(engines, replace(before, unmatched=Unmatched.REFUSE))


@pytest.mark.parametrize("seed", range(6))
async def test_random_calls_agree_with_a_model(engines, clock, seed):
    """Calls, time, reshards and changes of routes in any order; the model knows times and ids alone."""
    chance, model = Random(seed), _Model(clock)
    await create(engines, BY_KEY)
    for _ in range(40):
        await _step(engines, clock, chance, model)
    assert sorted(await bodies(engines)) == sorted(model.added)


class _Model:
    """First acceptance of each key and id."""

    def __init__(self, clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[int, str]] = {}
        self.added: list[bytes] = []

    def check(self, messages: Sequence[NewPublication], results: Sequence[Published]) -> None:
        now_ms = self._clock.now_ms()
        for one, result in zip(messages, results, strict=True):
            identity = one.key, one.options.dedup_id
            at_ms, message_id = self._seen.get(identity, (-WINDOW_MS, ""))
            is_repeat = now_ms - at_ms < WINDOW_MS
            assert result.duplicate is is_repeat, identity
            if is_repeat:
                assert str(result.id) == message_id
            else:
                self._seen[identity] = now_ms, str(result.id)
                self.added.append(one.body)


async def _step(storage, clock, chance: Random, model: _Model) -> None:
    match chance.randrange(8):
        case 0:
            count = chance.randint(1, 4)
            await storage.streams.resharder.set_shard_count(ORDERS.stream, count)
        case 1:
            match = {"subject": chance.choice(["order", "refund"])}
            spec = RouteSpec(target=RouteTarget(queue=LINE.name), match=match)
            await storage.topic_routes.put(RouteName(ORDERS, "r"), spec)
        case 2:
            clock.advance(ms=chance.choice([1, WINDOW_MS // 2, WINDOW_MS - 1, WINDOW_MS]))
        case _:
            picks = [(chance.choice("xyz"), chance.choice(KEYS)) for _ in range(6)]
            messages = [message(dedup_id, key) for dedup_id, key in picks]
            model.check(messages, await publish(storage, *messages))


async def test_concurrent_publishers_add_each_id_once(engines, settings, clock):
    """Two processes repeat the same ids while shards and routes change."""
    await create(engines, BY_KEY, shards=2)
    ids = [f"{nth}" for nth in range(60)]

    async def repeat(storage, seed: int) -> None:
        chance = Random(seed)
        for _ in range(30):
            some = chance.sample(ids, 8)
            await publish(storage, *(message(one, KEYS[int(one) % len(KEYS)]) for one in some))

    async def disturb() -> None:
        for count in (1, 3, 2):
            await engines.streams.resharder.set_shard_count(ORDERS.stream, count)
            target = RouteTarget(queue=f"line-{count}")
            await engines.topic_routes.put(RouteName(ORDERS, "r"), RouteSpec(target=target))

    async with open_storage(settings, clock=clock) as other:
        work = [repeat(one, seed) for seed, one in enumerate((engines, other, engines, other))]
        await asyncio.gather(*work, disturb())
        await publish(other, *(message(one, KEYS[int(one) % len(KEYS)]) for one in ids))

    assert sorted(await bodies(engines)) == sorted(one.encode() for one in ids)
