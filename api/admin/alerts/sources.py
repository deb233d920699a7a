"""Alerts of sources: events that wait for their target, requests that are rejected."""

from collections.abc import Iterator
from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import Alert, AlertCandidate, SourceFacts
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.sources.source import SourceCounts
from storage.domain.timeseries.history import StateStart

PAUSED = "paused"
"""Target of an alert whose source can be resumed."""

_FULL = 0.98  # of an outbox: larger events are rejected before it is full
_REJECTED_MS = limits.DAY_MS  # after which rejected requests are old


def source_alerts(facts: SourceFacts, now_ms: int) -> Iterator[AlertCandidate]:
    """Yield the alert of a source, the worst of its states."""
    kind = _kind_of(facts.counts, now_ms)
    if kind is not None:
        subject = AlertSubject(kind, facts.source.name.name)
        describe = partial(_describe, facts)
        yield AlertCandidate(Finding(subject, facts.counts.waiting), describe)


def _kind_of(counts: SourceCounts, now_ms: int) -> AlertKind | None:
    if counts.waiting_bytes >= _FULL * limits.OUTBOX_BYTES_MAX:
        return AlertKind.SOURCE_FULL
    waits_since_ms = counts.waiting_since_ms
    if waits_since_ms is not None and now_ms - waits_since_ms >= limits.SOURCE_BLOCKED_MS:
        return AlertKind.SOURCE_BLOCKED
    rejected_ms = counts.last_rejected_at_ms or 0
    is_recent = now_ms - rejected_ms < _REJECTED_MS
    if is_recent and rejected_ms > (counts.last_accepted_at_ms or 0):
        return AlertKind.SOURCE_REJECTING
    return None


_TITLES = {
    AlertKind.SOURCE_FULL: "Source {} is full",
    AlertKind.SOURCE_BLOCKED: "Events of source {} are waiting",
    AlertKind.SOURCE_REJECTING: "Source {} rejects requests",
}


def _describe(facts: SourceFacts, finding: Finding) -> Alert:
    kind, name = finding.subject
    counts, is_rejecting = facts.counts, kind is AlertKind.SOURCE_REJECTING
    since_ms = None if is_rejecting else counts.waiting_since_ms
    return Alert(
        finding=finding,
        title=_TITLES[kind].format(name),
        detail=_detail_of(kind, facts),
        path=f"/ui/sources/{name}",
        start=None if since_ms is None else StateStart(since_ms),
        last_ms=counts.last_rejected_at_ms if is_rejecting else None,
        target=PAUSED if facts.source.spec.paused else "",
    )


def _detail_of(kind: AlertKind, facts: SourceFacts) -> str:
    counts = facts.counts
    if kind is AlertKind.SOURCE_REJECTING:
        rejected = display_formats.plural(counts.rejected, "request")
        return f"{rejected} rejected, the last one after the last accepted event."
    reason = "It is paused." if facts.source.spec.paused else facts.failure
    consequence = "New events are rejected. " if kind is AlertKind.SOURCE_FULL else ""
    events = display_formats.plural(counts.waiting, "event")
    size = display_formats.size(counts.waiting_bytes)
    return f"{events} wait for the target, {size}. {consequence}{reason}".strip()
