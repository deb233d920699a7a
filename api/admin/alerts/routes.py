"""Alerts of routes of topics: a target that fails, or one that is too slow."""

from collections.abc import Iterator
from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import Alert, AlertCandidate
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.timeseries.history import StateStart
from storage.domain.topics.report import RouteProgress, RouteState

_CHARACTERS_MAX = 200  # of a failure


def route_alerts(progress: RouteProgress, now_ms: int) -> Iterator[AlertCandidate]:
    """Yield the alert of a route that fails, or is a minute behind; a paused one has none."""
    kind = _kind_of(progress)
    if kind is not None:
        name = progress.route.name
        subject = AlertSubject(kind, f"{name.topic.name}:{name.route}")
        finding = Finding(subject, progress.lag_messages)
        yield AlertCandidate(finding, partial(_describe, progress, now_ms))


def _kind_of(progress: RouteProgress) -> AlertKind | None:
    if progress.state is RouteState.FAILING:
        return AlertKind.ROUTE_FAILING
    is_behind = progress.lag_ms >= limits.ROUTE_ALERT_LAG_MS
    return AlertKind.ROUTE_BEHIND if is_behind and not progress.route.spec.paused else None


def _describe(progress: RouteProgress, now_ms: int, finding: Finding) -> Alert:
    name, is_failing = progress.route.name, finding.subject.kind is AlertKind.ROUTE_FAILING
    lag = display_formats.format_duration(progress.lag_ms)
    state = "is failing" if is_failing else f"is {lag} behind"
    messages = display_formats.plural(progress.lag_messages, "message")
    failure = progress.route.failure[:_CHARACTERS_MAX]
    return Alert(
        finding=finding,
        title=f"Route {name.route} of topic {name.topic.name} {state}",
        detail=f"{messages} not yet examined. {failure}".strip(),
        path=f"/ui/topics/{name.topic.name}/routes/{name.route}",
        start=StateStart(now_ms - progress.lag_ms),
    )
