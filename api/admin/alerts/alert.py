"""Alert, and the facts that rules look at."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject, Severity
from storage.domain.alerts.rank import Finding
from storage.domain.groups.group import Group
from storage.domain.jobs import Job
from storage.domain.presence import ProcessSeen
from storage.domain.queues.policies import QueueCaps
from storage.domain.queues.queue import QueueSpec
from storage.domain.replication.replica_set import ReplicaSetStatus
from storage.domain.sources.source import InboundSource, SourceCounts
from storage.domain.streams.stream import Stream
from storage.domain.timeseries.history import NO_HISTORY, History, StateStart
from storage.domain.timeseries.samples import GroupSample, QueueSample, StreamSample, TotalSample
from storage.domain.topics.report import RouteProgress
from storage.domain.webhooks import Webhook
from storage.mirrors.engine import MirrorLag
from storage.views.engine import StoppedView
from storage.views.sinks import SinkBehind

WAITS_LONG_MS = 5 * limits.MINUTE_MS
"""Time from which a ready message, or an unread record, has waited for too long."""

QUIET_MS = limits.DAY_MS
"""Time without traffic from which an old state is quiet."""

BAD, WARN, INFO = "bad", "warn", "info"

_WARNINGS = frozenset(
    {
        AlertKind.QUEUE_PAUSED,
        AlertKind.QUEUE_PARKED,
        AlertKind.QUEUE_BEHIND,
        AlertKind.GROUP_PAUSED,
        AlertKind.GROUP_BEHIND,
        AlertKind.ROUTE_BEHIND,
        AlertKind.VIEW_SINK_BEHIND,
        AlertKind.DEAD_LETTER_QUEUE,
        AlertKind.WEBHOOK_FAILING,
        AlertKind.SOURCE_REJECTING,
        AlertKind.JOB_FAILED,
        AlertKind.ARCHIVE_BEHIND,
        AlertKind.OBJECT_FAILING,
        AlertKind.PROCESS_OVERLOADED,
        AlertKind.STORE_NEARLY_FULL,
    }
)


_EVENTS = frozenset(
    {
        AlertKind.DEAD_LETTERS,
        AlertKind.DEAD_LETTERS_OLD,
        AlertKind.JOB_FAILED,
        AlertKind.SOURCE_REJECTING,
    }
)
"""Kinds of alerts about past events; those of the others are about a state that continues."""


def level_of(kind: AlertKind) -> str:
    """Return the level at which a kind is shown."""
    if kind.severity is Severity.QUIET:
        return INFO
    return WARN if kind in _WARNINGS else BAD


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """Alert: its subject, the reason, and the page where it is resolved.

    `start`: since when it holds, None if that is not known. `last_ms`: when it happened last, None if that is not known.
    `target`: id of what the row's action changes, where that is not the object.
    """

    finding: Finding
    title: str
    detail: str
    path: str
    parameters: Mapping[str, str] = {}
    start: StateStart | None = None
    last_ms: int | None = None
    target: str = ""

    @property
    def subject(self) -> AlertSubject:
        """Kind and object of the alert."""
        return self.finding.subject

    @property
    def is_event(self) -> bool:
        """Return whether it is about past events, not about a state that continues."""
        return self.subject.kind in _EVENTS

    @property
    def level(self) -> str:
        """Level at which it is shown."""
        return level_of(self.subject.kind)


class AlertCandidate(NamedTuple):
    """Finding of a rule, and what describes it if it is shown."""

    finding: Finding
    describe: Callable[[Finding], Alert]


class QueueFacts(NamedTuple):
    """A queue: its last sample and, if it is examined, its configuration and history."""

    sample: QueueSample
    caps: QueueCaps | None = None
    spec: QueueSpec | None = None
    history: History = NO_HISTORY
    is_dead_letter_queue: bool = False

    @property
    def is_examined(self) -> bool:
        """Return whether its history was read."""
        return self.history is not NO_HISTORY

    @property
    def stored(self) -> int:
        """Messages that count towards its caps."""
        queue = self.sample
        return queue.ready + queue.delayed + queue.in_flight + queue.parked

    @property
    def is_full(self) -> bool:
        """Return whether it rejects sends."""
        return self.caps is not None and self.caps.is_reached(self.stored, self.sample.bytes_held)

    @property
    def dead_per_second(self) -> float:
        """Rate of its new dead letters."""
        queue = self.sample
        rates = (
            queue.dead_exhausted_per_second,
            queue.dead_rejected_per_second,
            queue.dead_full_per_second,
        )
        return sum(rate or 0 for rate in rates)


class GroupFacts(NamedTuple):
    """A consumer group: its last sample and, if it is examined, definitions and history."""

    sample: GroupSample
    group: Group | None = None
    stream: Stream | None = None
    stream_sample: StreamSample | None = None
    history: History = NO_HISTORY

    @property
    def is_examined(self) -> bool:
        """Return whether its history was read."""
        return self.history is not NO_HISTORY


class SourceFacts(NamedTuple):
    """A source and its counters. `failure`: why its events stay, if this process knows it."""

    source: InboundSource
    counts: SourceCounts
    failure: str = ""


class AlertInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Input of the alert rules, as of `now_ms`.

    `routes`: those with a failing target, or a reader of their own. `store_history`: of the store's memory. `stores`: of a replica set. `sees_deployment`: whether the viewer may know of what does not belong to the
    namespace.
    """

    now_ms: int
    queues: Mapping[str, QueueFacts]
    groups: Mapping[str, GroupFacts]
    total: TotalSample | None
    webhooks: Sequence[Webhook]
    sources: Sequence[SourceFacts]
    mirrors: Sequence[MirrorLag] = ()
    routes: Sequence[RouteProgress] = ()
    has_topics: bool = False
    sinks: Sequence[SinkBehind] = ()
    stopped_views: Sequence[StoppedView] = ()
    failed_jobs: Sequence[Job]
    unserved_jobs: Sequence[Job]
    processes: Sequence[ProcessSeen]
    checks: Mapping[str, str]
    sees_deployment: bool
    store_history: History = NO_HISTORY
    stores: ReplicaSetStatus | None = None
