"""Sessions: handshake, shutdown, rejections, publishes, and random frames."""

import asyncio
import json
import random
import socket as sockets

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import ReadFrom, StreamSpec
from tests.conditions import PATIENCE_S
from tests.websocket_client import Server, Socket, running_server

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")
SOCKETS_MAX = 40
SHORT = Limits(
    hello_ms_max=300,
    push_heartbeat_ms=200,
    push_pong_ms_max=200,
    push_tick_ms=40,
    resume_ms=500,
    slow_consumer_ms=600,
    sockets_max=SOCKETS_MAX,
)


@pytest.fixture
async def server(storage):
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=1))
    async with running_server(storage, Limits(sockets_max=SOCKETS_MAX)) as server:
        yield server


@pytest.fixture
async def impatient_server(storage):
    """A server that closes silent connections within a fraction of a second."""
    async with running_server(storage, SHORT) as server:
        yield server


def address(server: Server) -> str:
    return server.url.replace("http", "ws") + "/v1/ws"


async def refusal(server: Server, **options) -> httpx.Response:
    """Open a socket that is rejected; returns the response to the upgrade."""
    with pytest.raises(InvalidStatus) as error_info:
        async with connect(address(server), **options):
            pass
    response = error_info.value.response
    assert response.body is not None
    return httpx.Response(
        response.status_code,
        headers=dict(response.headers.raw_items()),
        content=bytes(response.body),
    )


# ── Beginning ──


async def test_welcome_has_limits(impatient_server):
    async with impatient_server.socket() as socket:
        welcome = socket.welcome

    assert welcome["heartbeat_seconds"] == 0.2
    assert not welcome["resumed"]
    assert welcome["limits"]["subscriptions_max"] == 128


async def test_unknown_subprotocol_is_rejected_before_upgrade(server):
    refused = await refusal(server, subprotocols=[Subprotocol("mqtt")])

    assert refused.status_code == 400
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "subprotocol_unknown"


async def test_foreign_origin_is_rejected_before_upgrade(server):
    refused = await refusal(server, origin="https://evil.example")

    assert refused.status_code == 403
    assert refused.json()["code"] == "forbidden"


async def test_first_supported_subprotocol_is_selected(server):
    offered = [Subprotocol("base64url.bearer.x"), Subprotocol("millstream.v1.json")]
    async with connect(address(server), subprotocols=offered) as connection:
        assert connection.subprotocol == "millstream.v1.json"


async def test_client_without_subprotocol_uses_json(server):
    async with connect(address(server)) as connection:
        socket = Socket(connection)

        assert (await socket.hello())["type"] == "welcome"


async def test_plain_request_returns_426(server):
    async with httpx.AsyncClient() as client:
        response = await client.get(f"{server.url}/v1/ws")

    assert response.status_code == 426
    assert response.json()["code"] == "upgrade_required"
    assert response.headers["upgrade"] == "websocket"


async def test_other_paths_reject_upgrade(server):
    with pytest.raises(InvalidStatus):
        async with connect(address(server) + "/more"):
            pass


async def test_socket_over_process_limit_is_asked_to_retry(storage):
    async with running_server(storage, Limits(sockets_max=2)) as server:
        async with server.socket(), server.socket():
            refused = await refusal(server)
        async with server.socket():
            pass

    assert refused.status_code == 503
    assert refused.headers["retry-after"]


# ── Ending ──


async def test_silent_client_is_closed(impatient_server):
    async with impatient_server.socket(greet=False) as socket:
        assert await socket.close_code() == 4504

    assert socket.pending[-1]["reconnect"] is False


async def test_first_frame_must_be_hello(server):
    async with server.socket(greet=False) as socket:
        await socket.send_frame("ping")

        assert await socket.close_code() == 4500


async def test_second_hello_is_rejected(server):
    async with server.socket() as socket:
        await socket.send_frame("hello")

        assert await socket.close_code() == 4500


