"""Replies: how many are accepted, until when, and how long they are retained (T13, T14)."""

import asyncio
from typing import Any

import pytest
from redis import Redis

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import (
    MessageTooLarge,
    ReplyTaken,
    ReplyTooLate,
    RequestNotFound,
    ValidationFailed,
)
from storage.domain.names import LogId
from storage.domain.requests.reply import NewReply
from storage.domain.requests.token import RequestId
from storage.redis.keys import replies_key
from storage.requests.engine import Requests
from tests.conditions import eventually

NAMESPACE = "default"
QUEUE = "queues/orders"


@pytest.fixture
def requests(engines):
    return engines.requests


async def open_request(requests: Requests, **terms: Any) -> RequestId:
    return await requests.open(NAMESPACE, resource=QUEUE, **terms)


async def bodies(requests: Requests, request: RequestId, wait_ms: int = 0) -> list[bytes]:
    replies = await requests.replies(request, wait_ms=wait_ms)
    return [reply.body for reply in replies.replies]


async def test_reply_completes_request_and_second_is_refused(requests, clock):
    request = await open_request(requests)
    headers = (("source", "", b"a"),)

    assert not (await requests.replies(request)).is_complete
    await requests.reply(request, NewReply(b"\x00one", headers, "text/plain"))
    with pytest.raises(ReplyTaken):
        await requests.reply(request, NewReply(b"two"))

    replies = await requests.replies(request)
    [reply] = replies.replies
    assert (reply.body, reply.headers, reply.content_type) == (b"\x00one", headers, "text/plain")
    assert reply.at_ms == clock.now_ms()
    assert (replies.is_complete, replies.is_timed_out) == (True, False)


async def test_replies_keep_order_until_limit_is_reached(requests):
    request = await open_request(requests, replies_max=3)

    for number in range(3):
        assert not (await requests.replies(request)).is_complete
        await requests.reply(request, NewReply(b"%d" % number))

    assert await bodies(requests, request) == [b"0", b"1", b"2"]
    with pytest.raises(ReplyTaken):
        await requests.reply(request, NewReply(b"3"))


async def test_repeat_with_key_adds_nothing_also_when_late(requests, clock):
    request = await open_request(requests, timeout_ms=1_000, replies_max=2)

    for _ in range(2):
        await requests.reply(request, NewReply(b"one"), key="k")
    assert await bodies(requests, request) == [b"one"]

    clock.advance(1_000)
    await requests.reply(request, NewReply(b"one"), key="k")
    with pytest.raises(ReplyTooLate):
        await requests.reply(request, NewReply(b"two"), key="l")
    assert await bodies(requests, request) == [b"one"]


async def test_request_times_out_at_deadline(requests, clock):
    request = await open_request(requests, timeout_ms=1_000)

    clock.advance(999)
    assert not (await requests.replies(request)).is_complete
    clock.advance(1)
    assert (await requests.replies(request)).is_timed_out


async def test_reading_after_deadline_closes_request_for_later_ones(requests, clock):
    """A call that was held up may send its message with a later deadline than the repeat that overtook it."""
    terms = {"timeout_ms": 2_000, "replies_max": 3, "idempotency_key": "k"}
    overtook = await open_request(requests, **terms)
    clock.advance(1_000)
    sent = await open_request(requests, **terms)
    await requests.reply(sent, NewReply(b"one"), key="one")
    clock.advance(1_000)

    complete = await requests.replies(overtook)
    await requests.reply(sent, NewReply(b"one"), key="one")  # a repeat
    with pytest.raises(ReplyTooLate):
        await requests.reply(sent, NewReply(b"two"))

    assert complete.is_complete
    assert await requests.replies(sent) == complete == await requests.replies(overtook)


async def test_closing_wakes_callers_with_later_deadlines(requests: Requests, clock):
    """Only the wake-up can end the wait in time: the periodic check comes later."""
    early = await open_request(requests, timeout_ms=1_000, idempotency_key="k")
    late = await open_request(requests, timeout_ms=60_000, idempotency_key="k")

    async def waiting() -> int:
        return requests._wakeups.count

    wait = asyncio.create_task(requests.replies(late, wait_ms=limits.WAIT_MS_MAX))
    await eventually(waiting, 1)
    clock.advance(1_000)
    await requests.replies(early)

    async with asyncio.timeout(limits.WAITER_RECHECK_MS / limits.SECOND_MS / 2):
        assert (await wait).is_timed_out


async def test_reading_at_deadline_is_final_when_clock_is_set_back(requests, clock):
    request = await open_request(requests, timeout_ms=2_000)

    clock.advance(2_000)
    assert (await requests.replies(request)).is_timed_out
    clock.advance(-1_000)
    with pytest.raises(ReplyTooLate):
        await requests.reply(request, NewReply(b"one"))

    assert (await requests.replies(request)).is_timed_out


