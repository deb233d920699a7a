"""Routes whose source is a stream or a queue, through the Python SDK."""

import pytest

from millstream_client import (
    AsyncMillstream,
    AsyncQueue,
    AsyncStream,
    AsyncTopic,
    BadRequest,
    Conflict,
    NewMessage,
    NewRecord,
    NotFound,
)
from tests.conditions import eventually
from tests.contract.sdk.conftest import BOTH
from tests.contract.sdk.test_routes import received, routed, router

pytestmark = [BOTH, pytest.mark.usefixtures("routed")]
__all__ = ["routed", "router"]

EVEN = {"filter": {"body": {"even": [True]}}}
ODD = {"filter": {"body": {"even": [False]}}}


@pytest.fixture
async def target(asynchronous: AsyncMillstream, name: str) -> AsyncQueue:
    """A new queue `<name>-target`."""
    queue = asynchronous.queue(f"{name}-target")
    await queue.create()
    return queue


@pytest.fixture
async def stream(asynchronous: AsyncMillstream, name: str) -> AsyncStream:
    """A new stream."""
    stream = asynchronous.stream(name)
    await stream.create()
    return stream


@pytest.fixture
async def queue(asynchronous: AsyncMillstream, name: str) -> AsyncQueue:
    """A new queue."""
    queue = asynchronous.queue(name)
    await queue.create()
    return queue


@pytest.fixture
def clicks(asynchronous: AsyncMillstream, stream: AsyncStream) -> AsyncTopic:
    """The stream under the name of its routes."""
    return asynchronous.topic(f"stream:{stream.name}")


@pytest.fixture
def jobs(asynchronous: AsyncMillstream, queue: AsyncQueue) -> AsyncTopic:
    """The topic of the queue's routes."""
    return asynchronous.topic(f"queue:{queue.name}")


def body(number):
    return {"even": number % 2 == 0, "n": number}


async def append(stream, *numbers):
    await stream.put_many([NewRecord(body(number), key="k") for number in numbers])


async def send(queue, *numbers, **options):
    await queue.send_many([NewMessage(body(number), **options) for number in numbers])


def numbers(messages):
    return [message.json()["n"] for message in messages]


async def stats_of(route, *names):
    stats = await route.stats()
    return [getattr(stats, name) for name in names]


async def refusal_of(call, kind):
    with pytest.raises(kind) as refused:
        await call
    errors = [(error.pointer, error.code) for error in refused.value.errors]
    return (refused.value.code, *errors)


# ── Streams ──


async def test_stream_route_takes_records_that_match(asynchronous, stream, clicks, target):
    await append(stream, 0)
    route = clicks.route("tasks")
    made = await route.create(EVEN, queue=target.name)

    await append(stream, 1, 2, 3, 4)

    messages = await received(asynchronous, target.name, 2)
    assert (made.topic, made.number, numbers(messages)) == (clicks.name, 1, [2, 4])
    first = messages[0]
    assert (first.topic, first.route, first.key, first.subject) == ("", "tasks", "k", "")
    origin = [first.headers[f":source_{name}"] for name in ("stream", "shard", "offset")]
    assert origin == [stream.name, "0", "2"]
    await eventually(lambda: stats_of(route, "delivered", "dropped"), [2, 0])


async def test_unmatched_route_takes_rest_of_stream(asynchronous, stream, clicks, target):
    await clicks.route("even").create(EVEN, queue=target.name)
    await clicks.route("shadow").create(queue=target.name, mode="shadow")
    await clicks.route("rest").create("unmatched", stream=f"{stream.name}-rest")
    rest = asynchronous.stream(f"{stream.name}-rest")
    await rest.create()

    await append(stream, 1, 2, 3)

    async def copies():
        page = await rest.read_page()
        return [(record.json()["n"], record.key) for record in page.records]

    await eventually(copies, [(1, "k"), (3, "k")])
    assert numbers(await received(asynchronous, target.name)) == [2]
    assert len((await stream.read_page()).records) == 3


async def test_changed_stream_route_takes_later_records(asynchronous, stream, clicks, target):
    route = clicks.route("tasks")
    await route.create(EVEN, queue=target.name)
    await append(stream, *range(4))
    applied = await route.apply(ODD, queue=target.name)
    await append(stream, *range(4, 8))

    assert (applied.number, applied.created) == (2, False)
    assert numbers(await received(asynchronous, target.name, 4)) == [0, 2, 5, 7]


async def test_paused_stream_route_delivers_once_resumed(asynchronous, stream, clicks, target):
    route = clicks.route("tasks")
    await route.create(queue=target.name)
    await route.pause()
    await append(stream, 1)
    state = (await route.stats()).state

    await route.resume()

    assert (state, numbers(await received(asynchronous, target.name))) == ("paused", [1])


