"""Back-tests of topics, streams and queues through the Python SDK, in a call and as jobs."""

from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime

import pytest

from millstream_client import BadRequest, Conflict, Millstream, NewPublication, NotFound, Topic
from storage.settings import StorageSettings
from tests.back_test_worker import back_test_worker
from tests.contract.sdk.conftest import BOTH, Backend, Service

pytestmark = BOTH

LONG_AGO = datetime(2020, 1, 31, 12, tzinfo=UTC)
LONG_AFTER = datetime(2100, 1, 1, tzinfo=UTC)
PAID = {"filter": {"body": {"total": [{"numeric": [">", 10]}]}}}
MATCHES = [
    (None, 5, {}),
    ({}, 5, {}),
    (PAID, 2, {"body.total": 3}),
    ({"subject": "order.*"}, 3, {"subject": 2}),
    ({"subject": ["order.*", "fax"]}, 4, {"subject": 1}),
    ({"subject": "order.*", **PAID}, 2, {"body.total": 3, "subject": 2}),
    ([{"subject": "fax"}, PAID], 3, {"body.total": 2, "subject": 2}),
    ([{"subject": "fax"}, {"subject": "r", "filter": {"key": ["a"]}}], 1, {"subject": 4, "key": 2}),
    ({"filter": {"body": {"customer": {"vip": [{"exists": False}]}}}}, 4, {"body.customer.vip": 1}),
    ({"filter": {"key": ["a"], "body": {"tags": ["x"]}}}, 1, {"body.tags": 4, "key": 3}),
    ({"filter": {"headers": {"tenant": ["t7"]}}}, 1, {"headers.tenant": 4}),
    ({"filter": {"meta": {"topic": ["other"]}}}, 0, {"meta.topic": 5}),
    ({"filter": {"size": [{"numeric": ["<", 14]}]}}, 2, {"size": 3}),
    ("unmatched", 2, {"routes": 3}),
]
"""Matches, how many messages they take, and the conditions that the others fail."""

MESSAGES = [
    NewPublication({"total": 5}, "order.created", key="a"),
    NewPublication({"total": 15, "tags": ["x"]}, "order.created", key="a"),
    NewPublication({"total": 25, "customer": {"id": "c7"}}, "order.paid", headers={"tenant": "t7"}),
    NewPublication({"customer": {"id": "c7", "vip": True}}, "refund"),
    NewPublication("hello", "fax", key="b"),
]


@pytest.fixture
def worker(backend: Backend, request: pytest.FixtureRequest) -> AbstractAsyncContextManager[None]:
    """A worker of the service for a block; the in-memory one needs none."""
    if not isinstance(backend, Service):
        return nullcontext()
    settings: StorageSettings = request.getfixturevalue("service")[1]
    return back_test_worker(settings)


@pytest.fixture
def topic(millstream: Millstream, name: str) -> Topic:
    """A new topic with two shards, the route `orders`, and messages."""
    topic = millstream.topic(name)
    topic.create(shards=2)
    topic.route("orders").create({"subject": "order.*"}, queue=f"{name}-orders")
    topic.publish_many(MESSAGES)
    return topic


def counts(result):
    return result.evaluated, result.matched, result.gained, result.lost, result.complete


@pytest.mark.parametrize(("match", "matched", "failed"), MATCHES, ids=str)
def test_back_test_counts_conditions_that_fail(topic, match, matched, failed):
    result = topic.backtest(match)

    assert counts(result) == (5, matched, None, None, True)
    assert result.failed_by_path.to_dict() == failed
    assert list(result.failed_by_path.to_dict()) == sorted(
        failed, key=lambda path: (-failed[path], path)
    )
    assert (len(result.samples.matched), result.samples.gained) == (matched, [])


def test_back_test_compares_with_a_route(topic):
    result = topic.backtest(PAID | {"subject": "#"}, compare_with="orders")

    assert counts(result) == (5, 2, 0, 1, True)
    [lost] = result.samples.lost
    assert topic.message(lost).body == {"total": 5}
    assert [topic.message(one).body["total"] for one in result.samples.matched] == [15, 25]


def test_back_test_is_bounded(topic):
    ids = topic.backtest().samples.matched

    few = topic.backtest(messages_max=2)

    shards = [int(message_id.split("-")[1]) for message_id in ids]
    assert shards == sorted(shards)
    assert (counts(few), few.samples.matched) == ((2, 2, None, None, False), ids[:2])


@pytest.mark.parametrize(
    ("times", "evaluated"),
    [
        ({"start_time": LONG_AGO}, 5),
        ({"start_time": LONG_AFTER}, 0),
        ({"end_time": LONG_AGO}, 0),
        ({"start_time": LONG_AGO, "end_time": LONG_AFTER}, 5),
    ],
)
def test_back_test_is_bounded_by_times(topic, times, evaluated):
    assert counts(topic.backtest(**times)) == (evaluated, evaluated, None, None, True)


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"match": {"subjects": "a"}}, "match_invalid", "/match/subjects"),
        ({"messages_max": -1}, "validation_failed", "/messages_max"),
        ({"messages_max": 200_001}, "validation_failed", "/messages_max"),
    ],
    ids=str,
)
def test_invalid_back_test_is_refused(topic, fields, code, pointer):
    with pytest.raises(BadRequest) as refusal:
        topic.backtest(**fields)

    assert (refusal.value.code, refusal.value.errors[0].pointer) == (code, pointer)


