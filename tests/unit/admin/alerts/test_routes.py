"""Alerts of topics' routes."""

from api.admin.alerts.alert import BAD, WARN
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind
from storage.domain.alerts.mutes import can_mute
from storage.domain.names import RouteName, TopicName
from storage.domain.presence import ProcessRole
from storage.domain.topics.report import RouteProgress
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from tests.unit.admin.alerts.facts import ALL_PROCESSES, alerts_for, kinds_for, webhook


def lagging_route(name, lag_ms, failure="", *, paused=False):
    target = RouteTarget(queue="billing")
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
    return RouteProgress(route, 7, lag_ms)


def test_routes_that_fail_or_lag_are_named():
    far = limits.ROUTE_ALERT_LAG_MS
    routes = [
        lagging_route("near", far - 1),
        lagging_route("far", far),
        lagging_route("paused", far, "Queue 'billing' does not exist.", paused=True),
        lagging_route("failing", 5, "Queue 'billing' does not exist."),
    ]

    alerts = alerts_for(routes=routes)

    path = "/ui/topics/orders/routes"
    failure = "7 messages not yet examined. Queue 'billing' does not exist."
    assert [(alert.level, alert.title, alert.detail, alert.path) for alert in alerts] == [
        (BAD, "Route failing of topic orders is failing", failure, f"{path}/failing"),
        (
            WARN,
            "Route far of topic orders is 1 min behind",
            "7 messages not yet examined.",
            f"{path}/far",
        ),
    ]
    assert all(can_mute(alert.subject) for alert in alerts)


def test_topics_need_a_deliverer():
    processes = [one for one in ALL_PROCESSES if one.role is not ProcessRole.DELIVERER]

    assert kinds_for(processes=processes) == []
    assert kinds_for(processes=processes, has_topics=True) == [AlertKind.DELIVERER_MISSING]


def test_webhook_of_route_is_named_by_its_route():
    failing = webhook("route:orders.crm", source="queue:route:orders.crm", failing_since_ms=7)

    [alert] = alerts_for(webhooks=[failing])

    assert alert.title == "URL of route crm of topic orders is failing"
    assert alert.path == "/ui/webhooks/route:orders.crm"