async def test_key_of_record_is_group_of_fifo_queue(asynchronous, stream, clicks, name):
    fifo = asynchronous.queue(f"{name}-fifo")
    await fifo.create(type="fifo")
    await clicks.route("tasks").create(queue=fifo.name)

    await append(stream, 1, 2)

    messages = await received(asynchronous, fifo.name, 2)
    assert [(message.group, message.json()["n"]) for message in messages] == [("k", 1), ("k", 2)]


async def test_empty_record_reaches_queue_and_not_topic(asynchronous, stream, clicks, target):
    topic = asynchronous.topic(f"{stream.name}-topic")
    await topic.create()
    await clicks.route("queue").create(queue=target.name)
    route = clicks.route("topic")
    await route.create(topic=topic.name)

    await stream.put(b"")

    [message] = await received(asynchronous, target.name)
    assert message.text == ""
    await eventually(lambda: stats_of(route, "delivered", "dropped"), [0, 1])


async def test_stream_is_shown_as_topic(asynchronous, stream, clicks, target):
    names = [topic.name async for topic in asynchronous.topics(clicks.name)]
    await clicks.route("tasks").create(EVEN, queue=target.name)
    await append(stream, 2)
    await received(asynchronous, target.name)

    shown, stats = await clicks.config(), await clicks.stats()
    listed = [topic.name async for topic in asynchronous.topics(clicks.name)]
    assert (shown.name, shown.stream, shown.unmatched) == (clicks.name, stream.name, "drop")
    assert (shown.type_, shown.shards, shown.message_bytes_max) == ("standard", 1, 1_048_576)
    assert (stats.messages, stats.routes) == (1, 1)
    assert (names, listed) == ([], [clicks.name])


async def test_record_tells_which_routes_take_it(asynchronous, stream, clicks, target):
    await append(stream, 2)
    await clicks.route("even").create(EVEN, queue=target.name)
    await clicks.route("odd").create(ODD, queue=target.name)
    await append(stream, 4)
    await received(asynchronous, target.name)
    page = await stream.read_shard_page(0, offset=0)

    async def states(offset):
        taken = await clicks.message_routes(f"{page.stream_id}-0-{offset}")
        return [(one.route, one.state) for one in taken.routes]

    await eventually(lambda: states(1), [("even", "finished")])
    assert await states(0) == []
    assert (await clicks.message(f"{page.stream_id}-0-1")).body == body(4)


async def test_topic_of_stream_is_read_only(clicks):
    for call in (
        clicks.create(),
        clicks.change(unmatched="refuse"),
        clicks.delete(),
        clicks.publish("x"),
        clicks.request("x"),
    ):
        assert await refusal_of(call, Conflict) == ("topic_read_only",)


async def test_routes_are_deleted_with_their_stream(asynchronous, stream, clicks, target):
    route = clicks.route("tasks")
    await route.create(queue=target.name)
    await stream.delete()

    with pytest.raises(NotFound, match=f"Stream '{stream.name}' does not exist") as missing:
        await route.config()

    assert missing.value.code == "topic_not_found"
    assert await refusal_of(route.create(queue=target.name), NotFound) == ("topic_not_found",)


# ── Queues ──


async def test_queue_is_forwarded_to_another(asynchronous, queue, jobs, target):
    await send(queue, *range(4))
    route = jobs.route("work")
    made = await route.create(queue=target.name)
    await send(queue, 4, 5, headers={"tenant": "t7"}, content_type="application/json")

    messages = await received(asynchronous, target.name, 6)
    assert (made.topic, numbers(messages)) == (jobs.name, [*range(6)])
    last = messages[-1]
    assert (last.topic, last.route, last.headers) == (jobs.name, "work", {"tenant": "t7"})
    stats = await queue.stats()
    assert (stats.ready, stats.moved_out, stats.sent) == (0, 6, 6)
    await eventually(lambda: stats_of(route, "delivered", "state"), [6, "active"])


async def test_each_route_of_queue_gets_what_it_matches(asynchronous, queue, jobs, target):
    audit = asynchronous.stream(f"{queue.name}-audit")
    await audit.create()
    await jobs.route("even").create(EVEN, queue=target.name)
    await jobs.route("all").create(stream=audit.name)

    await send(queue, *range(6), group="g")

    messages = await received(asynchronous, target.name, 3)
    assert [(one.json()["n"], one.key) for one in messages] == [(0, "g"), (2, "g"), (4, "g")]

    async def copies():
        return [record.json()["n"] for record in (await audit.read_page()).records]

    await eventually(copies, [*range(6)])


