"""In-memory service for tests of programs: failures, time, inspection, and what it does not have.

That it behaves like the service is shown by tests/contract/sdk, whose modules run on both.
"""

import base64

import pytest

from millstream_client import (
    Limited,
    Millstream,
    NewMessage,
    OutcomeUnknown,
    Queue,
    Refused,
    Retries,
    ServerFailed,
    Topic,
    Unavailable,
)
from millstream_client.core.api.queues.receive_messages import receive_messages
from millstream_client.core.api.queues.send_messages import send_messages
from millstream_client.core.models.message_in import MessageIn
from millstream_client.core.models.receive import Receive
from millstream_client.core.models.send_messages import SendMessages
from millstream_client.testing import MemoryService

NONE = Retries(seconds=0)
QUICK = Retries(seconds=5, first_pause_s=0.001, longest_pause_s=0.001)


@pytest.fixture
def service() -> MemoryService:
    return MemoryService()


@pytest.fixture
def client(service) -> Millstream:
    made: Millstream = service.client(retries=QUICK)
    return made


@pytest.fixture
def orders(client) -> Queue:
    queue: Queue = client.queue("orders")
    queue.create()
    return queue


def test_stored_messages_are_inspected(service, orders):
    orders.send({"order": 7}, headers={"source": "web"})
    orders.send("later", delay_seconds=60)
    [message] = orders.receive()

    first, second = service.queue("orders").messages
    assert (first.json(), first.headers, first.state) == (
        {"order": 7},
        {"source": "web"},
        "in_flight",
    )
    assert (second.text, second.state, second.receive_count) == ("later", "delayed", 0)
    message.reject("never")
    assert [letter.reason for letter in service.queue("orders").dead_letters] == ["never"]


def test_stored_records_and_positions_are_inspected(service, client):
    clicks = client.stream("clicks")
    clicks.create(shards=2)
    clicks.put_many([{"page": "/"}, {"page": "/cart"}], key="ann")
    client.group("readers").create("clicks")

    records = service.stream("clicks").records
    assert [record.json()["page"] for record in records] == ["/", "/cart"]
    assert service.group("readers").positions == {0: 0, 1: 0}


def test_topics_and_routes_are_inspected(service, client, orders):
    topic = new_topic(client)
    topic.route("orders").create({"subject": "order.*"}, queue="orders")
    topic.route("later").create(queue="later")
    topic.publish({"id": 1}, subject="order.created")

    [message] = service.topic("shop").messages
    assert (message.json(), message.subject) == ({"id": 1}, "order.created")
    assert [(copy.number, copy.state) for copy in message.copies] == [
        (1, "finished"),
        (2, "waiting"),
    ]
    [copy] = service.queue("orders").messages
    assert (copy.json(), copy.subject, copy.route) == ({"id": 1}, "order.created", "orders")


def test_messages_of_topic_expire_on_their_way(service, client):
    topic = new_topic(client)
    route = topic.route("later")
    route.create(queue="later")
    topic.publish("x", ttl_seconds=60)

    service.advance(61)
    client.queue("later").create()

    assert (route.stats().dropped, service.queue("later").messages) == (1, [])
    service.advance(345_600)
    assert service.topic("shop").messages == []


def test_source_routes_are_inspected(service, client, orders):
    client.stream("clicks").create()
    client.topic("stream:clicks").route("tasks").create(queue="orders")
    client.topic("queue:orders").route("later").create({"filter": {"key": ["ann"]}}, queue="later")
    client.stream("clicks").put_many(["a", "b"], key="ann")
    orders.send("c")

    records = service.topic("stream:clicks").messages
    assert [(one.text, [copy.state for copy in one.copies]) for one in records] == [
        ("a", ["finished"]),
        ("b", ["finished"]),
    ]
    assert service.topic("queue:orders").messages == []
    assert [letter.text for letter in service.queue("orders").dead_letters] == ["a", "b", "c"]


def test_paused_route_holds_messages_of_queue(service, client, orders):
    client.queue("work").create()
    route = client.topic("queue:orders").route("all")
    route.create(queue="work")
    route.pause()
    orders.send("hello")

    before = (service.queue("orders").messages, service.queue("work").messages)
    lag = route.stats().lag_messages
    route.resume()

    assert (before, lag) == (([], []), 1)
    assert [message.text for message in service.queue("work").messages] == ["hello"]


def test_messages_depart_when_clock_is_advanced(service, client, orders):
    client.queue("later").create()
    client.topic("queue:orders").route("all").create(queue="later")
    orders.send("hello", delay_seconds=60)

    service.advance(60)

    assert [message.text for message in service.queue("later").messages] == ["hello"]


def test_clock_is_advanced_by_days(service, client, orders):
    clicks = client.stream("clicks")
    clicks.create(retention_seconds=86_400)
    orders.send("hello", delay_seconds=3_600)
    clicks.put_many(["a", "b"])

    service.advance(3_600)
    received = [message.text for message in orders.receive()]
    service.advance(86_400)
    page = clicks.read_shard_page(0, offset=0)

    assert received == ["hello"]
    assert (page.records, page.gap.first, page.gap.next, page.gap.reason) == ([], 0, 2, "expired")
    assert [(gap.first, gap.next) for gap in clicks.read_page().gaps] == []
    assert service.stream("clicks").records == []


