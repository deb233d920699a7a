"""Topics and requests over a WebSocket: publishing, asking, replying, and the ends of waits."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from storage.domain import limits
from storage.domain.limits import Limits
from storage.domain.names import QueueName, TopicName
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.requests.token import RequestId
from storage.domain.streams.stream import StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, TopicType
from tests.conditions import PATIENCE_S
from tests.websocket_client import Frame, Server, Socket, running_server

pytestmark = pytest.mark.one_store

QUOTES, FIFO = QueueName("quotes"), QueueName("ordered")
OFFERS, BIDS = TopicName("offers"), TopicName("bids")


@pytest.fixture
async def server(storage) -> AsyncGenerator[Server]:
    await storage.catalog.put_queue(QUOTES, QueueSpec())
    await storage.catalog.put_queue(FIFO, QueueSpec(type=QueueType.FIFO))
    await storage.topics.put(OFFERS, StreamSpec())
    await storage.topics.put(BIDS, StreamSpec(topic=TopicSpec(type=TopicType.FIFO)))
    async with running_server(storage, Limits(push_tick_ms=50)) as server:
        yield server


@pytest.fixture(params=[False, True], ids=["json", "msgpack"])
async def socket(server, request) -> AsyncGenerator[Socket]:
    async with server.socket(packed=request.param) as socket:
        yield socket


def text(socket: Socket, value: str) -> str | bytes:
    """Return a body as frames of the socket's encoding have it."""
    return value.encode() if socket.packed else value


async def ask(socket: Socket, to: str = "queue:quotes", **fields) -> None:
    await socket.send_frame("request", id="q", **{"to": to, "message": {"body": "a"}} | fields)


async def answer(socket: Socket) -> Frame:
    return await socket.receive_frame("reply", "error", id="q")


def waiting_for_replies(storage) -> list[str]:
    """Return the addresses for whose replies callers wait."""
    addresses = storage.requests._wakeups._waiters
    return [address for address in addresses if not address.startswith("presence/")]


async def until_waiting(storage, number: int) -> None:
    """Wait until this many callers wait for replies."""
    async with asyncio.timeout(PATIENCE_S):
        while len(waiting_for_replies(storage)) != number:  # noqa: ASYNC110 no event tells
            await asyncio.sleep(0.02)


# ── Publishing ──


async def test_batch_is_published_to_topic(socket, storage):
    items = [{"body": "a", "subject": "offer.made", "key": "k"}, {"body": {"n": 1}}]

    first = await socket.request("publish", to="topic:offers", items=items, idempotency_key="k")
    again = await socket.request("publish", to="topic:offers", items=items, idempotency_key="k")

    assert (first["type"], first.get("failed", 0)) == ("ok", 0)
    assert [one["routes"] for one in first["results"]] == [0, 0]
    assert [one["id"] for one in again["results"]] == [one["id"] for one in first["results"]]
    assert all(one["duplicate"] for one in again["results"])


@pytest.mark.parametrize(
    ("to", "item", "code"),
    [
        ("topic:missing", {"body": "a"}, "topic_not_found"),
        ("topic:offers", {"body": "a", "subject": "a..b"}, "validation_failed"),
        ("topic:offers", {"body": "a", "dedup_id": "1"}, "validation_failed"),
        ("topic:bids", {"body": "a", "dedup_id": "1"}, "validation_failed"),
    ],
)
async def test_publish_to_topic_is_refused_as_in_rest(server, to, item, code):
    async with server.socket() as socket:
        refusal = await socket.request("publish", to=to, items=[item])

    assert refusal["problem"]["code"] == code


# ── Requests ──


@pytest.mark.parametrize("queue", ["quotes", "ordered"])
async def test_ack_with_reply_answers_request(socket, queue):
    group = {"group": "g"} if queue == "ordered" else {}
    await socket.subscribe("w", f"queue:{queue}")
    await ask(socket, f"queue:{queue}", message={"body": "a", **group})
    [message] = await socket.messages(1)

    reply = {"request": message["reply_to"], "body": text(socket, "b"), "headers": {"n": "1"}}
    acked = await socket.request(
        "ack", sub="w", receipt_handles=[message["receipt_handle"]], reply=reply
    )
    frame = await answer(socket)

    assert acked["results"] == [{"status": "ok"}]
    assert (frame["complete"], frame["timed_out"]) == (True, False)
    assert frame["request"] == message["reply_to"]
    [got] = frame["replies"]
    assert (got["body"], got["headers"]) == (text(socket, "b"), {"n": "1"})


async def test_reply_frame_answers_requests_of_topic(server, storage):
    async with server.socket() as socket:
        await ask(
            socket,
            "topic:offers",
            message={"body": "a", "subject": "s"},
            replies_max=2,
            idempotency_key="k",
        )
        token = await token_of(storage, "topics/offers", "k", replies_max=2)
        replies = [{"request": token, "body": body} for body in "bc"]
        answers = [await socket.request("reply", reply=one) for one in replies]
        late = await socket.request("reply", reply=replies[0])
        frame = await answer(socket)

    assert [one["type"] for one in answers] == ["ok", "ok"]
    assert late["problem"]["code"] == "reply_taken"
    assert [one["body"] for one in frame["replies"]] == ["b", "c"]


@pytest.mark.parametrize("own", [{}, {"dedup_id": "1"}], ids=["unique", "own"])
async def test_request_to_fifo_topic_is_published_once(server, storage, own):
    message = {"body": "a", "key": "k", **own}
    async with server.socket() as socket:
        for _ in range(2):
            await ask(socket, "topic:bids", message=message, idempotency_key="k")
            token = await token_of(storage, "topics/bids", "k")
            await socket.request("reply", reply={"request": token, "body": "b"})
            frame = await answer(socket)
            assert [one["body"] for one in frame["replies"]] == ["b"]
    [state] = await storage.record_reader.shards(BIDS.stream)
    assert state.next == 1


