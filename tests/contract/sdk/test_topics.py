"""Topics and routes through the Python SDK."""

import pytest

from millstream_client import (
    AlreadyExists,
    ItemRefused,
    Millstream,
    NewPublication,
    NotFound,
    PartlyRefused,
    Topic,
)
from tests.contract.sdk.conftest import BOTH


@pytest.fixture
def topic(millstream: Millstream, name: str) -> Topic:
    """A new topic with a route for orders."""
    topic = millstream.topic(name)
    topic.create()
    topic.route("orders").create({"subject": "order.*"}, queue=f"{name}-orders")
    return topic


@BOTH
def test_publication_names_the_number_of_its_routes(topic):
    order = topic.publish({"id": 1}, subject="order.created", key="c7", headers={"tenant": "t7"})
    other = topic.publish(b"\xff", subject="refund")

    assert (order.routes, other.routes) == (1, 0)
    message = topic.message(order.id)
    assert (message.body, message.subject, message.key) == ({"id": 1}, "order.created", "c7")
    [route] = topic.message_routes(order.id).routes
    assert (route.route, route.state) == ("orders", "waiting")


@BOTH
def test_repeat_with_key_is_a_duplicate(topic):
    first, again = (topic.publish("x", subject="order.a", idempotency_key="k") for _ in range(2))

    assert (again.id, again.duplicate, again.routes) == (first.id, True, None)


@BOTH
def test_fifo_topic_takes_a_dedup_id_once(millstream, name):
    fifo = millstream.topic(name)
    fifo.create(type="fifo", dedup_scope="key")

    first, again = (fifo.publish("x", key="c7", dedup_id="d") for _ in range(2))
    [many] = fifo.publish_many([NewPublication("x", key="c8", dedup_id="d")])

    assert (again.id, again.duplicate, many.duplicate) == (first.id, True, False)
    assert fifo.message(first.id).dedup_id == "d"


@BOTH
def test_options_of_publication_are_stored(topic):
    published = topic.publish("x", delay_seconds=1.5, ttl_seconds=60, priority=3)

    message = topic.message(published.id)

    assert (message.delay_seconds, message.ttl_seconds, message.priority) == (1.5, 60, 3)


@BOTH
def test_many_publications_have_results_in_order(topic):
    published = topic.publish_many(["a", NewPublication("b", "fax")], subject="order.a")

    assert [one.routes for one in published] == [1, 0]


@BOTH
def test_refused_publication_is_raised(topic):
    topic.change(unmatched="refuse")

    with pytest.raises(ItemRefused) as refusal:
        topic.publish("x", subject="fax")
    with pytest.raises(PartlyRefused):
        topic.publish_many(["x"], subject="fax")

    assert refusal.value.code == "unroutable"


def test_explanation_has_the_conditions_that_fail(topic):
    explained = topic.explain({"total": 1}, subject="fax")

    assert explained.matches == []
    assert explained.routes[0].failed[0].actual == ["fax"]


@BOTH
def test_definitions_are_created_applied_and_changed(topic, millstream):
    route = topic.route("orders")

    again = route.create({"subject": "order.*"}, queue=f"{topic.name}-orders")
    with pytest.raises(AlreadyExists):
        route.create({"subject": "other"}, queue=f"{topic.name}-orders")
    applied = route.apply({"subject": "order.#"}, queue=f"{topic.name}-orders")
    paused, resumed = route.pause(), route.resume()
    changed = route.change(on_failure="drop")

    assert (again.created, again.number < applied.number) == (False, True)
    assert [change.pointer for change in applied.changes] == ["/match/subject"]
    assert (paused.paused, resumed.paused, changed.on_failure) == (True, False, "drop")
    assert topic.apply(dry_run=True).changes == []
    assert [one.name for one in topic.routes()] == ["orders"]
    assert [one.name for one in millstream.topics(topic.name)] == [topic.name]
    assert (topic.stats().routes, route.stats().state) == (1, "active")
    route.delete()
    topic.delete()
    with pytest.raises(NotFound):
        topic.config()


def test_route_to_url_has_secret_once(topic):
    route = topic.route("posts")

    made = route.create(url="https://shop.example/hooks")
    again = route.create(url="https://shop.example/hooks")
    applied = route.apply(target={"url": "https://shop.example/hooks", "rate": 5})

    assert made.secret.startswith("whsec_")
    assert not again.secret
    assert (applied.target.rate, applied.number) == (5, made.number)


@BOTH
def test_message_waits_for_former_revision_of_route(topic):
    published = topic.publish("x", subject="order.a")
    route = topic.route("orders")
    applied = route.apply({"subject": "order.#"}, queue=f"{topic.name}-orders")

    [former] = topic.message_routes(published.id).routes
    route.delete()
    [deleted] = topic.message_routes(published.id).routes

    assert (former.route, former.state) == ("orders", "waiting")
    assert former.number < applied.number
    assert (deleted.number, deleted.state) == (former.number, "removed")


@BOTH
async def test_topic_is_used_asynchronously(asynchronous, topic):
    published = await asynchronous.topic(topic.name).publish("x", subject="order.a")
    routes = [route.name async for route in asynchronous.topic(topic.name).routes()]

    assert (published.routes, routes) == (1, ["orders"])
