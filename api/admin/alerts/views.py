"""Alerts of views: a sink that fails, or for which many messages wait."""

from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import Alert, AlertCandidate
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.views.sinks import SinkBehind

_CHARACTERS_MAX = 200  # of a failure


def sink_alert(behind: SinkBehind) -> AlertCandidate:
    """Return the alert of a sink that fails or is behind."""
    view, state = behind
    kind = AlertKind.VIEW_SINK_FAILING if state.failure else AlertKind.VIEW_SINK_BEHIND
    subject = AlertSubject(kind, f"{view.name}:{state.sink}")
    return AlertCandidate(Finding(subject, state.pending), partial(_describe, behind))


def _describe(behind: SinkBehind, finding: Finding) -> Alert:
    view, state = behind
    messages = display_formats.plural(state.pending, "message")
    condition = "is failing" if state.failure else "is falling behind"
    return Alert(
        finding=finding,
        title=f"Sink {state.sink} of view {view.name} {condition}",
        detail=f"{messages} not yet sent. {state.failure[:_CHARACTERS_MAX]}".strip(),
        path=f"/ui/views/{view.name}",
    )
