"""Requests and replies through the Python SDK."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from millstream_client import AsyncMillstream, Conflict, Millstream, NoReply


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
