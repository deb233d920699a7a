"""Requests and replies through the Python SDK."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from millstream_client import AsyncMillstream, Conflict, ItemRefused, Millstream, NoReply
from tests.contract.sdk.conftest import BOTH
from tests.contract.sdk.test_workers import running


def test_request_returns_reply_of_receiver(millstream: Millstream, name):
    queue = millstream.queue(name)
    queue.create()

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(queue.request, {"n": 1}, headers={"a": "b"})
        [message] = queue.receive(wait_seconds=20)
        millstream.reply(message.reply_to, {"n": message.json()["n"] + 1})
        message.ack()
        reply = answer.result()

    assert (reply.json(), reply.content_type) == ({"n": 2}, "application/json")
    with pytest.raises(Conflict) as refusal:
        millstream.reply(message.reply_to, "again")
    assert refusal.value.code == "reply_taken"


def test_request_without_reply_raises_no_reply(millstream: Millstream, name):
    queue = millstream.queue(name)
    queue.create()

    with pytest.raises(NoReply):
        queue.request("a", timeout_seconds=0.01)


async def test_topic_returns_replies_until_deadline(service_url, name):
    async with AsyncMillstream(service_url) as millstream:
        topic = millstream.topic(name)
        await topic.create()

        assert await topic.request("a", subject="s", replies_max=2, timeout_seconds=0.01) == []


@BOTH
@pytest.mark.parametrize(
    ("value", "replies"), [({"n": 2}, [b'{"n":2}']), (b"", [b""]), (0, [b"0"]), (None, [])]
)
async def test_worker_replies_with_value_of_handler(asynchronous, orders, value, replies):
    """None is no reply."""

    async def handle(message):
        return value

    async with running(asynchronous.queue(orders.name).worker(handle)):
        request = asyncio.to_thread(orders.request, "a", timeout_seconds=5 if replies else 0.3)
        if replies:
            assert [(await request).body] == replies
        else:
            with pytest.raises(NoReply):
                await request
    assert orders.stats().acknowledged == 1


@BOTH
async def test_failed_handler_does_not_reply(asynchronous, orders):
    """A value without a JSON form fails, too; the next attempt replies."""
    attempts = count()

    async def handle(message):
        attempt = next(attempts)
        if attempt == 0:
            raise LookupError("no page")
        return handle if attempt == 1 else "done"

    orders.change(backoff={"delays_seconds": [0]})
    async with running(asynchronous.queue(orders.name).worker(handle)):
        reply = await asyncio.to_thread(orders.request, "a")

    assert reply.text == "done"
    assert next(attempts) == 3


def test_message_replies_in_its_acknowledgement(orders):
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(orders.request, "a")
        [message] = orders.receive(wait_seconds=20)
        message.reply({"n": 1}, headers={"a": "b"})

        assert answer.result().json() == {"n": 1}
    assert answer.result().headers == {"a": "b"}
    assert orders.stats().acknowledged == 1


async def test_subscriber_replies_once(asynchronous, orders):
    """The second reply is refused, and its message acknowledged."""
    queue = asynchronous.queue(orders.name)
    async with queue.subscribe() as messages:
        asking = asyncio.create_task(asynchronous.queue(orders.name).request("a"))
        message = await anext(messages)
        await asynchronous.reply(message.reply_to, "first")
        with pytest.raises(ItemRefused) as refusal:
            await message.reply("second")

    assert (refusal.value.code, message.settled) == ("reply_taken", True)
    assert (await asking).text == "first"
    assert orders.stats().acknowledged == 1


def test_message_without_request_takes_no_reply(orders):
    orders.send("a")
    [message] = orders.receive()

    with pytest.raises(ValueError, match="reply_to"):
        message.reply("b")
