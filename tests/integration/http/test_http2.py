"""HTTP/2 on a real server in this process: memory of requests, and the end of the server."""

import asyncio
import gc
from collections.abc import AsyncIterator

import httpx
import pytest
from h2.errors import ErrorCodes

from api.http.request import FastRequest
from api.server.http2.stream import Http2Stream
from storage.domain.limits import Limits
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from tests.http2_client import Http2Client, http2
from tests.websocket_client import Server, running_server

pytestmark = pytest.mark.one_store

BODY = b"a" * 10_000


@pytest.fixture
async def server(storage) -> AsyncIterator[Server]:
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    await storage.catalog.put_stream(StreamName("clicks"), StreamSpec(shards=1))
    async with running_server(storage, Limits()) as running:
        yield running


async def test_answered_request_is_freed_immediately(server):
    async with httpx.AsyncClient(base_url=server.url, http1=False, http2=True) as client:
        gc.collect()
        gc.disable()
        try:
            answers = [
                await client.post("/v1/queues/orders/messages", content=BODY) for _ in range(3)
            ]
            objects = gc.get_objects()
            requests = [one for one in objects if isinstance(one, FastRequest | Http2Stream)]
        finally:
            gc.enable()

    assert [(answer.status_code, answer.http_version) for answer in answers] == [
        (201, "HTTP/2")
    ] * 3
    assert requests == []


def begin_feed(connection: Http2Client) -> int:
    """Begin a feed, and wait until it has begun."""
    feed = connection.begin(b"GET", b"/v1/streams/clicks/events?follow=true")
    while not connection.answers[feed].headers:
        connection.receive()
    return feed


async def test_shutdown_drains_feeds_and_ends(server):
    with http2(server.url) as connection:
        feed = await asyncio.to_thread(begin_feed, connection)
        server.stop()
        code = await asyncio.to_thread(connection.until_closed)

        assert code == ErrorCodes.NO_ERROR
        assert connection.answers[feed].has_ended
