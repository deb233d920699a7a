"""Hot requests release their memory and tasks."""

import asyncio
import gc
import json
from urllib.parse import urlsplit

import httpx
import pytest

from api.http.request import FastRequest
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from tests.conditions import eventually
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

BODY = b"a" * 10_000
RECEIVE = "POST /v1/queues/orders/receive HTTP/1.1"


async def test_answered_request_is_freed_immediately(storage):
    """Its body stayed until the next garbage collection, and longer on an idle connection."""
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    async with (
        running_server(storage, Limits()) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        gc.disable()
        try:
            answers = [
                await client.post("/v1/queues/orders/messages", content=BODY) for _ in range(3)
            ]
            requests = [one for one in gc.get_objects() if isinstance(one, FastRequest)]
            left = [one for one in requests if one.body == BODY]
        finally:
            gc.enable()

    assert {answer.status_code for answer in answers} == {201}
    assert left == []


def serving_tasks() -> set[object]:
    """The tasks that serve hot requests, or wait for them."""
    return {one for one in asyncio.all_tasks() if "FastPathProtocol._serve" in repr(one.get_coro())}


async def serving_count() -> int:
    return len(serving_tasks())


async def connected(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", urlsplit(url).port)


async def send_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str
) -> str:
    """Send a request without a body; returns the response's head and reads its body."""
    writer.write(f"{head}\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n".encode())
    told = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    _, _, rest = told.partition("content-length: ")
    await reader.readexactly(int(rest.partition("\r\n")[0]) if rest else 0)
    return told


async def test_connection_has_one_task_for_hot_requests_until_it_ends(storage):
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    async with running_server(storage, Limits()) as server:
        reader, writer = await connected(server.url)
        answers, tasks = [], serving_tasks()
        for head in (RECEIVE, RECEIVE, "GET /livez HTTP/1.1", RECEIVE):
            answers.append((await send_request(reader, writer, head)).split()[1])
            tasks |= serving_tasks()
        writer.close()
        await eventually(serving_count, 0)

    assert answers == ["200"] * 4
    assert len(tasks) == 1


async def test_websocket_connection_has_no_task_for_hot_requests(storage):
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    async with running_server(storage, Limits()) as server:
        reader, writer = await connected(server.url)
        await send_request(reader, writer, RECEIVE)
        told = await send_request(
            reader,
            writer,
            "GET /v1/ws HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        )
        await eventually(serving_count, 0)
        is_open = not reader.at_eof()
        writer.close()

    assert told.startswith("http/1.1 101")
    assert is_open


async def test_large_response_reaches_slow_client_whole(storage):
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    body = "".join(map(str, range(40_000)))
    async with running_server(storage, Limits()) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await client.post("/v1/queues/orders/messages", json={"body": body})
        reader, writer = await connected(server.url)
        writer.write(f"{RECEIVE}\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n".encode() * 2)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        missing = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        told = b""
        while missing > len(told):
            told += await reader.read(min(10_000, missing - len(told)))
            await asyncio.sleep(0.001)
        following = await reader.readuntil(b"\r\n\r\n")
        writer.close()

    assert [message["body"] for message in json.loads(told)["messages"]] == [body]
    assert following.startswith(b"HTTP/1.1 200 ")
