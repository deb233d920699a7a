"""Routes of topics through the Python SDK: which messages they take, and what targets get."""

import asyncio
from typing import Any

import pytest

from millstream_client import AsyncMillstream, AsyncTopic, BadRequest, NewPublication
from tests.conditions import eventually
from tests.contract.sdk.conftest import BOTH, Backend, Service
from tests.contract.topics.conftest import router

pytestmark = [BOTH, pytest.mark.usefixtures("routed")]
__all__ = ["router"]

ORDER = {"total": 250, "vip": True, "tags": ["a", "b"], "customer": {"id": "c7"}, "note": None}


@pytest.fixture
def routed(backend: Backend, request: pytest.FixtureRequest) -> None:
    """Route the topics of the service; the in-memory one has a router of its own."""
    if isinstance(backend, Service):
        request.getfixturevalue("router")


@pytest.fixture
async def topic(asynchronous: AsyncMillstream, name: str) -> AsyncTopic:
    """A new topic, and two queues `<topic>-a` and `<topic>-b`."""
    topic = asynchronous.topic(name)
    await topic.create()
    for suffix in ("a", "b"):
        await asynchronous.queue(f"{name}-{suffix}").create()
    return topic


async def received(client, queue, number=1):
    """Receive so many messages, and acknowledge them."""
    messages: list[Any] = []
    while len(messages) < number:
        got = await client.queue(queue).receive(number - len(messages), wait_seconds=20)
        for message in got:
            await message.ack()
        messages += got
    return messages


async def test_queue_gets_message_with_its_origin(asynchronous, topic):
    await topic.route("orders").create({"subject": "order.*"}, queue=f"{topic.name}-a")

    await topic.publish("other", subject="refund")
    await topic.publish({"id": 1}, subject="order.new", key="c7", headers={"tenant": "t7"})

    [message] = await received(asynchronous, f"{topic.name}-a")
    assert (message.json(), message.content_type) == ({"id": 1}, "application/json")
    assert (message.headers, message.group) == ({"tenant": "t7"}, "")
    assert (message.topic, message.subject) == (topic.name, "order.new")
    assert (message.route, message.key) == ("orders", "c7")


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("order.*", ["order.a"]),
        ("order.#", ["order", "order.a", "order.a.b"]),
        ("order.>", ["order.a", "order.a.b"]),
        ("#.b", ["order.a.b", "b"]),
        ("*", ["order", "b"]),
        ("#", ["", "order", "order.a", "order.a.b", "b"]),
        ("", [""]),
        ("order.#.b", ["order.a.b"]),
        (["b", "order"], ["order", "b"]),
    ],
)
async def test_route_takes_subjects_of_pattern(topic, pattern, taken):
    await topic.route("all").create({"subject": pattern}, queue=f"{topic.name}-a")

    subjects = ["", "order", "order.a", "order.a.b", "b"]
    published = await topic.publish_many([NewPublication("x", subject) for subject in subjects])

    assert [
        subject for subject, one in zip(subjects, published, strict=True) if one.routes
    ] == taken


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        ({"total": [250]}, True),
        ({"total": [250.0, "x"]}, True),
        ({"total": ["250"]}, False),
        ({"vip": [True]}, True),
        ({"vip": [1]}, False),
        ({"note": [None]}, True),
        ({"total": [{"numeric": [">", 100, "<=", 250]}]}, True),
        ({"total": [{"numeric": [">", 250]}]}, False),
        ({"customer": {"id": [{"prefix": "c"}]}}, True),
        ({"customer": {"id": [{"suffix": "8"}]}}, False),
        ({"customer": {"id": [{"equals-ignore-case": "C7"}]}}, True),
        ({"customer": {"id": [{"anything-but": ["c7", "c8"]}]}}, False),
        ({"total": [{"anything-but": 7}]}, True),
        ({"missing": [{"anything-but": 7}]}, False),
        ({"missing": [{"exists": False}]}, True),
        ({"missing": {"id": [{"exists": False}]}}, True),
        ({"total": [{"exists": True}]}, True),
        ({"customer": [{"exists": True}]}, False),
        ({"tags": ["b"]}, True),
        ({"tags": ["c"]}, False),
        ({"total": [250], "vip": [False]}, False),
    ],
)
async def test_route_takes_messages_of_filter(topic, body, is_taken):
    await topic.route("all").create({"filter": {"body": body}}, queue=f"{topic.name}-a")

    published = await topic.publish(ORDER)

    assert published.routes == int(is_taken)


