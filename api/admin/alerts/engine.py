"""Alerts of a viewer, ordered by harm and grouped by kind.

    rules ─▶ candidates ─▶ without muted ones ─▶ by rank ─▶ groups by kind; those of quiet kinds apart

Every object is judged; of each kind the worst NAMED_MAX are described, and all are counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import NamedTuple

from api.admin.alerts.alert import Alert, AlertCandidate, AlertInputs, level_of
from api.admin.alerts.deployment import deployment_alerts
from api.admin.alerts.failures import job_alerts, mirror_alerts, webhook_alerts
from api.admin.alerts.groups import group_alerts
from api.admin.alerts.queues import queue_alerts
from api.admin.alerts.routes import route_alerts
from api.admin.alerts.sources import source_alerts
from api.admin.alerts.views import sink_alert, stopped_alert
from storage.domain.alerts.kinds import AlertKind, AlertSubject, Severity
from storage.domain.alerts.mutes import AlertMute, can_mute

NAMED_MAX = 10
"""Alerts of a kind that are named, the worst; the others are counted."""

MUTES_NAMED_MAX = 50
"""Muted alerts that are named, those that would be shown first."""

LABELS = {
    AlertKind.CHECK_FAILED: "failed checks",
    AlertKind.SWEEPER_MISSING: "missing sweepers",
    AlertKind.STORE_FULL: "full stores",
    AlertKind.QUEUE_FULL: "full queues that reject sends",
    AlertKind.QUEUE_EXPIRING: "queues that are losing messages",
    AlertKind.GROUP_EXPIRING: "groups that are losing records",
    AlertKind.SOURCE_FULL: "full sources that reject events",
    AlertKind.STORE_UNKNOWN_REPLICA: "unknown replicas of the store",
    AlertKind.QUEUE_STALLED: "queues without a consumer",
    AlertKind.QUEUE_PAUSED: "paused queues with messages",
    AlertKind.QUEUE_PARKED: "queues with parked groups",
    AlertKind.QUEUE_BLOCKED: "queues whose consumers acknowledge nothing",
    AlertKind.QUEUE_BEHIND: "queues falling behind",
    AlertKind.GROUP_STALLED: "groups without members",
    AlertKind.GROUP_PAUSED: "paused groups with lag",
    AlertKind.GROUP_BEHIND: "lagging groups",
    AlertKind.SOURCE_BLOCKED: "sources with waiting events",
    AlertKind.DELIVERER_MISSING: "missing deliverers",
    AlertKind.JOBS_UNSERVED: "jobs waiting for a worker",
    AlertKind.DEAD_LETTERS: "queues with new dead letters",
    AlertKind.DEAD_LETTER_QUEUE: "dead-letter queues with new messages",
    AlertKind.WEBHOOK_DISABLED: "disabled webhooks",
    AlertKind.WEBHOOK_BLOCKED: "blocked webhooks",
    AlertKind.WEBHOOK_FAILING: "failing webhooks",
    AlertKind.SOURCE_REJECTING: "sources that reject requests",
    AlertKind.ROUTE_FAILING: "failing routes of topics",
    AlertKind.ROUTE_BEHIND: "routes of topics falling behind",
    AlertKind.VIEW_STOPPED: "stopped views",
    AlertKind.VIEW_SINK_FAILING: "failing sinks of views",
    AlertKind.VIEW_SINK_BEHIND: "sinks of views falling behind",
    AlertKind.MIRROR_FAILING: "failing mirrors",
    AlertKind.MIRROR_BEHIND: "mirrors falling behind",
    AlertKind.JOB_FAILED: "failed jobs",
    AlertKind.ARCHIVE_BEHIND: "late archives",
    AlertKind.OBJECT_FAILING: "objects that a task cannot serve",
    AlertKind.PROCESS_OVERLOADED: "overloaded processes",
    AlertKind.STORE_NEARLY_FULL: "nearly full stores",
    AlertKind.STORE_COPY_MISSING: "stores that are not in sync",
    AlertKind.QUEUE_QUIET: "queues that are not used",
    AlertKind.GROUP_QUIET: "groups that are not used",
    AlertKind.DEAD_LETTERS_OLD: "queues with old dead letters",
    AlertKind.DEAD_LETTER_QUEUE_OLD: "dead-letter queues with old messages",
}
"""Name of several alerts of a kind."""

_LISTS = {
    AlertKind.QUEUE_STALLED: ("/ui/queues", {"state": "stuck"}),
    AlertKind.QUEUE_PARKED: ("/ui/queues", {"state": "parked"}),
    AlertKind.DEAD_LETTERS: ("/ui/queues", {"state": "dead"}),
    AlertKind.DEAD_LETTERS_OLD: ("/ui/queues", {"state": "dead"}),
    AlertKind.QUEUE_QUIET: ("/ui/queues", {"state": "stuck"}),
}
_OTHER_LISTS = {
    "queue": ("/ui/queues", {"sort": "-oldest"}),
    "dead": ("/ui/queues", {"sort": "-oldest"}),
    "group": ("/ui/groups", {"sort": "-lag"}),
    "webhook": ("/ui/webhooks", {}),
    "source": ("/ui/sources", {}),
    "route": ("/ui/topics", {}),
    "view": ("/ui/views", {}),
    "mirror": ("/ui/mirrors", {}),
    "job": ("/ui/system/jobs", {"state": "failed"}),
}


_UNITS = {"group": "record", "source": "event", "mirror": "record"}


class AlertGroup(NamedTuple):
    """Alerts of one kind, the worst first.

    `objects`: number of all its objects; `waiting`: messages or records of all of them.
    """

    kind: AlertKind
    alerts: Sequence[Alert]
    objects: int
    waiting: int

    @property
    def label(self) -> str:
        """Name of its alerts."""
        return LABELS[self.kind]

    @property
    def level(self) -> str:
        """Level of its alerts."""
        return level_of(self.kind)

    @property
    def unit(self) -> str:
        """Noun of what waits."""
        return _UNITS.get(self.kind.value.partition("_")[0], "message")

    @property
    def first(self) -> Alert | None:
        """Alert that has held for the longest time, of those that are named."""
        started = [alert for alert in self.alerts if alert.start]
        return min(started, key=lambda alert: alert.start.at_ms if alert.start else 0, default=None)

    @property
    def last_ms(self) -> int | None:
        """Time of the last event, of those that are named."""
        return max((alert.last_ms for alert in self.alerts if alert.last_ms), default=None)

    @property
    def page(self) -> tuple[str, dict[str, str]]:
        """Page that lists all its objects, and its parameters."""
        other = _OTHER_LISTS.get(self.kind.value.partition("_")[0], ("/ui/system", {}))
        return _LISTS.get(self.kind, other)


class MutedAlert(NamedTuple):
    """Mute, and whether an alert would be shown without it."""

    mute: AlertMute
    is_active: bool

    @property
    def label(self) -> str:
        """Name of the muted alerts."""
        return LABELS[self.mute.kind]


class AlertList(NamedTuple):
    """Alerts by harm, those of old states apart, and the mutes."""

    groups: Sequence[AlertGroup]
    quiet: Sequence[AlertGroup]
    muted: Sequence[MutedAlert]


def find_alerts(inputs: AlertInputs, mutes: Collection[AlertMute] = ()) -> AlertList:
    """Return the alerts of a viewer, the most harmful first."""
    candidates = list(_candidates(inputs))
    muted = {mute.subject for mute in mutes}
    groups = _grouped(one for one in candidates if one.finding.subject not in muted)
    return AlertList(
        groups=[group for group in groups if group.kind.severity is not Severity.QUIET],
        quiet=[group for group in groups if group.kind.severity is Severity.QUIET],
        muted=_muted(mutes, {one.finding.subject for one in candidates}),
    )


def _candidates(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    if inputs.sees_deployment:
        yield from deployment_alerts(inputs)
    for name, queue in inputs.queues.items():
        yield from queue_alerts(name, queue, inputs.now_ms)
    for name, group in inputs.groups.items():
        yield from group_alerts(name, group, inputs.now_ms)
    for source in inputs.sources:
        yield from source_alerts(source, inputs.now_ms)
    for route in inputs.routes:
        yield from route_alerts(route, inputs.now_ms)
    for stopped in inputs.stopped_views:
        yield stopped_alert(stopped)
    for sink in inputs.sinks:
        yield sink_alert(sink)
    yield from webhook_alerts(inputs)
    yield from mirror_alerts(inputs)
    yield from job_alerts(inputs)


class CandidatesOfKind(NamedTuple):
    """All candidates of one kind, and the worst of them in order."""

    kind: AlertKind
    candidates: Sequence[AlertCandidate]
    worst: Sequence[AlertCandidate]


def candidates_by_kind(candidates: Iterable[AlertCandidate]) -> list[CandidatesOfKind]:
    """Return the candidates by kind, the kind of the most harmful one first."""
    by_kind: dict[str, list[AlertCandidate]] = defaultdict(list)
    for candidate in candidates:
        by_kind[candidate.finding.subject.kind.value].append(candidate)
    kinds = [
        CandidatesOfKind(AlertKind(kind), of_kind, nsmallest(NAMED_MAX, of_kind, key=_order))
        for kind, of_kind in by_kind.items()
    ]
    return sorted(kinds, key=lambda of_kind: of_kind.worst[0].finding.rank)


def _order(candidate: AlertCandidate) -> tuple[float, str]:
    """Return the rank of a candidate among those of its kind."""
    return (-candidate.finding.harm, candidate.finding.subject.object)


def _grouped(candidates: Iterable[AlertCandidate]) -> list[AlertGroup]:
    return [
        AlertGroup(
            of_kind.kind,
            [one.describe(one.finding) for one in of_kind.worst],
            len(of_kind.candidates),
            sum(one.finding.waiting for one in of_kind.candidates),
        )
        for of_kind in candidates_by_kind(candidates)
    ]


def _muted(mutes: Collection[AlertMute], active: Collection[AlertSubject]) -> list[MutedAlert]:
    muted = [MutedAlert(mute, mute.subject in active) for mute in mutes]
    return sorted(muted, key=lambda muted: not muted.is_active)


def is_mutable(alert: Alert) -> bool:
    """Return whether a mute can name the alert's object."""
    return can_mute(alert.subject)