@pytest.mark.parametrize(
    "payload", ["nonsense", '{"type":', b"\x00"], ids=["text", "cut", "binary"]
)
async def test_malformed_frame_closes_socket(server, payload):
    async with server.socket() as socket:
        await socket.connection.send(payload)

        assert await socket.close_code() == 4500


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "unheard-of", "id": "x"},
        {"type": "subscribe", "id": "x"},
        {"type": "publish", "id": "x", "to": "nowhere", "items": [{}]},
        {"type": "credit", "sub": "none", "messages": -1},
        {"type": "ack", "sub": "none", "receipt_handles": ["a"]},
    ],
)
async def test_invalid_frame_is_answered_and_socket_stays_open(server, frame):
    async with server.socket() as socket:
        await socket.connection.send(json.dumps(frame))
        returned_frame = await socket.receive_frame("error")
        await socket.send_frame("ping")
        await socket.receive_frame("pong")

    assert returned_frame["problem"]["code"] == "validation_failed"
    assert returned_frame.get("id") == frame.get("id")


@pytest.mark.parametrize(
    ("frame", "refusal"),
    [
        ({"type": "ping"}, None),
        ({"type": "credit", "sub": "a", "messages": 1}, None),
        ({"type": "credit", "sub": "none", "messages": 1}, "/sub"),
        ({"type": "give_up", "sub": "a", "shards": [0]}, "/sub"),
    ],
)
async def test_frame_with_id_is_answered_with_it(server, frame, refusal):
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks")
        answer = await socket.request(frame.pop("type"), **frame)

    assert answer["type"] == ("error" if refusal else "ok")
    if refusal:
        assert answer["problem"]["errors"][0]["pointer"] == refusal


async def test_frame_without_id_is_not_answered(server):
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks")
        await socket.send_frame("credit", sub="a", messages=1)
        await socket.send_frame("ping")

        assert (await socket.next())["type"] == "pong"


async def test_one_message_can_hold_several_frames(server):
    async with server.socket() as socket:
        frames = [{"type": "ping"}, {"type": "ping"}]
        await socket.connection.send(json.dumps(frames))

        await socket.receive_frame("pong")
        await socket.receive_frame("pong")


async def test_client_that_answers_pings_stays_connected(impatient_server):
    async with impatient_server.socket() as socket:
        for _ in range(3):
            await socket.receive_frame("ping")
            await socket.send_frame("pong", seq=0)


async def test_client_that_answers_no_ping_is_closed(impatient_server):
    async with impatient_server.socket() as socket:
        code = await socket.close_code()

    assert code == 4002
    bye = socket.pending[-1]
    assert (bye["type"], bye["code"], bye["reconnect"]) == ("bye", 4002, True)


async def test_client_that_reads_nothing_is_disconnected(storage):
    """The client has stopped reading, with more pending than the kernel buffers."""
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=1))
    limits = Limits(push_tick_ms=40, slow_consumer_ms=400, resume_ms=200)
    async with running_server(storage, limits) as server:
        for _ in range(40):
            await storage.streams.append(CLICKS, [Record(b"x" * 1_000_000)])
        host, port = server.url.removeprefix("http://").split(":")
        raw = sockets.create_connection((host, int(port)))
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        async with connect(address(server), sock=raw, max_queue=1, ping_interval=None) as client:
            socket = Socket(client)
            await socket.hello()
            credit = {"messages": 1000, "bytes": 64 * 2**20}
            await socket.subscribe("a", "stream:clicks", start={"from": "earliest"}, credit=credit)
            client.transport.pause_reading()
            async with asyncio.timeout(PATIENCE_S):
                while (await metric(server, "millstream_websocket_connections")) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            client.transport.abort()


async def metric(server: Server, name: str) -> float:
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.url}/metrics")).text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name} "))


async def test_stopping_server_announces_reconnect_and_accepts_acks(storage):
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    async with (
        running_server(storage, Limits(push_tick_ms=40)) as server,
        server.socket() as socket,
    ):
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await storage.queues.send(ORDERS, [NewMessage(b"one"), NewMessage(b"two")])
        messages = await socket.messages(2)

        server.stop()
        bye = await socket.receive_frame("bye")
        handle = messages[0]["receipt_handle"]
        reply = await socket.request("ack", sub="a", receipt_handles=[handle])
        code = await socket.close_code()

    assert (bye["code"], bye["reconnect"]) == (4001, True)
    assert 0 <= bye.get("after_seconds", 0) <= 5
    assert reply["failed"] == 0
    assert code == 1012
    stats = await storage.queues.stats(ORDERS)
    assert (stats.ready, stats.in_flight) == (0, 1)  # its client may still be processing it


