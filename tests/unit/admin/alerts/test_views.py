"""Alerts of views and their sinks."""

import pytest

from api.admin.alerts.alert import BAD, WARN
from storage.domain.alerts.kinds import AlertKind
from storage.domain.alerts.mutes import can_mute
from storage.domain.names import ViewName
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import RevisionState, ViewRevision
from storage.domain.views.sink import SinkState
from storage.domain.views.view import View, ViewInput, ViewQuery, ViewSpec
from storage.views.engine import StoppedView
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


@pytest.mark.parametrize(
    ("state", "title"),
    [
        (RevisionState.ACTIVE, "View page-clicks has stopped"),
        (RevisionState.BUILDING, "Revision 3 of view page-clicks has stopped"),
    ],
)
def test_stopped_views_are_named(state, title):
    query = ViewQuery(sql="select 1", inputs={"c": ViewInput(stream="clicks")})
    view = View(
        view_id="1",
        name=ViewName("page-clicks"),
        spec=ViewSpec(query=query),
        version=1,
        created_at_ms=1,
        changed_at_ms=1,
    )
    revision = ViewRevision(
        revision_id="r",
        view_id="1",
        number=3,
        query=query,
        plan=ViewPlan(columns=(), key=(), aggregates=()),
        stream_id="s",
        state=state,
        failure="The view would have 11 rows, more than 10.",
        is_stopped=True,
    )

    [alert] = alerts_for(stopped_views=[StoppedView(view, revision)])

    assert (alert.title, alert.detail) == (title, "The view would have 11 rows, more than 10.")
    assert (alert.subject.kind, alert.level) == (AlertKind.VIEW_STOPPED, BAD)
    assert (alert.path, can_mute(alert.subject)) == ("/ui/views/page-clicks", True)