@pytest.mark.parametrize(
    ("status", "kind"), [(503, Unavailable), (429, Limited), (500, ServerFailed), (418, Refused)]
)
def test_next_attempts_fail_without_effect(service, orders, status, kind):
    service.fail_next(status)

    with pytest.raises(kind) as refused:
        orders.with_options(retries=NONE).send("hello")

    assert refused.value.status == status
    assert service.queue("orders").messages == []
    orders.send("hello")


def test_failures_are_retried(service, orders):
    service.fail_next(503, times=2)

    orders.send("hello")

    assert len(service.queue("orders").messages) == 1


def test_lost_response_is_retried_without_duplicate(service, orders):
    service.lose_next()

    sent = orders.send("hello")

    assert sent.duplicate
    assert len(service.queue("orders").messages) == 1


def test_lost_response_of_unrepeatable_call_is_unknown(service, orders):
    orders.send("hello")
    service.lose_next()

    with pytest.raises(OutcomeUnknown):
        orders.purge()

    assert service.queue("orders").messages == []


async def test_asynchronous_client_shares_the_service(service, orders):
    async with service.async_client() as client:
        await client.queue("orders").send("hello")

    assert [message.text for message in orders.receive()] == ["hello"]


def test_generated_calls_have_bodies_in_json(client, orders):
    body = SendMessages([MessageIn(body="text"), MessageIn(body={"a": 1})])
    body.messages.append(MessageIn(body_base64=base64.b64encode(b"\xff").decode()))
    client.call(send_messages("orders", body=body))

    received = client.call(receive_messages("orders", body=Receive(messages_max=10)))

    bodies = [(message.body, message.body_base64) for message in received.messages]
    assert [body for body, _ in bodies[:2]] == ["text", {"a": 1}]
    assert bodies[2][1] == "/w=="


def new_topic(client: Millstream) -> Topic:
    topic = client.topic("shop")
    topic.create()
    return topic


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.queue("orders").consumers(),
        lambda client: list(client.queue("orders").browse(text="late")),
        lambda client: list(client.queue("orders").dead_letters("late")),
        lambda client: client.queue("orders").move("letters"),
        lambda client: client.queue("orders").redrive(per_second=1),
        lambda client: client.queue("other").create(on_poison="park_group"),
        lambda client: client.source("github").config(),
        lambda client: client.replay("again").status(),
        lambda client: new_topic(client).route("r").create(url="https://shop.example"),
        lambda client: new_topic(client).route("r").create(queue="orders", format="envelope"),
        lambda client: new_topic(client).explain("x"),
        lambda client: list(client.jobs()),
        lambda client: client.queue("x").create(dead_letters={"topic": "t", "receives_max": 1}),
    ],
    ids=[
        "consumers",
        "filter",
        "reason",
        "move",
        "slow redrive",
        "parked groups",
        "source",
        "replay",
        "route to URL",
        "transform",
        "explanation",
        "list of jobs",
        "dead letters to topic",
    ],
)
def test_rest_of_the_service_is_not_in_memory(client, orders, call):
    with pytest.raises(ServerFailed) as refused:
        call(client)

    assert (refused.value.status, refused.value.code) == (501, "not_in_memory")
    assert refused.value.detail.startswith("The in-memory service has no ")
    assert not refused.value.retryable


def test_socket_is_not_in_memory(client):
    with pytest.raises(NotImplementedError, match="no WebSocket"), client.socket():
        pass


def test_subscription_names_what_to_use_instead(client, orders):
    with pytest.raises(NotImplementedError, match="long polls"), orders.subscribe():
        pass


async def test_asynchronous_subscription_is_not_in_memory(service):
    subscription = service.async_client().stream("clicks").subscribe("earliest")

    with pytest.raises(NotImplementedError, match="long polls"):
        await subscription.__aenter__()


def test_worker_runs_on_the_service(service, orders):
    orders.send_many([NewMessage("a"), NewMessage("b")])
    texts: list[str] = []

    def handle(message):
        texts.append(message.text)
        if len(texts) == 2:
            worker.stop()

    worker = orders.worker(handle)
    worker.run(signals=False)

    assert texts == ["a", "b"]
    assert orders.stats().acknowledged == 2


def test_worker_retries_when_clock_is_advanced(service, orders):
    orders.change(backoff={"kind": "fixed", "initial_seconds": 600, "jitter": "none"})
    orders.send("hello")
    attempts: list[int] = []

    def handle(message):
        attempts.append(message.receive_count)
        if len(attempts) == 2:
            worker.stop()
            return
        service.advance(601)
        raise RuntimeError("no connection")

    worker = orders.worker(handle)
    worker.run(signals=False)

    assert attempts == [1, 2]