@pytest.mark.parametrize("field", ["delay_seconds", "ttl_seconds"])
@pytest.mark.parametrize("to", ["queue:quotes", "topic:offers"])
async def test_request_has_no_times_of_its_own(server, to, field):
    async with server.socket() as socket:
        await ask(socket, to, message={"body": "a", field: 5})
        frame = await answer(socket)
    assert frame["problem"]["errors"][0]["pointer"] == f"/message/{field}"


async def token_of(storage, resource: str, key: str, **terms) -> str:
    """Return a token whose replies are those of the request with this idempotency key."""
    terms = {"resource": resource, "idempotency_key": key, **terms}
    request: RequestId = await storage.requests.open("default", **terms)
    return request.name


async def test_repeated_reply_is_accepted_once(server):
    async with server.socket() as socket:
        await socket.subscribe("w", "queue:quotes")
        await ask(socket, replies_max=2)
        [message] = await socket.messages(1)
        reply = {"request": message["reply_to"], "body": "b"}
        for _ in range(2):
            assert (await socket.request("reply", reply=reply, idempotency_key="k"))["type"] == "ok"
        await socket.request("reply", reply=reply, idempotency_key="other")
        frame = await answer(socket)

    assert len(frame["replies"]) == 2


async def test_request_without_reply_times_out(server):
    async with server.socket() as socket:
        await ask(socket, timeout_seconds=0.05)
        frame = await answer(socket)

    assert (frame["replies"], frame["complete"], frame["timed_out"]) == ([], True, True)


async def test_refused_reply_is_reported_when_ack_has_no_id(server):
    """The message is acknowledged all the same: its reply is no longer needed."""
    async with server.socket() as socket:
        await socket.subscribe("w", "queue:quotes")
        await ask(socket)
        [message] = await socket.messages(1)
        handle, reply = message["receipt_handle"], {"request": message["reply_to"], "body": "b"}
        await socket.request("reply", reply=reply)

        await socket.send_frame("ack", sub="w", receipt_handles=[handle], reply=reply)
        error = await socket.receive_frame("error")
        again = await socket.request("extend", sub="w", receipt_handles=[handle],
                                     visibility_timeout_seconds=60)  # fmt: skip

    assert (error["problem"]["code"], error["receipt_handles"]) == ("reply_taken", [handle])
    assert again["results"][0]["status"] == "error"


async def test_delivery_is_not_settled_when_reply_fails(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("w", "queue:quotes")
        await ask(socket)
        [message] = await socket.messages(1)
        handle = message["receipt_handle"]
        forged = {"request": "x" * len(message["reply_to"]), "body": "b"}

        failed = await socket.request("ack", sub="w", receipt_handles=[handle], reply=forged)
        stats = await storage.queues.stats(QUOTES)
        done = await socket.request("ack", sub="w", receipt_handles=[handle])

    assert failed["results"][0]["error"]["code"] == "request_not_found"
    assert stats.in_flight == 1
    assert done["results"] == [{"status": "ok"}]


@pytest.mark.parametrize(
    ("type_", "fields", "pointer"),
    [
        ("request", {"to": "queue:quotes", "message": {"body": "a", "ttl_seconds": 1}}, "/message/ttl_seconds"),
        ("request", {"to": "queue:quotes", "message": {"body": "a", "delay_seconds": 0}}, "/message/delay_seconds"),
        ("request", {"to": "stream:quotes", "message": {"body": "a"}}, "/to"),
        ("request", {"to": "queue:quotes", "message": {"body": "a"}, "replies_max": 101}, "/replies_max"),
        ("reply", {"reply": {"body": "a"}}, "/request"),
        ("ack", {"sub": "w", "receipt_handles": ["a", "b"], "reply": {"request": "r", "body": "a"}}, "/reply"),
        ("ack", {"sub": "w", "receipt_handles": ["a"], "reply": {"request": "r", "text": "a"}}, "/text"),
    ],
)  # fmt: skip
async def test_invalid_frame_is_refused(server, type_, fields, pointer):
    async with server.socket() as socket:
        await socket.subscribe("w", "queue:quotes")
        refusal = await socket.request(type_, **fields)

    assert refusal["problem"]["code"] == "validation_failed"
    assert [one["pointer"] for one in refusal["problem"]["errors"]] == [pointer]


async def test_repeat_over_another_socket_gets_reply(server, storage):
    async with server.socket() as socket:
        await ask(socket, idempotency_key="k")
        await until_waiting(storage, 1)
        socket.cut()
        await until_waiting(storage, 0)

    async with server.socket() as socket:
        await ask(socket, idempotency_key="k")
        token = await token_of(storage, "queues/quotes", "k")
        await socket.request("reply", reply={"request": token, "body": "b"})
        frame = await answer(socket)

    assert [one["body"] for one in frame["replies"]] == ["b"]
    assert (await storage.queues.stats(QUOTES)).ready == 1


async def test_waiting_requests_of_socket_are_limited(server, storage, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_REQUESTS_MAX", 1)
    async with server.socket() as socket:
        await ask(socket)
        second = await socket.request("request", to="queue:quotes", message={"body": "b"})

    assert second["problem"]["code"] == "storage_busy"
    assert (await storage.queues.stats(QUOTES)).ready == 1
    await until_waiting(storage, 0)