def test_back_test_requires_topic_and_route(topic, millstream, name):
    with pytest.raises(NotFound) as no_route:
        topic.backtest(compare_with="missing")
    with pytest.raises(NotFound) as no_topic:
        millstream.topic(f"{name}-missing").backtest()

    assert (no_route.value.code, no_topic.value.code) == ("route_not_found", "topic_not_found")


def test_records_of_stream_are_evaluated(millstream, name):
    stream, topic = millstream.stream(name), millstream.topic(f"stream:{name}")
    stream.create()
    stream.put_many([{"total": 5}, {"total": 15}])
    topic.route("rest").create("unmatched", queue=f"{name}-rest")

    result = topic.backtest(PAID)
    with pytest.raises(BadRequest) as unmatched:
        topic.backtest("unmatched")
    with pytest.raises(BadRequest) as compared:
        topic.backtest(compare_with="rest")

    assert (counts(result), result.failed_by_path.to_dict()) == (
        (2, 1, None, None, True),
        {"body.total": 1},
    )
    pointers = [one.value.errors[0].pointer for one in (unmatched, compared)]
    assert pointers == ["/match", "/compare_with"]


# ── Jobs ──


async def test_job_has_the_result_of_a_call(asynchronous, topic, worker):
    shared = asynchronous.topic(topic.name)

    job = await shared.start_backtest(PAID, compare_with="orders")
    async with worker:
        last = [status async for status in job.watch(every_seconds=0.05)][-1]

    assert last.result == await shared.backtest(PAID, compare_with="orders")
    assert (last.state, last.messages, last.topic) == ("done", 5, topic.name)
    assert (last.match, last.compare_with, last.attempt) == (PAID, "orders", 1)
    assert (last.failure, last.waiting_for, last.requested_state) == ("", None, "none")
    assert (last.start_time, last.end_time) == (None, None)
    assert last.created_at <= last.started_at <= last.ended_at
    for call in (job.cancel(), job.retry()):
        with pytest.raises(Conflict) as refusal:
            await call
        assert refusal.value.code == "job_refused"


async def test_job_evaluates_messages_of_its_start(asynchronous, topic, worker):
    shared = asynchronous.topic(topic.name)
    job = await shared.start_backtest(PAID, compare_with="orders")
    await shared.publish({"total": 100})
    await shared.route("orders").change(match={"subject": "fax"})

    async with worker:
        last = [status async for status in job.watch(every_seconds=0.05)][-1]

    assert counts(last.result) == (5, 2, 0, 1, True)


async def test_failed_job_is_retried(asynchronous, topic, worker):
    job = await asynchronous.topic(topic.name).start_backtest(start_time=LONG_AGO)
    await asynchronous.topic(topic.name).delete()

    async with worker:
        last = [status async for status in job.watch(every_seconds=0.05)][-1]

    retried = await job.retry()
    await job.cancel()
    assert (last.state, last.result.complete) == ("failed", False)
    assert last.failure == f"Topic '{topic.name}' does not exist."
    assert (last.start_time, retried.state, retried.failure) == (LONG_AGO, "queued", "")


def test_topic_has_one_back_test_job_at_a_time(topic):
    job = topic.start_backtest(PAID)
    topic.publish("later")
    again = topic.start_backtest(PAID)
    with pytest.raises(Conflict) as refusal:
        topic.start_backtest()
    cancelled = job.cancel()
    repeated = job.cancel()
    last = list(job.watch())[-1]
    with pytest.raises(Conflict) as retried:
        job.retry()
    after = topic.start_backtest()

    assert (again.id, refusal.value.code, retried.value.code) == (job.id, *["job_refused"] * 2)
    assert str(refusal.value).count(job.id) == 1
    assert (cancelled.kind, cancelled.subject) == ("backtest", topic.name)
    assert (cancelled.state, repeated.state, last.state) == ("cancelled",) * 3
    assert (cancelled.failures, cancelled.attempt, cancelled.attempts_max) == (0, 0, 10)
    assert (last.messages, counts(last.result)) == (5, (0, 0, None, None, False))
    assert after.id != job.id
    after.cancel()


def test_job_is_shown_by_its_topic_alone(topic, millstream, name):
    job = topic.start_backtest()
    job.cancel()

    for missing in (topic.backtest_job("missing"), millstream.topic("other").backtest_job(job.id)):
        with pytest.raises(NotFound) as refusal:
            missing.status()
        assert refusal.value.code == "job_not_found"


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"match": {"subjects": "a"}}, "match_invalid"), ({"compare_with": "x"}, "route_not_found")],
)
def test_invalid_back_test_job_is_refused(topic, fields, code):
    with pytest.raises((BadRequest, NotFound)) as refusal:
        topic.start_backtest(**fields)

    assert refusal.value.code == code
