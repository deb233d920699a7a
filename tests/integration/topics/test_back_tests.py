"""Back-tests: each message of the range is evaluated once, as the match and the route take it."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import (
    JobNotFound,
    JobRefused,
    MatchInvalid,
    RouteNotFound,
    TopicNotFound,
    ValidationFailed,
)
from storage.domain.jobs import JobKind
from storage.domain.log.record_batch import Record
from storage.domain.names import TopicName
from storage.domain.streams.stream import RING_SIZE
from storage.domain.topics.back_test import BackTest, BackTestResult
from storage.domain.topics.route import UNMATCHED
from tests.integration.topics.routing import AUDIT, BILLING, CRM, ORDERS, publish

pytestmark = pytest.mark.one_store

A, B = {"subject": "a.*"}, {"subject": ["a.1", "b.*"]}


async def test_match_is_compared_with_route(topics, put_route):
    await put_route("billing", BILLING, B)
    ids = {}
    for subject in ("a.1", "a.2", "b.1", "c"):
        [published] = await publish(topics, subject)
        ids[subject] = published.id

    result = await topics.back_tests.run(ORDERS, BackTest(match=A, compare_with="billing"))

    assert (result.evaluated, result.matched, result.gained, result.lost) == (4, 2, 1, 1)
    assert result.matched_ids == [ids["a.1"], ids["a.2"]]
    assert (result.gained_ids, result.lost_ids) == ([ids["a.2"]], [ids["b.1"]])
    assert result.failed_by_path == {"subject": 2}
    assert result.complete


async def test_unmatched_is_what_no_route_took(topics, put_route):
    await publish(topics, "a.0")
    await put_route("billing", BILLING, A)
    await publish(topics, "a.1", "b.1")

    result = await topics.back_tests.run(ORDERS, BackTest(match=UNMATCHED))

    assert (result.evaluated, result.matched, result.failed_by_path) == (3, 2, {"routes": 1})


async def test_every_shard_is_evaluated(topics):
    for shard in range(3):
        for number in range(20):
            await publish(topics, f"a.{shard}", f"b.{shard}", key=f"k{number}")
        stream = await topics.catalog.fresh_stream(ORDERS.stream)
        open_shard = stream.open_shards[-1]
        middle = (open_shard.first_hash_key + min(open_shard.last_hash_key, RING_SIZE)) // 2
        await topics.streams.resharder.split(ORDERS.stream, open_shard.index, middle)

    result = await topics.back_tests.run(ORDERS, BackTest(match=A, samples_max=0))

    assert (result.evaluated, result.matched, result.complete) == (120, 60, True)
    assert result.matched_ids == []


async def test_range_is_bounded_by_time(topics):
    await publish(topics, "a.1")
    await asyncio.sleep(0.002)  # arrival times have milliseconds
    [second] = await publish(topics, "a.2")
    await asyncio.sleep(0.002)
    [third] = await publish(topics, "a.3")
    start, end = [
        (await topics.topic_reports.message(ORDERS, one.id)).arrival_ms for one in (second, third)
    ]

    test = BackTest(match=A, start_time_ms=start, end_time_ms=end)

    assert (await topics.back_tests.run(ORDERS, test)).matched_ids == [second.id]


@pytest.mark.parametrize(("messages_max", "complete"), [(2, False), (3, True), (4, True)])
async def test_result_says_if_messages_are_left_out(topics, messages_max, complete):
    await publish(topics, "a.1", "a.2", "a.3")
    result = await topics.back_tests.run(ORDERS, BackTest(match=A, messages_max=messages_max))
    assert (result.evaluated, result.complete) == (min(3, messages_max), complete)


@pytest.mark.parametrize(
    ("test", "error"),
    [
        (BackTest(match={"subjects": "a"}), MatchInvalid),
        (BackTest(compare_with="missing"), RouteNotFound),
        (BackTest(messages_max=limits.BACK_TEST_MESSAGES_MAX + 1), ValidationFailed),
        (BackTest(samples_max=-1), ValidationFailed),
    ],
    ids=str,
)
async def test_back_test_is_refused(topics, test, error):
    with pytest.raises(error):
        await topics.back_tests.run(ORDERS, test)


async def test_back_test_of_missing_topic_is_refused(topics):
    with pytest.raises(TopicNotFound):
        await topics.back_tests.run(TopicName("missing"), BackTest())


async def test_back_test_predicts_what_a_route_takes(topics, put_route):
    """A new route with the match takes the messages that a back-test counts."""
    subjects = [f"{word}.{number}" for word in "abc" for number in range(3)]
    for match in (A, B, None, [A, B]):
        tested = await topics.back_tests.run(ORDERS, BackTest(match=match))
        await put_route("crm", CRM, match)
        published = await publish(topics, *subjects)
        later = await topics.back_tests.run(ORDERS, BackTest(match=match))
        assert later.matched - tested.matched == sum(bool(one.routes) for one in published)


@given(st.integers(-5, limits.BACK_TEST_MESSAGES_MAX + 5))
def test_messages_max_has_bounds(value):
    test = BackTest(messages_max=value)
    if 0 <= value <= limits.BACK_TEST_MESSAGES_MAX:
        test.check()
        return
    with pytest.raises(ValidationFailed) as refused:
        test.check()
    assert [fault.pointer for fault in refused.value.faults] == ["/messages_max"]


async def test_expired_messages_make_the_result_incomplete(topics):
    await topics.streams.append(AUDIT, [Record(b"1"), Record(b"2"), Record(b"3")])
    submitted = await topics.back_tests.submit(TopicName("stream:audit"), BackTest())
    await topics.streams.truncate(AUDIT, 0, 2)

    [piece] = submitted.spec.pieces()
    result = await topics.back_tests.evaluate("default", submitted.spec, piece)

    assert (result.evaluated, result.complete) == (1, False)


async def test_topic_has_one_open_job(topics, put_route):
    await put_route("billing", BILLING, B)
    await publish(topics, "a.1")
    test = BackTest(match=A, compare_with="billing")

    first = await topics.back_tests.submit(ORDERS, test)
    await publish(topics, "a.2")
    repeated = await topics.back_tests.submit(ORDERS, test)
    with pytest.raises(JobRefused) as refused:
        await topics.back_tests.submit(ORDERS, BackTest(match=A))
    await put_route("billing", BILLING, A)
    with pytest.raises(JobRefused):
        await topics.back_tests.submit(ORDERS, test)
    await topics.jobs.cancel(first.job.job_id)
    later = await topics.back_tests.submit(ORDERS, test)

    assert repeated == first
    assert refused.value.facts == {"reason": "open", "job_id": first.job.job_id}
    assert (first.spec.messages, later.spec.messages) == (1, 2)


async def test_job_is_found_by_its_topic_alone(topics):
    submitted = await topics.back_tests.submit(ORDERS, BackTest(match=A))
    archiving = await topics.jobs.submit("default", JobKind.ARCHIVE, "orders", {})

    found = await topics.back_tests.get(ORDERS, submitted.job.job_id)

    assert (found, found.result) == (submitted, BackTestResult(complete=False))
    for name, job_id in (
        (TopicName("other"), submitted.job.job_id),
        (TopicName("orders", "elsewhere"), submitted.job.job_id),
        (ORDERS, archiving.job_id),
        (ORDERS, "missing"),
    ):
        with pytest.raises(JobNotFound):
            await topics.back_tests.get(name, job_id)


@pytest.mark.parametrize(
    ("test", "error"),
    [
        (BackTest(match={"subjects": "a"}), MatchInvalid),
        (BackTest(compare_with="missing"), RouteNotFound),
        (BackTest(samples_max=-1), ValidationFailed),
    ],
    ids=str,
)
async def test_job_is_refused(topics, test, error):
    with pytest.raises(error):
        await topics.back_tests.submit(ORDERS, test)
    assert await topics.jobs.open_of("default", JobKind.BACK_TEST, "orders") is None


async def test_stream_is_back_tested_in_a_job(topics):
    await topics.streams.append(AUDIT, [Record(b'{"vip": true}'), Record(b'{"vip": false}')])
    match = {"filter": {"body": {"vip": [True]}}}
    submitted = await topics.back_tests.submit(TopicName("stream:audit"), BackTest(match=match))

    [piece] = submitted.spec.pieces()
    result = await topics.back_tests.evaluate("default", submitted.spec, piece)

    assert (result.evaluated, result.matched, result.complete) == (2, 1, True)