async def test_all_parts_of_a_match_must_hold(topic):
    both = {"subject": "order.*", "filter": {"headers": {"tenant": ["t7"]}}}
    await topic.route("all").create([both, {"subject": "fax"}], queue=f"{topic.name}-a")

    messages = [
        NewPublication("x", "order.a", headers={"tenant": "t7"}),
        NewPublication("x", "order.a"),
        NewPublication("x", "fax"),
    ]
    published = await topic.publish_many(messages)

    assert [one.routes for one in published] == [1, 0, 1]


@pytest.mark.parametrize(
    ("match", "pointer"),
    [
        ({"subject": "a*"}, "/match/subject"),
        ({"subject": ["a", ">.b"]}, "/match/subject/1"),
        ({"subject": "a b"}, "/match/subject"),
        ([{"subjects": "a"}], "/match/0/subjects"),
        ({"filter": {"body": 7}}, "/match/filter"),
        ({"filter": {"body": {"a": []}}}, "/match/filter/body/a"),
        ([], "/match"),
    ],
)
async def test_invalid_match_is_refused_at_its_place(topic, match, pointer):
    with pytest.raises(BadRequest) as refusal:
        await topic.route("all").create(match, queue=f"{topic.name}-a")

    assert refusal.value.code == "match_invalid"
    assert refusal.value.errors[0].pointer.startswith(pointer)


async def test_unmatched_route_takes_the_rest(asynchronous, topic):
    await topic.route("orders").create({"subject": "order.*"}, queue=f"{topic.name}-a")
    await topic.route("rest").create("unmatched", queue=f"{topic.name}-b")
    await topic.change(unmatched="refuse")

    published = await topic.publish_many([NewPublication("1", "order.a"), NewPublication("2", "x")])

    assert [one.routes for one in published] == [1, 1]
    [rest] = await received(asynchronous, f"{topic.name}-b")
    assert (rest.text, rest.route) == ("2", "rest")


async def test_messages_wait_for_missing_target(asynchronous, topic):
    await topic.route("later").create(queue=f"{topic.name}-later")
    await topic.publish_many(["1", "2"])

    await asynchronous.queue(f"{topic.name}-later").create()

    messages = await received(asynchronous, f"{topic.name}-later", 2)
    assert [message.text for message in messages] == ["1", "2"]


async def test_messages_for_missing_target_are_dropped(topic):
    route = topic.route("later")
    await route.create(queue=f"{topic.name}-later", on_failure="drop")

    published = await topic.publish("1")

    async def counts():
        stats = await route.stats()
        states = [one.state for one in (await topic.message_routes(published.id)).routes]
        return stats.dropped, stats.delivered, bool(stats.last_failure), states

    await eventually(counts, (1, 0, True, ["finished"]))


async def test_message_that_target_refuses_is_dead_lettered(asynchronous, topic):
    fifo = asynchronous.queue(f"{topic.name}-fifo")
    await fifo.create(type="fifo")
    route = topic.route("fifo")
    await route.create(queue=fifo.name, dead_letter_queue=f"{topic.name}-b")

    await topic.publish("1", subject="order.a")
    await topic.publish("2", key="c7")

    [letter] = await received(asynchronous, f"{topic.name}-b")
    [message] = await received(asynchronous, fifo.name)
    assert (letter.text, letter.subject, letter.route) == ("1", "order.a", "fifo")
    assert letter.dead_letter.source == f"route:{topic.name}/fifo"
    assert letter.dead_letter.reason == "validation_failed"
    assert (message.text, message.group) == ("2", "c7")