async def test_unmatched_message_is_dead_letter(asynchronous, queue, jobs, target):
    await jobs.route("even").create(EVEN, queue=target.name)

    await send(queue, *range(6))

    async def counts():
        stats = await queue.stats()
        return stats.sent, stats.moved_out, stats.dead_lettered, stats.ready

    await eventually(counts, (6, 3, 3, 0))
    letters = [letter async for letter in queue.dead_letters()]
    assert sorted((letter.body["n"], letter.reason) for letter in letters) == [
        (number, "unroutable") for number in (1, 3, 5)
    ]
    assert numbers(await received(asynchronous, target.name, 3)) == [0, 2, 4]


async def test_unmatched_message_is_dropped_when_asked(asynchronous, queue, jobs, target):
    await jobs.create(unmatched="drop")
    await jobs.route("even").create(EVEN, queue=target.name)

    await send(queue, 1, 2)

    assert numbers(await received(asynchronous, target.name)) == [2]
    assert [letter async for letter in queue.dead_letters()] == []
    assert (await jobs.stats()).messages == 2


async def test_unmatched_route_takes_rest_of_queue(asynchronous, queue, jobs, target):
    await jobs.route("even").create(EVEN, queue=f"{queue.name}-even")
    await jobs.route("rest").create("unmatched", queue=target.name)

    await send(queue, 1, 2, 3)

    assert numbers(await received(asynchronous, target.name, 2)) == [1, 3]
    assert [letter async for letter in queue.dead_letters()] == []


async def test_message_stays_without_live_route(asynchronous, queue, jobs, target):
    await jobs.route("shadow").create(queue=target.name, mode="shadow")
    route = jobs.route("work")
    await route.create(queue=target.name)
    await send(queue, 1)
    await received(asynchronous, target.name)

    await route.delete()
    await send(queue, 2)

    assert numbers(await received(asynchronous, queue.name)) == [2]


async def test_paused_route_takes_messages_of_queue(asynchronous, queue, jobs, target):
    route = jobs.route("work")
    await route.create(queue=target.name)
    await route.pause()
    await send(queue, 1)

    async def counts():
        return (await queue.stats()).moved_out, (await route.stats()).state

    await eventually(counts, (1, "paused"))
    await route.resume()

    assert numbers(await received(asynchronous, target.name)) == [1]


async def test_paused_queue_keeps_its_messages(asynchronous, queue, jobs, target):
    await queue.pause()
    await jobs.route("work").create(queue=target.name)
    await send(queue, 1)
    before = (await queue.stats()).ready

    await queue.resume()

    assert (before, numbers(await received(asynchronous, target.name))) == (1, [1])


async def test_groups_of_queue_keep_their_order(asynchronous, name):
    queues = [asynchronous.queue(f"{name}-{suffix}") for suffix in ("a", "b")]
    for queue in queues:
        await queue.create(type="fifo")
    await asynchronous.topic(f"queue:{name}-a").route("work").create(queue=f"{name}-b")

    for number in range(6):
        await queues[0].send(body(number), group=f"g{number % 2}", dedup_id=str(number))

    received_numbers: list[int] = []
    while len(received_numbers) < 6:
        [message] = await received(asynchronous, f"{name}-b")
        received_numbers.append(message.json()["n"])
    assert [number for number in received_numbers if number % 2] == [1, 3, 5]
    assert [number for number in received_numbers if number % 2 == 0] == [0, 2, 4]


async def test_delayed_message_is_taken_when_due(asynchronous, backend, queue, jobs, target):
    await jobs.route("work").create(queue=target.name)

    await send(queue, 1, delay_seconds=3)
    await send(queue, 2)
    first = await received(asynchronous, target.name)
    backend.advance(3)

    assert numbers(first) == [2]
    assert numbers(await received(asynchronous, target.name)) == [1]


async def test_queue_reaches_topic_and_its_routes(asynchronous, queue, jobs, target):
    topic = asynchronous.topic(f"{queue.name}-topic")
    await topic.create()
    await topic.route("end").create(queue=target.name)
    await jobs.route("work").create(topic=topic.name)

    await send(queue, 1, priority=3)

    [message] = await received(asynchronous, target.name)
    assert (message.json(), message.topic, message.route) == (body(1), topic.name, "end")


async def test_topic_of_queue_has_settings(asynchronous, queue, jobs, target):
    await jobs.route("work").create(queue=target.name)
    shown = await jobs.config()
    changed = await jobs.change(unmatched="drop")
    reset = await jobs.change(unmatched=None)

    assert (shown.stream, shown.unmatched) == (f"topic:{jobs.name}", "refuse")
    assert (shown.message_bytes_max, shown.archive) == (10 * 1024 * 1024, False)
    assert (changed.unmatched, reset.unmatched) == ("drop", "refuse")
    assert [topic.name async for topic in asynchronous.topics(jobs.name)] == [jobs.name]
    for fields, pointer in (({"shards": 2}, "/shards"), ({"type": "fifo"}, "/type")):
        code, error = await refusal_of(jobs.apply(**fields), BadRequest)
        assert (code, error[0]) == ("validation_failed", pointer)


