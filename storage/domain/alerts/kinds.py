"""Kinds of alerts, and the severity of each."""

from enum import IntEnum, StrEnum
from typing import NamedTuple


class Severity(IntEnum):
    """Harm that an alert is about, the worst first."""

    OUTAGE = 0
    """The service does not work."""

    LOSS = 1
    """Messages or records are lost, or rejected, unless something is done."""

    STOPPED = 2
    """Work is not done, or too slowly, while more arrives."""

    FAILING = 3
    """Something failed, and the rest continues."""

    QUIET = 4
    """An old state without traffic."""


class AlertKind(StrEnum):
    """Kind of an alert.

    A mute names it: a state that gets worse has another kind, which is not muted.
    """

    CHECK_FAILED = "check_failed"
    SWEEPER_MISSING = "sweeper_missing"
    STORE_FULL = "store_full"
    QUEUE_FULL = "queue_full"
    QUEUE_EXPIRING = "queue_expiring"
    GROUP_EXPIRING = "group_expiring"
    SOURCE_FULL = "source_full"
    STORE_UNKNOWN_REPLICA = "store_unknown_replica"
    QUEUE_STALLED = "queue_stalled"
    QUEUE_PAUSED = "queue_paused"
    QUEUE_PARKED = "queue_parked"
    QUEUE_BLOCKED = "queue_blocked"
    QUEUE_BEHIND = "queue_behind"
    GROUP_STALLED = "group_stalled"
    GROUP_PAUSED = "group_paused"
    GROUP_BEHIND = "group_behind"
    SOURCE_BLOCKED = "source_blocked"
    DELIVERER_MISSING = "deliverer_missing"
    JOBS_UNSERVED = "jobs_unserved"
    DEAD_LETTERS = "dead_letters"
    DEAD_LETTER_QUEUE = "dead_letter_queue"
    WEBHOOK_DISABLED = "webhook_disabled"
    WEBHOOK_BLOCKED = "webhook_blocked"
    WEBHOOK_FAILING = "webhook_failing"
    SOURCE_REJECTING = "source_rejecting"
    ROUTE_FAILING = "route_failing"
    ROUTE_BEHIND = "route_behind"
    VIEW_STOPPED = "view_stopped"
    VIEW_SINK_FAILING = "view_sink_failing"
    VIEW_SINK_BEHIND = "view_sink_behind"
    MIRROR_FAILING = "mirror_failing"
    MIRROR_BEHIND = "mirror_behind"
    JOB_FAILED = "job_failed"
    ARCHIVE_BEHIND = "archive_behind"
    OBJECT_FAILING = "object_failing"
    PROCESS_OVERLOADED = "process_overloaded"
    STORE_NEARLY_FULL = "store_nearly_full"
    STORE_COPY_MISSING = "store_copy_missing"
    QUEUE_QUIET = "queue_quiet"
    GROUP_QUIET = "group_quiet"
    DEAD_LETTERS_OLD = "dead_letters_old"
    DEAD_LETTER_QUEUE_OLD = "dead_letter_queue_old"

    @property
    def severity(self) -> Severity:
        """Severity of all alerts of the kind."""
        return _SEVERITIES[self]


_KINDS_OF = {
    Severity.OUTAGE: (AlertKind.CHECK_FAILED, AlertKind.SWEEPER_MISSING, AlertKind.STORE_FULL),
    Severity.LOSS: (
        AlertKind.QUEUE_FULL,
        AlertKind.QUEUE_EXPIRING,
        AlertKind.GROUP_EXPIRING,
        AlertKind.SOURCE_FULL,
        AlertKind.STORE_UNKNOWN_REPLICA,
    ),
    Severity.STOPPED: (
        AlertKind.QUEUE_STALLED,
        AlertKind.QUEUE_PAUSED,
        AlertKind.QUEUE_PARKED,
        AlertKind.QUEUE_BLOCKED,
        AlertKind.QUEUE_BEHIND,
        AlertKind.GROUP_STALLED,
        AlertKind.GROUP_PAUSED,
        AlertKind.GROUP_BEHIND,
        AlertKind.SOURCE_BLOCKED,
        AlertKind.ROUTE_FAILING,
        AlertKind.ROUTE_BEHIND,
        AlertKind.VIEW_STOPPED,
        AlertKind.VIEW_SINK_FAILING,
        AlertKind.VIEW_SINK_BEHIND,
        AlertKind.MIRROR_FAILING,
        AlertKind.MIRROR_BEHIND,
        AlertKind.DELIVERER_MISSING,
        AlertKind.JOBS_UNSERVED,
    ),
    Severity.QUIET: (
        AlertKind.QUEUE_QUIET,
        AlertKind.GROUP_QUIET,
        AlertKind.DEAD_LETTERS_OLD,
        AlertKind.DEAD_LETTER_QUEUE_OLD,
    ),
}
_SEVERITIES = dict.fromkeys(AlertKind, Severity.FAILING) | {
    kind: severity for severity, kinds in _KINDS_OF.items() for kind in kinds
}


class AlertSubject(NamedTuple):
    """Kind of an alert, and the object that it is about; a mute names both."""

    kind: AlertKind
    object: str
