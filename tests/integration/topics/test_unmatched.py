"""Routes of the unmatched, and shadow routes: neither publishers nor other routes are told of a shadow."""

import pytest
from msgspec.structs import replace

from storage.domain.errors import Unroutable
from storage.domain.filters.documents import Document
from storage.domain.names import RouteName
from storage.domain.streams.topic_spec import TopicSpec, Unmatched
from storage.domain.topics.report import MessageRouteState, RouteState
from storage.domain.topics.route import UNMATCHED, RouteMode
from storage.domain.topics.topic import NewPublication
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    is_empty,
    publish,
    receive_all,
    until,
)

pytestmark = pytest.mark.one_store

SHADOW = {"mode": RouteMode.SHADOW}


async def test_unmatched_route_takes_the_rest(topics, put_route, router):
    await put_route("orders", BILLING, {"subject": "order.*"})
    await put_route("rest", CRM, UNMATCHED)

    published = await publish(topics, "order.created", "fax", "telex")

    assert [one.routes for one in published] == [1, 1, 1]
    assert await receive_all(topics, CRM, 2) == [b"fax", b"telex"]
    assert await receive_all(topics, BILLING, 1) == [b"order.created"]
    assert await is_empty(topics, CRM)


async def test_unmatched_route_follows_changes_of_others(topics, put_route, router):
    await put_route("rest", CRM, UNMATCHED)
    await put_route("orders", BILLING, {"subject": "order.*"})
    await publish(topics, "order.1")
    assert await receive_all(topics, BILLING, 1) == [b"order.1"]
    await topics.topic_routes.delete(RouteName(ORDERS, "orders"))
    await publish(topics, "order.2")
    await put_route("rest", CRM, {"subject": "nothing"})
    await publish(topics, "order.3")

    await publish(topics, "nothing")
    assert await receive_all(topics, CRM, 2) == [b"order.2", b"nothing"]


async def test_shadow_counts_and_delivers_nothing(topics, put_route, router):
    await put_route("audit", AUDIT)
    shadow = await put_route("try", BILLING, {"subject": "order.*"}, **SHADOW)

    published = await publish(topics, "order.created", "fax", "order.paid")

    async def has_counted() -> bool:
        return bool((await topics.topic_routes.get(shadow.name)).shadowed == 2)

    await until(has_counted)
    assert [one.routes for one in published] == [1, 1, 1]
    assert await is_empty(topics, BILLING)
    progress = await topics.topic_reports.progress(shadow.name)
    assert (progress.state, progress.route.delivered) == (RouteState.SHADOW, 0)
    states = [
        one.state for one in await topics.topic_reports.routes_of_message(ORDERS, published[0].id)
    ]
    assert MessageRouteState.SHADOW in states


async def test_shadow_leaves_messages_unmatched(topics, put_route, router):
    await put_route("try", BILLING, {"subject": "order.*"}, **SHADOW)
    await put_route("rest", CRM, UNMATCHED)

    published = await publish(topics, "order.created")

    assert [one.routes for one in published] == [1]
    assert await receive_all(topics, CRM, 1) == [b"order.created"]


async def test_topic_refuses_what_only_shadows_take(topics, put_route):
    refusing = TopicSpec(unmatched=Unmatched.REFUSE)
    await topics.topics.change(ORDERS, lambda spec: replace(spec, topic=refusing))
    await put_route("try", BILLING, **SHADOW)
    message = NewPublication(b"x", "order.created")

    [answer] = await topics.topics.publish(ORDERS, [message])
    assert isinstance(answer, Unroutable)

    await put_route("rest", CRM, UNMATCHED)
    [answer] = await topics.topics.publish(ORDERS, [message])
    assert answer.routes == 1


async def test_shadow_that_becomes_live_delivers_later_messages(topics, put_route, router):
    match = {"subject": "order.*"}
    await put_route("try", BILLING, match, **SHADOW)
    await publish(topics, "order.1")
    await put_route("try", BILLING, match)
    await publish(topics, "order.2")
    await put_route("try", BILLING, match, **SHADOW)
    await publish(topics, "order.3")

    assert await receive_all(topics, BILLING, 1) == [b"order.2"]
    assert await is_empty(topics, BILLING)


@pytest.mark.parametrize(
    ("subject", "failed"),
    [
        pytest.param("fax", {"orders": "subject", "try": "subject"}, id="unmatched"),
        pytest.param("order.created", {"rest": "routes"}, id="matched"),
    ],
)
async def test_explanation_names_routes_that_take_it(topics, put_route, subject, failed):
    await put_route("orders", BILLING, {"subject": "order.*"})
    await put_route("try", BILLING, {"subject": "order.*"}, **SHADOW)
    await put_route("rest", CRM, UNMATCHED)
    document = Document(subject, "", (), b"x", {})

    explained = {
        one.route.name.route: [condition.path for condition in one.failed]
        async for one in topics.topic_reports.explain(ORDERS, document)
    }

    assert {name: paths[0] for name, paths in explained.items() if paths} == failed
    if "rest" in failed:
        [one] = [one async for one in topics.topic_reports.explain(ORDERS, document, "rest")]
        assert one.failed[0].actual == ["orders"]
