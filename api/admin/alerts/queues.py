"""Alerts of queues: what waits in vain, what is lost or rejected, dead letters."""

from collections.abc import Iterator
from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import (
    QUIET_MS,
    WAITS_LONG_MS,
    Alert,
    AlertCandidate,
    QueueFacts,
)
from api.admin.alerts.loss import Ceiling, loss_in_ms, loss_text
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.queues.policies import PoisonPolicy
from storage.domain.timeseries.history import StateCondition
from storage.domain.timeseries.samples import QueueSample

QUEUE_COLUMNS = (
    "ready",
    "delayed",
    "in_flight",
    "parked",
    "dead_lettered",
    "oldest_age_ms",
    "sent_per_second",
    "received_per_second",
    "acknowledged_per_second",
    "moved_in_per_second",
)
"""Columns of a queue's history that the rules look at."""

_STORED = ("ready", "delayed", "in_flight", "parked")


def is_stalled(queue: QueueSample, now_ms: int) -> bool:
    """Return whether messages have waited for long and none is received."""
    return queue.oldest_age_ms(now_ms) >= WAITS_LONG_MS and not queue.received_per_second


def queue_alerts(name: str, facts: QueueFacts, now_ms: int) -> Iterator[AlertCandidate]:
    """Yield the alerts of a queue: one of what waits, and those of parked and dead messages."""
    queue = facts.sample
    kind = _waiting_kind(facts, now_ms)
    if kind is not None:
        waiting = facts.stored if kind is AlertKind.QUEUE_FULL else queue.ready
        finding = Finding(AlertSubject(kind, name), waiting, _growth(facts, "ready"))
        yield AlertCandidate(finding, partial(_describe_waiting, facts, now_ms))
    if queue.parked and kind is not AlertKind.QUEUE_QUIET:
        finding = Finding(
            AlertSubject(_parked_kind(facts, now_ms), name),
            queue.parked,
            _growth(facts, "parked"),
        )
        yield AlertCandidate(finding, partial(_describe_parked, facts))
    if queue.dead_lettered:
        new = _new_dead_letters(facts)
        kind = AlertKind.DEAD_LETTERS if new else AlertKind.DEAD_LETTERS_OLD
        growth = _growth(facts, "dead_lettered")
        finding = Finding(AlertSubject(kind, name), queue.dead_lettered, growth)
        yield AlertCandidate(finding, partial(_describe_dead_letters, facts, new))


# Rules


def _waiting_kind(facts: QueueFacts, now_ms: int) -> AlertKind | None:
    """Return the worst kind of alert about the queue's waiting messages, if there is any."""
    queue = facts.sample
    if facts.is_full:
        return AlertKind.QUEUE_FULL
    if queue.oldest_age_ms(now_ms) < _long_ms(facts):
        return None
    if facts.is_dead_letter_queue:
        return _dead_letter_queue_kind(facts)
    if _loss_in_ms(facts, now_ms) is not None:
        return AlertKind.QUEUE_EXPIRING
    if _is_quiet(facts, now_ms):
        return AlertKind.QUEUE_QUIET
    if facts.spec is not None and facts.spec.paused:
        return AlertKind.QUEUE_PAUSED
    if not _is_received(facts):
        return AlertKind.QUEUE_STALLED
    return AlertKind.QUEUE_BLOCKED if _is_blocked(facts) else AlertKind.QUEUE_BEHIND


def _dead_letter_queue_kind(facts: QueueFacts) -> AlertKind | None:
    """Return the kind of a queue that needs no consumer; it is new while messages arrive."""
    if _is_received(facts):
        return None
    if facts.history.has_been_positive("moved_in_per_second", limits.HOUR_MS):
        return AlertKind.DEAD_LETTER_QUEUE
    return AlertKind.DEAD_LETTER_QUEUE_OLD


def _parked_kind(facts: QueueFacts, now_ms: int) -> AlertKind:
    start = facts.history.start_of(StateCondition(("parked",)))
    is_old = start is not None and now_ms - start.at_ms >= QUIET_MS
    is_quiet = is_old and not _has_traffic(facts)
    return AlertKind.QUEUE_QUIET if is_quiet else AlertKind.QUEUE_PARKED


def _is_quiet(facts: QueueFacts, now_ms: int) -> bool:
    """Return whether nothing was sent for a day, by the oldest message and by the rates."""
    is_old = facts.sample.oldest_age_ms(now_ms) >= QUIET_MS
    return is_old and facts.is_examined and not _has_traffic(facts)


def _has_traffic(facts: QueueFacts) -> bool:
    rates = ("sent_per_second", "moved_in_per_second")
    return any(facts.history.has_been_positive(rate, QUIET_MS) for rate in rates)


def _is_received(facts: QueueFacts) -> bool:
    """Return whether messages are received: in the last sample, or in the last minutes."""
    if facts.sample.received_per_second:
        return True
    return facts.is_examined and facts.history.has_been_positive(
        "received_per_second", WAITS_LONG_MS
    )


def _is_blocked(facts: QueueFacts) -> bool:
    """Return whether nothing that is received was acknowledged for long."""
    is_acknowledged = facts.history.has_been_positive("acknowledged_per_second", WAITS_LONG_MS)
    return facts.is_examined and not facts.sample.acknowledged_per_second and not is_acknowledged