async def test_options_apply_to_copies(asynchronous, topic):
    await topic.route("all").create(queue=f"{topic.name}-a", ttl_seconds=60)
    await topic.publish("low")
    await topic.publish("high", priority=9)
    queue = asynchronous.queue(f"{topic.name}-a")

    async def ready():
        return (await queue.stats()).ready

    await eventually(ready, 2)
    messages = await received(asynchronous, queue.name, 2)
    assert [message.text for message in messages] == ["high", "low"]
    await topic.publish("late", delay_seconds=60)

    async def delayed():
        return (await queue.stats()).delayed

    await eventually(delayed, 1)


async def test_stream_gets_copies_with_key_of_route(asynchronous, topic):
    stream = asynchronous.stream(f"{topic.name}-s")
    await stream.create()
    await topic.route("all").create(stream=stream.name, key="/body/customer/id")

    await topic.publish(ORDER, subject="order.a")

    async def copies():
        return [(record.key, record.subject) async for record in stream.read()]

    await eventually(copies, [("c7", "order.a")])


async def test_topic_is_read_as_stream(asynchronous, topic):
    await topic.publish_many([NewPublication("1", "order.a"), "2"])
    log = asynchronous.stream(f"topic:{topic.name}")
    group = asynchronous.group(topic.name)
    await group.create(log.name)

    records = [(record.text, record.subject) async for record in log.read()]
    with pytest.raises(Exception, match="stream_read_only"):
        await log.put("x")
    async with group.member() as member:
        read = await member.fetch(wait_seconds=5)

    assert records == [("1", "order.a"), ("2", "")]
    assert [record.text for record in read.records] == ["1", "2"]


async def test_topic_passes_messages_to_another(asynchronous, topic):
    other = asynchronous.topic(f"{topic.name}-other")
    await other.create()
    await topic.route("next").create(topic=other.name)
    await other.route("all").create({"subject": "order.*"}, queue=f"{topic.name}-a")
    with pytest.raises(BadRequest) as refusal:
        await other.route("back").create(topic=topic.name)

    await topic.publish("1", subject="order.a", key="c7")

    [message] = await received(asynchronous, f"{topic.name}-a")
    assert refusal.value.code == "route_cycle"
    assert (message.text, message.subject, message.key) == ("1", "order.a", "c7")
    assert (message.topic, message.route) == (other.name, "all")


SPREAD_KEYS = [f"c{number}" for number in range(12)]


@pytest.mark.parametrize("by", ["key", "subject", "random"])
async def test_spread_delivers_to_one_member(asynchronous, topic, by):
    route, queues = topic.route("workers"), [f"{topic.name}-a", f"{topic.name}-b"]
    stored = await route.create(spread=[{"queue": one} for one in queues], by=by)
    published = [
        await topic.publish(str(nth), subject=f"s.{nth % 4}", key=SPREAD_KEYS[nth % 12])
        for nth in range(36)
    ]

    async def delivered():
        return (await route.stats()).delivered

    await eventually(delivered, len(published))
    counts = [(await asynchronous.queue(queue).stats()).ready for queue in queues]
    places: dict[str, set[str]] = {}
    for queue, count in zip(queues, counts, strict=True):
        for message in await received(asynchronous, queue, count):
            value = {"key": message.key, "subject": message.subject, "random": message.text}[by]
            places.setdefault(value, set()).add(queue)
    assert sum(counts) == len(published)
    assert all(len(one) == 1 for one in places.values())
    assert stored.target.by == by
    [taken] = (await topic.message_routes(published[0].id)).routes
    assert taken.member.queue in places[{"key": "c0", "subject": "s.0", "random": "0"}[by]]