# ── Publishing ──


async def test_messages_are_published_and_repeat_adds_nothing(server, storage):
    async with server.socket() as socket:
        item = {"body": "hello", "headers": {"a": "b"}}
        replies = [
            await socket.request("publish", to="queue:orders", items=[item], idempotency_key="k")
            for _ in range(2)
        ]

    assert [reply["results"][0]["duplicate"] for reply in replies] == [False, True]
    [message] = await storage.queues.receive(ORDERS, messages_max=10)
    assert message.body == b"hello"
    assert message.message_id == replies[0]["results"][0]["id"]


async def test_published_records_are_answered_individually(server, storage):
    async with server.socket(packed=True) as socket:
        items = [{"data": b"\x00", "key": "k"}, {"data": "text"}]
        reply = await socket.request("publish", to="stream:clicks", items=items)

    assert [(result["shard"], result["offset"]) for result in reply["results"]] == [(0, 0), (0, 1)]
    assert reply["failed"] == 0
    read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
    assert [at.record.data for at in read.records] == [b"\x00", b"text"]


async def test_publishes_keep_their_order(server, storage):
    async with server.socket() as socket:
        for number in range(50):
            items = [{"data": str(number), "key": "k"}]
            await socket.send_frame("publish", id=str(number), to="stream:clicks", items=items)
        for number in range(50):
            await socket.receive_frame("ok", id=str(number))

    read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
    assert [int(at.record.data) for at in read.records] == list(range(50))


async def test_invalid_publish_returns_problem(server):
    async with server.socket() as socket:
        missing = await socket.request("publish", to="queue:nowhere", items=[{"body": "x"}])
        wrong = await socket.request(
            "publish", to="queue:orders", items=[{"body": 1, "delay": 2}, 3]
        )

    assert missing["problem"]["code"] == "queue_not_found"
    assert wrong["problem"]["code"] == "validation_failed"


# ── Random frames ──

_WORDS = ["type", "id", "sub", "hello", "subscribe", "credit", "ack", "queue:orders", "a", "seq"]


def _anything(chance: random.Random, depth: int = 3) -> object:
    match chance.randrange(8 if depth else 5):
        case 0:
            return None
        case 1:
            return chance.choice([True, False])
        case 2:
            return chance.choice([0, -1, 2**53, 2**70, 1.5])
        case 3 | 4:
            return chance.choice([*_WORDS, "", "\x00", "é" * 200])
        case 5 | 6:
            words = [chance.choice(_WORDS) for _ in range(chance.randrange(5))]
            return {word: _anything(chance, depth - 1) for word in words}
        case _:
            return [_anything(chance, depth - 1) for _ in range(chance.randrange(4))]


_TYPES = ["hello", "subscribe", "credit", "ack", "nack", "extend", "publish", "give_up", "pong"]


def _frame(chance: random.Random) -> object:
    """Build a random frame that is often nearly valid."""
    if chance.random() < 0.2:
        return _anything(chance)
    frame = {word: _anything(chance, 1) for word in chance.sample(_WORDS, 4)}
    return {**frame, "type": chance.choice(_TYPES), "id": "i", "sub": "a"}


@pytest.mark.parametrize("seed", range(8))
async def test_random_frames_do_no_harm(server, storage, seed, caplog):
    chance = random.Random(seed)
    for _ in range(6):
        async with server.socket() as socket:
            await socket.subscribe("a", "queue:orders")
            for _ in range(40):
                if socket.connection.close_code is not None:
                    break
                payload = json.dumps(_frame(chance))
                if chance.random() < 0.05:
                    payload = payload[: chance.randrange(len(payload))]
                try:
                    await socket.connection.send(payload)
                except Exception:
                    break
    async with server.socket() as socket:
        reply = await socket.request("publish", to="queue:orders", items=[{"body": "still there"}])

    assert reply["type"] == "ok"
    assert "request_failed" not in caplog.text