def _long_ms(facts: QueueFacts) -> int:
    """Return the time from which a message has waited for long: less with a short retention."""
    return WAITS_LONG_MS if facts.spec is None else min(WAITS_LONG_MS, facts.spec.retention_ms // 2)


def _loss_in_ms(facts: QueueFacts, now_ms: int) -> float | None:
    """Return the time until the oldest message is deleted; None if that is not imminent."""
    if facts.spec is None:
        return None
    aging = facts.history.growth_per_minute("oldest_age_ms") if _is_received(facts) else _AGING
    age_ms = facts.sample.oldest_age_ms(now_ms)
    return loss_in_ms([Ceiling(age_ms, facts.spec.retention_ms, aging)])


_AGING = float(limits.MINUTE_MS)  # per minute, of a message that nobody receives


def _new_dead_letters(facts: QueueFacts) -> int:
    """Return the dead letters of the last hour; 1 or 0 for a queue that is not examined."""
    if facts.is_examined:
        return facts.history.increase("dead_lettered")
    return int(facts.dead_per_second > 0)


def _growth(facts: QueueFacts, column: str) -> float:
    """Return the growth of a state per minute; of a queue that is not examined, by its rates."""
    if facts.is_examined:
        return facts.history.growth_per_minute(column)
    queue = facts.sample
    if column == "dead_lettered":
        return 60 * facts.dead_per_second
    added = (queue.sent_per_second or 0) + (queue.moved_in_per_second or 0)
    return 60 * (added - (queue.acknowledged_per_second or 0))


# Texts


def _describe_waiting(facts: QueueFacts, now_ms: int, finding: Finding) -> Alert:
    kind, name = finding.subject
    describe = _WAITING_TEXTS.get(kind, _stalled_texts)
    title, detail, suffix = describe(facts, name, now_ms)
    return Alert(
        finding=finding,
        title=title,
        detail=detail,
        path=f"/ui/queues/{name}{suffix}",
        start=facts.history.start_of(_condition(kind, facts)),
    )


def _condition(kind: AlertKind, facts: QueueFacts) -> StateCondition:
    if kind is AlertKind.QUEUE_FULL:
        full = facts.caps.messages_max if facts.caps else None
        return StateCondition(_STORED, full or facts.stored)
    return StateCondition(("oldest_age_ms",), _long_ms(facts))


Texts = tuple[str, str, str]
"""Title, detail, and the page of the queue."""


def _waits(facts: QueueFacts, now_ms: int) -> str:
    ready = display_formats.plural(facts.sample.ready, "message")
    age = display_formats.format_duration(facts.sample.oldest_age_ms(now_ms))
    return f"{ready} ready, the oldest for {age}."


def _full_texts(facts: QueueFacts, name: str, _: int) -> Texts:
    stored = display_formats.plural(facts.stored, "message")
    size = display_formats.size(facts.sample.bytes_held)
    return f"{name} is full", f"{stored}, {size}. Sends are rejected.", "/settings"


def _expiring_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    detail = f"{_waits(facts, now_ms)} {loss_text(_loss_in_ms(facts, now_ms))}"
    return f"{name} is losing messages", detail, "/messages"


def _paused_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    return f"{name} is paused", _waits(facts, now_ms), ""


def _behind_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    queue = facts.sample
    sent, acknowledged = (
        display_formats.rate(rate)
        for rate in (queue.sent_per_second, queue.acknowledged_per_second)
    )
    age = display_formats.format_duration(queue.oldest_age_ms(now_ms))
    detail = f"The oldest message has waited {age}: {sent}/s sent, {acknowledged}/s acknowledged."
    return f"{name} is falling behind", detail, ""


def _blocked_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    is_blocking = facts.spec is not None and facts.spec.on_poison is PoisonPolicy.BLOCK
    cause = " A failing message blocks its group." if is_blocking else ""
    title = f"Consumers of {name} acknowledge nothing"
    return title, f"{_waits(facts, now_ms)}{cause}", "/consumers"


def _dead_letter_queue_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    return f"Messages in the dead-letter queue {name}", _waits(facts, now_ms), "/messages"


def _quiet_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    return f"{name} is not used", f"{_waits(facts, now_ms)} None sent for a day.", "/messages"


def _stalled_texts(facts: QueueFacts, name: str, now_ms: int) -> Texts:
    return f"No consumer receives from {name}", _waits(facts, now_ms), "/messages"


_WAITING_TEXTS = {
    AlertKind.QUEUE_FULL: _full_texts,
    AlertKind.QUEUE_EXPIRING: _expiring_texts,
    AlertKind.QUEUE_PAUSED: _paused_texts,
    AlertKind.QUEUE_BLOCKED: _blocked_texts,
    AlertKind.QUEUE_BEHIND: _behind_texts,
    AlertKind.DEAD_LETTER_QUEUE: _dead_letter_queue_texts,
    AlertKind.DEAD_LETTER_QUEUE_OLD: _dead_letter_queue_texts,
    AlertKind.QUEUE_QUIET: _quiet_texts,
}


def _describe_parked(facts: QueueFacts, finding: Finding) -> Alert:
    name = finding.subject.object
    messages = display_formats.plural(facts.sample.parked, "message")
    return Alert(
        finding=finding,
        title=f"Parked groups in {name}",
        detail=f"{messages} blocked until the groups are resumed.",
        path=f"/ui/queues/{name}/groups",
        start=facts.history.start_of(StateCondition(("parked",))),
    )


def _describe_dead_letters(facts: QueueFacts, new: int, finding: Finding) -> Alert:
    name = finding.subject.object
    letters = display_formats.plural(facts.sample.dead_lettered, "dead letter")
    start = facts.history.start_of(StateCondition(("dead_lettered",)))
    last_ms = facts.history.last_increase_ms("dead_lettered")
    recent = f"{display_formats.count(new)} in the last hour." if new else "None in the last hour."
    return Alert(
        finding=finding,
        title=f"{letters} in {name}",
        detail=recent,
        path=f"/ui/queues/{name}/dead-letters",
        start=start,
        last_ms=last_ms or (start.at_ms if start else None),
    )