async def test_reply_is_retained_for_repeat_of_request(requests, clock):
    """The message has the token of the first call; that of a repeat is valid for longer."""
    terms = {"timeout_ms": 2_000, "reply_ttl_ms": 5_000, "idempotency_key": "k"}
    first = await open_request(requests, **terms)
    await requests.reply(first, NewReply(b"one"))
    clock.advance(6_000)
    repeat = await open_request(requests, **terms)
    clock.advance(6_999)

    assert await bodies(requests, repeat) == [b"one"]
    with pytest.raises(RequestNotFound):
        await requests.replies(first)
    clock.advance(1)
    with pytest.raises(RequestNotFound):
        await requests.replies(repeat)


@pytest.mark.parametrize(
    ("key", "stored_ms"), [("", 7_000), ("k", 7_000 + limits.IDEMPOTENCY_WINDOW_MS)]
)
async def test_store_keeps_replies_until_last_repeat_expires(requests, redis_url, key, stored_ms):
    """The store's own clock removes them."""
    terms = {"timeout_ms": 2_000, "reply_ttl_ms": 5_000, "idempotency_key": key}
    request = await open_request(requests, **terms)
    await requests.reply(request, NewReply(b"one"))

    with Redis.from_url(redis_url) as client:
        left_ms = client.pttl(replies_key(NAMESPACE, LogId(request.nonce.hex())))

    assert stored_ms - 5_000 < left_ms <= stored_ms


async def test_shorter_terms_of_repeat_keep_replies_no_shorter(requests, clock, redis_url):
    """Whichever call's token replies, or closes the request, last."""
    long = await open_request(requests, reply_ttl_ms=limits.REPLY_TTL_MS_MAX, idempotency_key="k")
    short = await open_request(requests, timeout_ms=1_000, replies_max=2, idempotency_key="k")
    await requests.reply(long, NewReply(b"one"))
    await requests.reply(short, NewReply(b"two"))
    clock.advance(1_000)
    await requests.replies(short)

    with Redis.from_url(redis_url) as client:
        left_ms = client.pttl(replies_key(NAMESPACE, LogId(long.nonce.hex())))

    assert left_ms > limits.REPLY_TTL_MS_MAX


async def test_reply_is_retained_until_ttl_after_deadline(requests, clock):
    request = await open_request(requests, timeout_ms=2_000, reply_ttl_ms=5_000)
    await requests.reply(request, NewReply(b"one"))

    clock.advance(6_999)
    assert await bodies(requests, request) == [b"one"]
    clock.advance(1)
    with pytest.raises(RequestNotFound):
        await requests.replies(request)


async def test_repeated_open_with_key_waits_for_same_reply(requests, clock):
    first = await open_request(requests, idempotency_key="k")
    clock.advance(5_000)
    again = await open_request(requests, idempotency_key="k")
    other = await requests.open(NAMESPACE, resource="queues/other", idempotency_key="k")

    await requests.reply(first, NewReply(b"one"))

    assert await bodies(requests, again) == [b"one"]
    assert await bodies(requests, other) == []


async def test_foreign_request_is_not_found(requests):
    request = await open_request(requests)
    foreign = RequestId(request.name, "other")

    with pytest.raises(RequestNotFound):
        await requests.reply(foreign, NewReply(b"one"))
    with pytest.raises(RequestNotFound):
        await requests.replies(foreign)


@pytest.mark.parametrize(
    "terms",
    [
        {"timeout_ms": 0},
        {"timeout_ms": limits.REQUEST_TIMEOUT_MS_MAX + 1},
        {"replies_max": 0},
        {"replies_max": limits.REPLIES_MAX + 1},
        {"reply_ttl_ms": 999},
        {"reply_ttl_ms": limits.REPLY_TTL_MS_MAX + 1},
    ],
    ids=str,
)
async def test_terms_beyond_limits_are_refused(requests, terms):
    with pytest.raises(ValidationFailed):
        await open_request(requests, **terms)


def test_reply_beyond_limit_is_refused():
    NewReply(bytes(limits.REPLY_BYTES_MAX))
    with pytest.raises(MessageTooLarge):
        NewReply(bytes(limits.REPLY_BYTES_MAX), (("a", "", b"b"),))


async def test_reply_through_other_process_wakes_all_callers(storage, settings):
    """Only the wake-up can end the wait in time: the periodic check comes later."""
    async with open_storage(settings) as other:
        request = await open_request(storage.requests)

        async def waiting() -> int:
            return sum(engine._wakeups.count for engine in (storage.requests, other.requests))

        waits = [
            asyncio.create_task(bodies(engine, request, limits.WAIT_MS_MAX))
            for engine in (storage.requests, storage.requests, other.requests)
        ]
        await eventually(waiting, 3)
        await other.requests.reply(request, NewReply(b"one"))

        async with asyncio.timeout(limits.WAITER_RECHECK_MS / limits.SECOND_MS / 2):
            assert await asyncio.gather(*waits) == [[b"one"]] * 3
