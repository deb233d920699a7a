"""Names of queues and webhooks of routes to URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import RouteOwned, ValidationFailed
from storage.domain.names import QueueName, RouteName, StreamName, TopicName, WebhookName

PARTS = st.from_regex(r"[A-Za-z0-9_.-]{1,12}", fullmatch=True).filter(
    lambda part: part not in (".", "..")
)


@given(PARTS, PARTS, st.sampled_from(["default", "other"]))
def test_name_leads_back_to_its_route(topic, route, namespace):
    name = RouteName(TopicName(topic, namespace), route)

    assert name.queue.route == name
    assert name.webhook.route == name
    assert name.queue.name == name.webhook.name


@given(st.tuples(PARTS, PARTS), st.tuples(PARTS, PARTS))
def test_no_two_routes_share_a_name(first, second):
    names = [RouteName(TopicName(topic), route).endpoint for topic, route in (first, second)]

    assert (names[0] == names[1]) is (first == second)


@pytest.mark.parametrize(
    ("topic", "route", "name"),
    [
        ("orders", "crm", "route:orders.crm"),
        ("a.b", "c", "route:a.b:c"),
        ("a", "b.c", "route:a.b.c"),
    ],
)
def test_name_has_topic_and_route(topic, route, name):
    assert RouteName(TopicName(topic), route).endpoint == name


@pytest.mark.parametrize("kind", [QueueName, WebhookName])
@pytest.mark.parametrize(
    "word",
    ["route:", "route:orders", "route:a.", "route:.b", "route:a:b", "route:a.b:", "route:a b.c"],
)
def test_name_of_no_route_is_refused(kind, word):
    with pytest.raises(ValidationFailed):
        kind(word)


def test_name_of_route_is_not_free():
    with pytest.raises(RouteOwned):
        QueueName("route:orders.crm").check_is_free()
    QueueName("orders").check_is_free()


@pytest.mark.parametrize("kind", [StreamName, TopicName])
def test_other_nouns_have_no_such_name(kind):
    with pytest.raises(ValidationFailed):
        kind("route:orders.crm")
