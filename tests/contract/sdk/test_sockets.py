"""Publishing, requests and replies of the Python SDK over a WebSocket, also through a broken network."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from millstream_client import (
    AsyncMillstream,
    Conflict,
    ConnectionFailed,
    ItemRefused,
    Lost,
    Millstream,
    NewMessage,
    NewPublication,
    NotFound,
    OutcomeUnknown,
    PartlyRefused,
    Queue,
    Retries,
    Topic,
)
from tests.contract.sdk.lossy_proxy import running_lossy_proxy


@pytest.fixture
def topic(millstream: Millstream, name: str) -> Topic:
    """A new topic with a route for orders."""
    topic = millstream.topic(name)
    topic.create()
    topic.route("orders").create({"subject": "order.*"}, queue=f"{name}-orders")
    return topic


async def until_sent(queue: Queue) -> None:
    """Wait until a queue has had a message."""
    for _ in range(1_000):
        if queue.stats().sent:
            return
        await asyncio.sleep(0.01)


async def test_socket_publishes_to_topic(asynchronous, topic):
    async with asynchronous.socket() as socket:
        order = await socket.publish(topic.name, {"id": 1}, subject="order.created")
        message = NewPublication(b"\xff", "refund", "c7", {"tenant": "t7"}, ttl_seconds=60)
        other = await socket.publish(topic.name, message)
        many = await socket.publish_many(topic.name, ["a", message], subject="order.a")

    assert (order.routes, other.routes, [one.routes for one in many]) == (1, 0, [1, 0])
    stored = topic.message(order.id), topic.message(other.id)
    assert (stored[0].body, stored[0].subject) == ({"id": 1}, "order.created")
    assert (stored[1].body_base64, stored[1].key, stored[1].ttl_seconds) == ("/w==", "c7", 60)


async def test_publications_of_tasks_are_answered_together(asynchronous, topic):
    async with asynchronous.socket() as socket:
        published = await asyncio.gather(
            *(socket.publish(topic.name, str(number), subject="order.a") for number in range(200))
        )

    assert [one.offset for one in published] == list(range(200))


async def test_key_publishes_once_over_socket(asynchronous, topic):
    async with asynchronous.socket() as socket:
        first, again = [
            await socket.publish(topic.name, "x", idempotency_key="k") for _ in range(2)
        ]

    assert (again.id, again.duplicate, again.routes) == (first.id, True, None)


async def test_socket_raises_refusals_of_publications(asynchronous, topic, name):
    topic.change(unmatched="refuse")

    async with asynchronous.socket() as socket:
        with pytest.raises(ItemRefused) as unroutable:
            await socket.publish(topic.name, "x", subject="fax")
        with pytest.raises(PartlyRefused):
            await socket.publish_many(topic.name, ["x"], subject="fax")
        with pytest.raises(NotFound) as missing:
            await socket.publish(f"{name}-none", "x")
        with pytest.raises(ValueError, match="2 MiB"):
            await socket.publish(topic.name, bytes(2**21))
        published = await socket.publish(topic.name, "x", subject="order.a")

    assert (unroutable.value.code, missing.value.code) == ("unroutable", "topic_not_found")
    assert published.routes == 1


async def test_large_batch_is_published_in_several_frames(asynchronous, topic):
    async with asynchronous.socket() as socket:
        published = await socket.publish_many(topic.name, [bytes(2**19)] * 5)

    assert [one.offset for one in published] == [0, 1, 2, 3, 4]


async def test_request_over_socket_gathers_replies(asynchronous, orders, name):
    async def work():
        [message] = await asynchronous.queue(orders.name).receive(wait_seconds=20)
        await socket.reply(message.reply_to, {"n": message.json()["n"] + 1}, headers={"a": "b"})
        await message.ack()
        return message

    async with asynchronous.socket() as socket:
        working = asyncio.create_task(work())
        message = NewMessage({"n": 1}, headers={"c": "d"})
        [reply] = await socket.request(f"queue:{orders.name}", message)
        request = await working
        with pytest.raises(Conflict) as refusal:
            await socket.reply(request.reply_to, "again")

    assert (reply.json(), reply.content_type, reply.headers) == (
        {"n": 2},
        "application/json",
        {"a": "b"},
    )
    assert (request.headers, refusal.value.code) == ({"c": "d"}, "reply_taken")


async def test_request_over_socket_ends_at_its_deadline(asynchronous, topic, orders):
    async with asynchronous.socket() as socket:
        of_topic = await socket.request(
            f"topic:{topic.name}", "a", subject="order.a", replies_max=2, timeout_seconds=0.01
        )
        of_queue = await socket.request(f"queue:{orders.name}", "a", timeout_seconds=0.01)

    assert (of_topic, of_queue) == ([], [])


@pytest.mark.parametrize(("to", "subject"), [("orders", ""), ("stream:x", ""), ("queue:x", "s")])
async def test_request_needs_a_queue_or_topic(asynchronous, to, subject):
    async with asynchronous.socket() as socket:
        with pytest.raises(ValueError, match=r"must start with|has no subject"):
            await socket.request(to, "a", subject=subject)


async def test_each_publication_is_added_once_in_broken_network(service_url, millstream, topic):
    """Frames whose answers are lost are sent again over the next connection."""
    with running_lossy_proxy(service_url) as proxy:
        async with AsyncMillstream(proxy.url) as client, client.socket() as socket:
            for number in range(60):
                if number % 20 == 10:
                    proxy.lose = 1
                await socket.publish(topic.name, str(number), subject="order.a")
            waiting = [
                asyncio.create_task(socket.publish(topic.name, str(number)))
                for number in range(60, 80)
            ]
            await asyncio.sleep(0)
            proxy.cut()
            await asyncio.gather(*waiting)

    texts = [message.text for message in millstream.stream(f"topic:{topic.name}").read()]
    assert texts == [str(number) for number in range(80)]


async def test_request_survives_broken_network(service_url, asynchronous, orders):
    with running_lossy_proxy(service_url) as proxy:
        async with AsyncMillstream(proxy.url) as client, client.socket() as socket:
            asking = asyncio.create_task(socket.request(f"queue:{orders.name}", "a"))
            [message] = await asynchronous.queue(orders.name).receive(wait_seconds=20)
            proxy.cut()
            await message.reply("b")
            [reply] = await asking

    assert (reply.text, orders.stats().sent) == ("b", 1)


async def test_lost_socket_fails_its_calls_in_time(service_url, orders):
    retries = Retries(seconds=0.3, first_pause_s=0.05)
    with running_lossy_proxy(service_url) as proxy:
        async with AsyncMillstream(proxy.url, retries=retries) as client, client.socket() as socket:
            asking = asyncio.create_task(socket.request(f"queue:{orders.name}", "a"))
            await until_sent(orders)
            proxy.refuse = True
            proxy.cut()
            with pytest.raises(OutcomeUnknown):
                await asking
            with pytest.raises(ConnectionFailed):
                await socket.publish("any", "x")


async def test_closed_socket_ends_its_calls(asynchronous, orders):
    async with asynchronous.socket() as socket:
        asking = asyncio.create_task(socket.request(f"queue:{orders.name}", "a"))
        await until_sent(orders)

    with pytest.raises(OutcomeUnknown):
        await asking
    with pytest.raises(Lost):
        await socket.publish("any", "x")


def test_socket_works_without_event_loop(millstream, topic, orders):
    with millstream.socket() as socket, ThreadPoolExecutor() as pool:
        published = socket.publish(topic.name, "x", subject="order.a", idempotency_key="k")
        many = socket.publish_many(topic.name, ["a", "b"], subject="fax")
        asking = pool.submit(socket.request, f"queue:{orders.name}", "a")
        [message] = orders.receive(wait_seconds=20)
        socket.reply(message.reply_to, "b")
        message.ack()
        [reply] = asking.result()

    assert (published.routes, [one.routes for one in many]) == (1, [0, 0])
    assert reply.text == "b"
    with pytest.raises(RuntimeError, match="`with`"):
        socket.publish(topic.name, "x")
