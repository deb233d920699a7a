"""Matches as text, and routes by target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.admin.match_text import describe_match
from api.admin.route_map import TargetLink, route_map, route_view, state_of
from storage.domain import limits
from storage.domain.names import RouteName, TopicName
from storage.domain.topics.report import RouteProgress
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.targets.spread import SpreadMember

OR = [{"key": ["a"]}, {"key": ["b"]}]
TERMS = [
    ("EU", '= "EU"'),
    (None, "= null"),
    ({"prefix": "a"}, 'begins with "a"'),
    ({"suffix": "a"}, 'ends with "a"'),
    ({"wildcard": "a*b"}, 'like "a*b"'),
    ({"equals-ignore-case": "a"}, 'is, in any case, "a"'),
    ({"anything-but": ["a", "b"]}, 'is not ["a","b"]'),
    ({"cidr": "10.0.0.0/8"}, 'in "10.0.0.0/8"'),
    ({"exists": True}, "exists"),
    ({"exists": False}, "does not exist"),
    ({"numeric": [">", 0, "<=", 5]}, "> 0 and <= 5"),
]


@pytest.mark.parametrize(("term", "text"), TERMS)
def test_term_of_filter_is_text(term, text):
    [[condition]] = describe_match({"filter": {"body": {"total": [term]}}})

    assert condition == ("body.total", text)


@pytest.mark.parametrize(
    ("match", "lines"),
    [
        (None, []),
        ({}, []),
        ({"subject": "order.*"}, [[("subject", "order.*")]]),
        (
            {"subject": ["a", "b.#"], "filter": {"key": ["x", "y"]}, "where": "body.vip"},
            [[("subject", "a or b.#"), ("key", '= "x" or = "y"'), ("where", "body.vip")]],
        ),
        ([{"subject": "a"}, {"where": "body.vip"}], [[("subject", "a")], [("where", "body.vip")]]),
        (
            {"filter": {"body": {"$or": [{"a": [1]}, {"b": [2]}]}}},
            [[("body", '[{"a":[1]},{"b":[2]}]')]],
        ),
        ({"filter": {"$or": OR}}, [[("any of", '[{"key":["a"]},{"key":["b"]}]')]]),
    ],
)
def test_match_is_text_by_alternative(match, lines):
    assert describe_match(match) == lines


def progress(name, target, *, paused=False, lag_ms=0, failure=""):
    route = TopicRoute(
        name=RouteName(TopicName("orders"), name),
        stream_id="00ff00ff00ff00ff",
        number=1,
        spec=RouteSpec(target=target, paused=paused),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
        failure=failure,
    )
    return RouteProgress(route, 1 if lag_ms else 0, lag_ms)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, ("ok", "Active")),
        ({"lag_ms": limits.ROUTE_ALERT_LAG_MS - 1}, ("ok", "Active")),
        ({"lag_ms": limits.ROUTE_ALERT_LAG_MS}, ("warn", "Behind")),
        ({"lag_ms": 1, "failure": "full"}, ("bad", "Failing")),
        ({"lag_ms": limits.ROUTE_ALERT_LAG_MS, "paused": True}, ("quiet", "Paused")),
    ],
)
def test_state_of_route_has_a_level(facts, state):
    assert state_of(progress("billing", RouteTarget(queue="billing"), **facts)) == state


SPREAD = RouteTarget(spread=(SpreadMember(queue="a", weight=3), SpreadMember(stream="b")))
targets = st.sampled_from(
    [RouteTarget(queue="a"), RouteTarget(queue="b"), RouteTarget(stream="a"), SPREAD]
)


@given(st.lists(targets, max_size=12))
def test_map_has_each_route_once_at_its_target(chosen):
    routes = [route_view(progress(f"r{n}", target)) for n, target in enumerate(chosen)]

    figure = route_map(routes)

    assert sorted(route.name for one in figure for route in one.routes) == sorted(
        route.name for route in routes
    )
    assert len({one.targets for one in figure}) == len(figure)
    assert all(route.targets == one.targets for one in figure for route in one.routes)


def test_target_links_to_its_page():
    def link_of(**target) -> TargetLink:
        [link] = TargetLink.all_of(progress("crm", RouteTarget(**target)).route)
        return link

    assert link_of(queue="a").path == "/ui/queues/a"
    assert link_of(stream="a").path == "/ui/streams/a"
    assert link_of(stream="a").action == "stream:list"
    posts = link_of(url="https://shop.example/hooks?key=7")
    assert (posts.path, posts.label) == ("/ui/webhooks/route:orders.crm", "shop.example")
    assert posts.action == "webhook:list"


def test_members_of_spread_have_shares():
    links = TargetLink.all_of(progress("crm", SPREAD).route)

    assert [(one.label, one.share) for one in links] == [("queue:a", 75), ("stream:b", 25)]