async def test_topic_of_queue_is_not_published_to(jobs, target):
    await jobs.route("work").create(queue=target.name)

    for call in (jobs.publish("x"), jobs.request("x")):
        assert await refusal_of(call, Conflict) == ("topic_read_only",)


async def test_topic_of_queue_requires_the_queue(asynchronous, jobs, target, name):
    missing = asynchronous.topic(f"queue:{name}-missing")
    planned = await jobs.route("work").apply(queue=target.name, dry_run=True)

    create, put = missing.create(), missing.route("work").create(queue=target.name)
    assert await refusal_of(create, NotFound) == ("queue_not_found",)
    assert await refusal_of(put, NotFound) == ("queue_not_found",)
    assert (planned.created, planned.number, planned.in_force) == (True, 1, False)
    assert await refusal_of(jobs.config(), NotFound) == ("topic_not_found",)


async def test_routes_are_deleted_with_their_queue(asynchronous, queue, jobs, target):
    route = jobs.route("work")
    await route.create(queue=target.name)
    await queue.delete()

    assert await refusal_of(route.config(), NotFound) == ("topic_not_found",)


async def test_messages_stay_when_topic_is_deleted(asynchronous, queue, jobs, target):
    await jobs.route("work").create(queue=target.name)
    await jobs.delete()

    await send(queue, 1)

    assert numbers(await received(asynchronous, queue.name)) == [1]


# ── Both ──


@pytest.mark.parametrize("kinds", ["queue", "stream", "queue queue", "stream queue", "queue topic"])
async def test_route_back_to_its_source_is_refused(asynchronous, name, kinds):
    sources = [(kind, f"{name}-{nth}") for nth, kind in enumerate(kinds.split())]
    for kind, source in sources:
        await getattr(asynchronous, kind)(source).create()
    for (kind, source), (target_kind, target) in zip(
        sources, [*sources[1:], sources[0]], strict=True
    ):
        topic = asynchronous.topic(source if kind == "topic" else f"{kind}:{source}")
        put = topic.route("next").create(target={target_kind: target})
        if (target_kind, target) == sources[0]:
            assert await refusal_of(put, BadRequest) == ("route_cycle",)
        else:
            await put


async def test_queue_cannot_have_dead_letters_of_its_routes(asynchronous, queue, jobs, target):
    put = jobs.route("work").create(queue=target.name, dead_letter_queue=queue.name)

    refusal = await refusal_of(put, BadRequest)
    assert refusal == ("validation_failed", ("/dead_letter_queue", "not_allowed"))


async def test_dead_letters_routed_back_come_to_an_end(asynchronous, queue, jobs, name):
    small, dead = (asynchronous.queue(f"{name}-{kind}") for kind in ("small", "dead"))
    await small.create(message_bytes_max=1_024)
    await dead.create()
    there, back = jobs.route("work"), asynchronous.topic(f"queue:{dead.name}").route("back")
    await there.create(queue=small.name, dead_letter_queue=dead.name)
    await back.create(queue=queue.name)

    await queue.send("x" * 2_000)

    async def counts():
        return [await stats_of(route, "dead_lettered", "dropped") for route in (there, back)]

    await eventually(counts, [[5, 0], [0, 1]])


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"topic": "stream:a"}, "/target/topic"),
        ({"topic": "queue:a"}, "/target/topic"),
        ({"queue": "route:a.b"}, "/target/queue"),
        ({"stream": "topic:a"}, "/target/stream"),
    ],
)
async def test_source_is_not_named_as_topic_in_target(clicks, target, pointer):
    code, error = await refusal_of(clicks.route("a").create(target=target), BadRequest)

    assert (code, error) == ("validation_failed", (pointer, "not_allowed"))


async def test_copy_that_target_refuses_is_dead_lettered(asynchronous, stream, clicks, name):
    small, letters = asynchronous.queue(f"{name}-small"), asynchronous.queue(f"{name}-letters")
    await small.create(message_bytes_max=1024)
    await letters.create()
    await clicks.route("tasks").create(queue=small.name, dead_letter_queue=letters.name)

    await stream.put({"text": "x" * 2000}, key="k")

    [letter] = await received(asynchronous, letters.name)
    assert (letter.key, letter.route, letter.topic) == ("k", "tasks", "")
    assert letter.dead_letter.source == f"route:{clicks.name}/tasks"
    assert letter.headers[":source_stream"] == stream.name
