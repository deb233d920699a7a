"""Alerts of consumer groups: lag that will be lost, and lag that grows."""

from collections.abc import Iterator
from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import (
    QUIET_MS,
    WAITS_LONG_MS,
    Alert,
    AlertCandidate,
    GroupFacts,
)
from api.admin.alerts.loss import Ceiling, loss_in_ms, loss_text
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.groups.group import GroupKind
from storage.domain.timeseries.history import StateCondition

GROUP_COLUMNS = ("lag_records", "lag_ms", "committed_per_second")
"""Columns of a group's history that the rules look at."""


def group_alerts(name: str, facts: GroupFacts, now_ms: int) -> Iterator[AlertCandidate]:
    """Yield the alert of a group, if it lags."""
    kind = _kind_of(facts, now_ms)
    if kind is not None:
        growth = facts.history.growth_per_minute("lag_records")
        finding = Finding(AlertSubject(kind, name), facts.sample.lag_records, growth)
        yield AlertCandidate(finding, partial(_describe, facts, now_ms))


def _kind_of(facts: GroupFacts, now_ms: int) -> AlertKind | None:
    if facts.sample.lag_ms(now_ms) < _long_ms(facts):
        return None
    if _loss_in_ms(facts, now_ms) is not None:
        return AlertKind.GROUP_EXPIRING
    if _is_quiet(facts, now_ms):
        return AlertKind.GROUP_QUIET
    if facts.group is not None and facts.group.spec.paused:
        return AlertKind.GROUP_PAUSED
    return AlertKind.GROUP_BEHIND if _is_read(facts) else AlertKind.GROUP_STALLED


def _long_ms(facts: GroupFacts) -> int:
    retention_ms = None if facts.stream is None else facts.stream.spec.retention_ms
    return WAITS_LONG_MS if retention_ms is None else min(WAITS_LONG_MS, retention_ms // 2)


def _is_read(facts: GroupFacts) -> bool:
    """Return whether the group has members or, without members, commits."""
    sample = facts.sample
    return (bool(sample.members or sample.committed_per_second)) or facts.history.has_been_positive(
        "committed_per_second", WAITS_LONG_MS
    )


def _is_quiet(facts: GroupFacts, now_ms: int) -> bool:
    """Return whether the oldest unread record is older than a day, and none was added since."""
    if facts.sample.lag_ms(now_ms) < QUIET_MS or not facts.is_examined:
        return False
    increased_ms = facts.history.last_increase_ms("lag_records")
    return increased_ms is None or now_ms - increased_ms >= QUIET_MS


def _loss_in_ms(facts: GroupFacts, now_ms: int) -> float | None:
    """Return the time until the stream deletes unread records; None if that is not imminent."""
    return None if facts.stream is None else loss_in_ms(_ceilings(facts, now_ms))


def _ceilings(facts: GroupFacts, now_ms: int) -> Iterator[Ceiling]:
    """Yield the stream's retentions as ceilings; those of records and bytes are of each shard."""
    assert facts.stream is not None
    spec, sample, history = facts.stream.spec, facts.sample, facts.history
    shards = max(1, len(facts.stream.open_shards))
    growth = history.growth_per_minute("lag_records")
    if spec.retention_ms is not None:
        aging = history.growth_per_minute("lag_ms")
        yield Ceiling(sample.lag_ms(now_ms), spec.retention_ms, aging)
    if spec.retention_records is not None:
        yield Ceiling(sample.lag_records, spec.retention_records * shards, growth)
    contents = facts.stream_sample
    if spec.retention_bytes is not None and contents is not None and contents.records:
        record_bytes = contents.bytes_held / contents.records
        yield Ceiling(
            sample.lag_records * record_bytes,
            spec.retention_bytes * shards,
            growth * record_bytes,
        )


_TITLES = {
    AlertKind.GROUP_EXPIRING: "Group {} is losing records",
    AlertKind.GROUP_QUIET: "Group {} is not used",
    AlertKind.GROUP_PAUSED: "Group {} is paused",
    AlertKind.GROUP_BEHIND: "Group {} is lagging",
    AlertKind.GROUP_STALLED: "Group {} has no members",
}
_SIMPLE_TITLE = "Group {} is not read"  # a simple group never has members


def _describe(facts: GroupFacts, now_ms: int, finding: Finding) -> Alert:
    kind, name = finding.subject
    lag = display_formats.plural(facts.sample.lag_records, "record")
    age = display_formats.format_duration(facts.sample.lag_ms(now_ms))
    detail = f"{lag} behind, {age} in time."
    if kind is AlertKind.GROUP_EXPIRING:
        detail += f" {loss_text(_loss_in_ms(facts, now_ms))}"
    return Alert(
        finding=finding,
        title=_title(kind, facts).format(name),
        detail=detail,
        path=f"/ui/groups/{name}",
        start=facts.history.start_of(StateCondition(("lag_ms",), _long_ms(facts))),
    )


def _title(kind: AlertKind, facts: GroupFacts) -> str:
    is_simple = facts.group is not None and facts.group.spec.kind is GroupKind.SIMPLE
    is_stalled = kind is AlertKind.GROUP_STALLED
    return _SIMPLE_TITLE if is_simple and is_stalled else _TITLES[kind]
