"""Alerts of views' sinks."""

from api.admin.alerts.alert import BAD, WARN
from storage.domain.alerts.kinds import AlertKind
from storage.domain.alerts.mutes import can_mute
from storage.domain.names import ViewName
from storage.domain.views.sink import SinkState
from storage.views.sinks import SinkBehind
from tests.unit.admin.alerts.facts import alerts_for


def test_sinks_that_fail_or_are_behind_are_named():
    view = ViewName("page-clicks")
    sinks = [
        SinkBehind(view, SinkState(sink="stream:changes", pending=12_000)),
        SinkBehind(view, SinkState(sink="queue:alerts", pending=1, failure="It is full.")),
    ]

    alerts = {alert.subject.kind: alert for alert in alerts_for(sinks=sinks)}

    failing = alerts[AlertKind.VIEW_SINK_FAILING]
    behind = alerts[AlertKind.VIEW_SINK_BEHIND]
    assert failing.title == "Sink queue:alerts of view page-clicks is failing"
    assert failing.detail == "1 message not yet sent. It is full."
    assert behind.title == "Sink stream:changes of view page-clicks is falling behind"
    assert behind.detail == "12,000 messages not yet sent."
    assert (failing.level, behind.level, failing.path) == (BAD, WARN, "/ui/views/page-clicks")
    assert all(can_mute(alert.subject) for alert in alerts.values())