async def test_missing_member_holds_back_its_messages_alone(asynchronous, topic):
    route = topic.route("workers")
    members = [{"queue": f"{topic.name}-a"}, {"queue": f"{topic.name}-late"}]
    await route.create(spread=members)
    for key in SPREAD_KEYS:
        await topic.publish(key, key=key)

    async def lags():
        stats = await route.stats()
        behind = [one.lag_messages > 0 for one in stats.members]
        return stats.state, behind, bool(stats.last_failure), stats.delivered > 0

    await eventually(lags, ("failing", [False, True], True, True))
    delivered = (await route.stats()).delivered
    await asynchronous.queue(f"{topic.name}-late").create()

    late = await received(asynchronous, f"{topic.name}-late", len(SPREAD_KEYS) - delivered)
    keys = [message.key for message in late]
    assert keys == [key for key in SPREAD_KEYS if key in keys]


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"spread": [{"queue": "a"}]}, "/target/spread"),
        ({"spread": [{"queue": "a"}, {"queue": "a"}]}, "/target/spread/1"),
        ({"spread": [{"queue": "a"}, {}]}, "/target/spread/1"),
        ({"spread": [{"queue": "a"}, {"url": "https://a.example"}]}, "/target/spread/1/url"),
        ({"spread": [{"queue": "a"}, {"queue": "b", "weight": 0}]}, "/target/spread/1/weight"),
        ({"spread": [{"queue": "a"}, {"stream": "topic:a"}]}, "/target/spread/1/stream"),
        ({"queue": "a", "by": "key"}, "/target/by"),
        ({"queue": "a", "spread": [{"queue": "a"}, {"queue": "b"}]}, "/target"),
    ],
)
async def test_invalid_spread_is_refused_at_its_place(topic, target, pointer):
    with pytest.raises(BadRequest) as refusal:
        await topic.route("workers").create(target=target)

    assert [error.pointer for error in refusal.value.errors] == [pointer]


async def test_paused_route_delivers_once_resumed(asynchronous, topic):
    route = topic.route("all")
    await route.create(queue=f"{topic.name}-a")
    await route.pause()
    await topic.publish("1")
    state = (await route.stats()).state

    await route.resume()

    [message] = await received(asynchronous, f"{topic.name}-a")
    assert (state, message.text) == ("paused", "1")


async def test_shadow_route_counts_messages(topic):
    route = topic.route("all")
    await route.create(queue=f"{topic.name}-a", mode="shadow")

    published = await topic.publish("1")

    async def counts():
        stats = await route.stats()
        return stats.shadowed, stats.delivered, stats.state

    assert published.routes == 0
    await eventually(counts, (1, 0, "shadow"))


async def test_fifo_topic_delivers_in_order_and_once(asynchronous, name):
    topic, queue = asynchronous.topic(name), asynchronous.queue(f"{name}-fifo")
    await topic.create(type="fifo")
    await queue.create(type="fifo")
    await topic.route("all").create(queue=queue.name)

    for number in (1, 2, 1, 3):
        await topic.publish(str(number), key="c7", dedup_id=f"d{number}")
    with pytest.raises(BadRequest) as refusal:
        await topic.publish("x", key="c7")

    messages = await received(asynchronous, queue.name, 3)
    assert [message.text for message in messages] == ["1", "2", "3"]
    assert {message.group for message in messages} == {"c7"}
    assert refusal.value.errors[0].code == "required"


async def test_request_of_topic_gathers_replies(asynchronous, topic):
    for suffix in ("a", "b"):
        await topic.route(suffix).create(queue=f"{topic.name}-{suffix}")

    async def work(queue):
        [message] = await asynchronous.queue(queue).receive(wait_seconds=20)
        await message.reply(queue[-1])

    asking = asyncio.create_task(topic.request("price?", subject="offer", replies_max=2))
    await asyncio.gather(*(until_replied(work, f"{topic.name}-{one}") for one in ("a", "b")))

    replies = await asking
    assert {reply.text for reply in replies} == {"a", "b"}


async def until_replied(work, queue):
    """Work until a message was there: a poll of the in-memory service ends early."""
    while True:
        try:
            return await work(queue)
        except ValueError:
            await asyncio.sleep(0)
