"""Alerts of views that have stopped, and of sinks that fail or are behind."""

from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import Alert, AlertCandidate
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.views.progress import RevisionState
from storage.views.engine import StoppedView
from storage.views.sinks import SinkBehind

_CHARACTERS_MAX = 200  # of a failure


def stopped_alert(stopped: StoppedView) -> AlertCandidate:
    """Return the alert of a view with a revision that has stopped."""
    subject = AlertSubject(AlertKind.VIEW_STOPPED, stopped.view.name.name)
    return AlertCandidate(Finding(subject), partial(_describe_stopped, stopped))


def _describe_stopped(stopped: StoppedView, finding: Finding) -> Alert:
    view, revision = stopped
    name, title = view.name.name, f"View {view.name.name} has stopped"
    if revision.state is not RevisionState.ACTIVE:
        title = f"Revision {revision.number} of view {name} has stopped"
    return Alert(
        finding=finding,
        title=title,
        detail=revision.failure[:_CHARACTERS_MAX],
        path=f"/ui/views/{name}",
    )


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
