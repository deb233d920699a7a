"""A queue over a WebSocket: credit, settlements, broken and closed sockets."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime

import msgspec
import pytest

from storage.domain.errors import StorageUnavailable
from storage.domain.limits import AUTO_EXTEND_TIMEOUT_MS_MIN, NACK_DELAY_MS_MAX, SECOND_MS, Limits
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from tests.conditions import PATIENCE_S
from tests.websocket_client import Frame, Server, running_server

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
KNOWN = Limits(push_tick_ms=50, resume_ms=60_000)


@pytest.fixture
async def server(storage) -> AsyncGenerator[Server]:
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    async with running_server(storage, KNOWN) as server:
        yield server


@pytest.fixture
async def forgetful(storage) -> AsyncGenerator[Server]:
    """A server that keeps the sessions of broken sockets briefly."""
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    async with running_server(storage, msgspec.structs.replace(KNOWN, resume_ms=600)) as server:
        yield server


async def send(storage, *bodies: bytes) -> None:
    await storage.queues.send(ORDERS, [NewMessage(body) for body in bodies])


async def counts(storage) -> tuple[int, int]:
    """Count the ready messages and those in flight."""
    stats = await storage.queues.stats(ORDERS)
    return stats.ready, stats.in_flight


async def until(storage, ready: int, in_flight: int) -> None:
    """Wait until the queue has these counts."""
    async with asyncio.timeout(PATIENCE_S):
        while await counts(storage) != (ready, in_flight):  # noqa: ASYNC110 no event tells
            await asyncio.sleep(0.02)


def handles(messages: list[Frame]) -> list[str]:
    return [message["receipt_handle"] for message in messages]


async def test_message_is_received_and_acknowledged(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")

        [message] = await socket.messages(1)
        reply = await socket.request("ack", sub="a", receipt_handles=[message["receipt_handle"]])

    assert message["body"] == "one"
    assert reply["results"] == [{"status": "ok"}]
    assert await counts(storage) == (0, 0)


# ── Settlements ──


async def test_released_message_is_redelivered_without_failure(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")
        first = await socket.messages(1)

        await socket.send_frame("release", sub="a", receipt_handles=handles(first))
        [again] = await socket.messages(1)

    assert (again["id"], again["receive_count"], again["failures"]) == (first[0]["id"], 2, 0)


@pytest.mark.parametrize(("excess", "answer"), [(0, "ok"), (1, "error")])
async def test_nack_takes_the_delay_of_the_limits_page(server, storage, excess, answer):
    await send(storage, b"one")
    seconds = NACK_DELAY_MS_MAX // SECOND_MS + excess
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        messages = await socket.messages(1)
        reply = await socket.request(
            "nack", sub="a", receipt_handles=handles(messages), delay_seconds=seconds
        )

    assert reply["type"] == answer


async def test_nacked_message_is_redelivered_after_delay(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")
        first = await socket.messages(1)

        await socket.send_frame(
            "nack",
            sub="a",
            receipt_handles=handles(first),
            delay_seconds=0.2,
            reason="busy",
            details="line 7",
        )
        await socket.expect_nothing("messages", seconds=0.1)
        [again] = await socket.messages(1)

    assert again["failures"] == 1


async def test_rejected_message_is_dead_lettered(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")
        first = await socket.messages(1)

        await socket.request(
            "reject", sub="a", receipt_handles=handles(first), reason="broken", details="line 7"
        )

    [letter], _ = await storage.dead_letters.browse(ORDERS, messages_max=10)
    assert (letter.body, letter.reason, letter.details) == (b"one", "broken", "line 7")


async def test_extension_returns_new_deadline(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=1)
        await send(storage, b"one")
        [first] = await socket.messages(1)

        reply = await socket.request(
            "extend",
            sub="a",
            receipt_handles=[first["receipt_handle"]],
            visibility_timeout_seconds=60,
        )

    assert reply["results"][0]["visible_at"] > first["visible_at"]


async def test_expired_handle_is_rejected_and_socket_stays_open(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=0.1)
        await send(storage, b"one")
        first = await socket.messages(1)
        await socket.messages(1)  # it was redelivered

        await socket.send_frame("ack", sub="a", receipt_handles=handles(first))
        refused = await socket.receive_frame("error", sub="a")
        reply = await socket.request("ack", sub="a", receipt_handles=handles(first))

    assert refused["problem"]["code"] == "receipt_handle_expired"
    assert refused["receipt_handles"] == handles(first)
    assert (reply["failed"], reply["results"][0]["status"]) == (1, "error")


async def test_ack_is_idempotent(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")
        first = await socket.messages(1)

        replies = [
            await socket.request("ack", sub="a", receipt_handles=handles(first)) for _ in range(2)
        ]

    assert [reply["failed"] for reply in replies] == [0, 0]


async def test_invalid_settlement_does_not_affect_others(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")
        first = await socket.messages(1)

        refused = await socket.request("ack", sub="a", receipt_handles=["nonsense"])
        await socket.send_frame("ack", sub="a")
        missing = await socket.receive_frame("error", sub="a")
        reply = await socket.request("ack", sub="a", receipt_handles=handles(first))

    assert refused["results"][0]["error"]["code"] == "receipt_handle_invalid"
    assert missing["problem"]["errors"][0]["pointer"] == "/receipt_handles"
    assert reply["failed"] == 0


# ── Credit ──


async def test_messages_are_limited_by_credit(server, storage):
    await send(storage, *[b"%d" % number for number in range(10)])
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", credit={"messages": 3, "bytes": 1000})
        first = await socket.messages(3)

        await socket.expect_nothing("messages")
        await socket.send_frame("credit", sub="a", messages=2, bytes=100)
        second = await socket.messages(2)
        await socket.expect_nothing("messages")

    assert (len(first), len(second)) == (3, 2)


async def test_byte_credit_can_be_overdrawn_by_large_message(server, storage):
    await send(storage, b"x" * 600, b"y" * 600, b"z")
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", credit={"messages": 100, "bytes": 1000})
        await socket.messages(2)

        await socket.expect_nothing("messages")
        await socket.send_frame("credit", sub="a", bytes=200)  # just what was overdrawn
        await socket.expect_nothing("messages")
        await socket.send_frame("credit", sub="a", bytes=1)
        [last] = await socket.messages(1)

    assert last["body"] == "z"


async def test_subscription_without_credit_receives_nothing(server, storage):
    async with server.socket() as idle, server.socket() as busy:
        await idle.subscribe("a", "queue:orders", credit={"messages": 0, "bytes": 0})
        await busy.subscribe("a", "queue:orders")
        await send(storage, b"one")

        assert len(await busy.messages(1)) == 1
        await idle.expect_nothing("messages", seconds=0.1)


# ── Leases ──


async def test_deliveries_of_live_socket_are_extended(server, storage):
    async with server.socket() as socket:
        await socket.subscribe(
            "a", "queue:orders", visibility_timeout_seconds=0.4, auto_extend=True
        )
        await send(storage, b"one")
        first = await socket.messages(1)

        await socket.expect_nothing("messages", "error", seconds=1.2)
        reply = await socket.request("ack", sub="a", receipt_handles=handles(first))

    assert reply["failed"] == 0


@pytest.mark.parametrize("lease_s", [0.4, 1, 2])
async def test_short_lease_of_live_socket_outlasts_check_that_extends_it(server, storage, lease_s):
    """Leases of one and two seconds ended before the check, and the message went to another."""
    async with server.socket() as socket:
        await socket.subscribe(
            "a", "queue:orders", visibility_timeout_seconds=lease_s, auto_extend=True
        )
        await send(storage, b"one")
        [message] = await socket.messages(1)

    leased_s = parsed(message["visible_at"]) - parsed(message["first_received_at"])
    assert leased_s >= AUTO_EXTEND_TIMEOUT_MS_MIN / SECOND_MS


def parsed(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def test_closed_socket_releases_its_messages_immediately(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await send(storage, b"one", b"two")
        await socket.messages(2)

    await until(storage, ready=2, in_flight=0)


async def test_ended_subscription_releases_its_messages_immediately(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"one")
        await socket.messages(1)

        await socket.request("unsubscribe", sub="a")

        await until(storage, ready=1, in_flight=0)
        await socket.subscribe("a", "queue:orders")
        await socket.messages(1)


async def test_disconnected_socket_keeps_its_messages_until_timeout(forgetful, storage):
    async with forgetful.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await send(storage, b"one")
        await socket.messages(1)

        socket.cut()
        await asyncio.sleep(0.2)
        counts_after_cut = await counts(storage)
        await until(storage, ready=1, in_flight=0)

    assert counts_after_cut == (0, 1)


# ── Resuming ──


async def test_session_continues_over_another_socket(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await send(storage, b"seen", b"unseen")
        frames = [await socket.receive_frame("messages")]
        while sum(len(frame["messages"]) for frame in frames) < 2:
            frames.append(await socket.receive_frame("messages"))
        socket.cut()

    async with server.socket(greet=False) as again:
        before = {"session": socket.welcome["session"], "seq": 0}
        welcome = await again.hello(resume=before)
        messages = await again.messages(2)
        request = await again.request("ack", sub="a", receipt_handles=handles(messages))
        await send(storage, b"new")
        [new] = await again.messages(1)

    assert welcome["resumed"]
    assert welcome["session"] == socket.welcome["session"]
    sent = [message for frame in frames for message in frame["messages"]]
    assert handles(messages) == handles(sent)  # the same deliveries
    assert [message["receive_count"] for message in messages] == [1, 1]
    assert request["failed"] == 0
    assert new["body"] == "new"


async def test_acknowledged_frames_are_not_sent_again(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await send(storage, b"one")
        frame = await socket.receive_frame("messages")
        socket.cut()

    async with server.socket(greet=False) as again:
        before = {"session": socket.welcome["session"], "seq": frame["seq"]}
        await again.hello(resume=before)
        await again.expect_nothing("messages")
        request = await again.request("ack", sub="a", receipt_handles=handles(frame["messages"]))

    assert request["failed"] == 0


async def test_settled_messages_are_not_sent_again(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await send(storage, b"one")
        first = await socket.messages(1)
        await socket.request("ack", sub="a", receipt_handles=handles(first))
        socket.cut()

    async with server.socket(greet=False) as again:
        await again.hello(resume={"session": socket.welcome["session"], "seq": 0})
        await again.expect_nothing("messages")


async def test_expired_session_is_not_resumed(forgetful, storage):
    async with forgetful.socket() as socket:
        await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
        await send(storage, b"one")
        await socket.messages(1)
        socket.cut()
    await until(storage, ready=1, in_flight=0)

    async with forgetful.socket(greet=False) as again:
        welcome = await again.hello(resume={"session": socket.welcome["session"], "seq": 0})

    assert not welcome["resumed"]
    assert welcome["session"] != socket.welcome["session"]


async def test_reconnecting_client_takes_session_from_half_open_socket(server, storage):
    async with server.socket() as socket, server.socket(greet=False) as again:
        await socket.subscribe("a", "queue:orders")

        welcome = await again.hello(resume={"session": socket.welcome["session"], "seq": 0})
        code = await socket.close_code()
        await send(storage, b"one")

        assert welcome["resumed"]
        assert code == 4010
        assert len(await again.messages(1)) == 1


async def test_concurrent_resumes_have_one_winner(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        socket.cut()
    resume = {"session": socket.welcome["session"], "seq": 0}

    async with server.socket(greet=False) as each_socket, server.socket(greet=False) as other:
        await asyncio.gather(
            *(each.send_frame("hello", resume=resume) for each in (each_socket, other))
        )
        await asyncio.sleep(0.1)
        await send(storage, b"one")
        ends = [asyncio.create_task(each.close_code()) for each in (each_socket, other)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)

        [loser] = [task for task in ends if task.done()]
        winner = each_socket if loser is ends[1] else other
        async with asyncio.timeout(PATIENCE_S):
            while not any(frame["type"] == "messages" for frame in winner.pending):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        for task in ends:
            task.cancel()

    assert loser.result() == 4010


async def test_session_with_too_small_buffer_restarts_without_loss(storage):
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    little = Limits(push_tick_ms=50, resume_ms=60_000, push_unconfirmed_bytes_max=10)
    async with running_server(storage, little) as server:
        async with server.socket() as socket:
            await socket.subscribe("a", "queue:orders", visibility_timeout_seconds=3600)
            for body in (b"first", b"second", b"third"):
                await send(storage, body)
                await socket.messages(1)
            socket.cut()

        async with server.socket(greet=False) as again:
            welcome = await again.hello(resume={"session": socket.welcome["session"], "seq": 0})
            await again.subscribe("a", "queue:orders")
            messages = await again.messages(3)

    assert not welcome["resumed"]
    assert [message["body"] for message in messages] == ["first", "second", "third"]


# ── The queue itself ──


async def test_deleting_queue_ends_only_its_subscriptions(server, storage):
    other = QueueName("other")
    await storage.catalog.put_queue(other, QueueSpec())
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await socket.subscribe("b", "queue:other")

        await storage.catalog.delete_queue(ORDERS)
        frame = await socket.receive_frame("error", sub="a")
        over = await socket.request("ack", sub="a", receipt_handles=["x"])
        await storage.queues.send(other, [NewMessage(b"goes on")])
        [message] = await socket.messages(1)

    assert frame["problem"]["code"] == "queue_not_found"
    assert over["problem"]["errors"][0]["pointer"] == "/sub"
    assert message["body"] == "goes on"


async def test_pause_and_resume_of_queue_are_announced(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")

        await storage.catalog.pause_queue(ORDERS, paused=True)
        paused = await socket.receive_frame("paused")
        await send(storage, b"one")
        await socket.expect_nothing("messages", seconds=0.2)
        await storage.catalog.pause_queue(ORDERS, paused=False)
        await socket.receive_frame("resumed")
        [message] = await socket.messages(1)

    assert paused["reason"] == "queue"
    assert message["body"] == "one"


async def test_message_received_during_pause_is_not_delivered(server, storage, monkeypatch):
    """A receive requested before the pause could return after the client was told of it."""
    await send(storage, b"one")
    messages = await storage.queues.receive(ORDERS)
    receive = type(storage.queues).receive
    arrives = asyncio.Event()

    async def late(*asked, **more):
        if arrives.is_set():
            return await receive(*asked, **more)
        await arrives.wait()
        return messages

    monkeypatch.setattr(type(storage.queues), "receive", late)
    async with server.socket() as socket:
        await socket.subscribe("a", "queue:orders")
        await storage.catalog.pause_queue(ORDERS, paused=True)
        await socket.receive_frame("paused")
        arrives.set()
        await socket.expect_nothing("messages", seconds=0.2)
        await storage.catalog.pause_queue(ORDERS, paused=False)
        [message] = await socket.messages(1)

    assert message["body"] == "one"


async def test_store_outage_is_announced_and_waited_for(server, storage, monkeypatch):
    receive = type(storage.queues).receive
    outage = asyncio.Event()

    async def unavailable(*_, **__):
        outage.set()
        raise StorageUnavailable("The store is away.")

    async with server.socket() as socket:
        monkeypatch.setattr(type(storage.queues), "receive", unavailable)
        await socket.subscribe("a", "queue:orders")
        paused = await socket.receive_frame("paused")
        await outage.wait()
        monkeypatch.setattr(type(storage.queues), "receive", receive)
        await send(storage, b"one")
        [message] = await socket.messages(1)
        await socket.receive_frame("resumed")

    assert paused["reason"] == "storage"
    assert message["body"] == "one"


async def test_binary_body_round_trips_in_messagepack(server, storage):
    async with server.socket(packed=True) as socket:
        await socket.subscribe("a", "queue:orders")
        await send(storage, b"\x00\xff")

        [message] = await socket.messages(1)

    assert message["body"] == b"\x00\xff"
