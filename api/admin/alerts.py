"""Alerts: rules over the latest samples, the most severe first.

Each rule looks at every resource of its kind and names the few worst; the number of the others is given too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from api.admin import display_formats
from storage.domain import limits
from storage.domain.jobs import Job
from storage.domain.presence import ProcessRole, ProcessSeen
from storage.domain.timeseries.samples import GroupSample, QueueSample, TotalSample
from storage.domain.webhooks import Webhook

WAITS_LONG_MS = 5 * limits.MINUTE_MS
"""From then on a ready message, or an unread record, waits for too long."""

ARCHIVE_LATE_MS = limits.HOUR_MS
"""From then on the archive is behind."""

MEMORY_HIGH, MEMORY_FULL = 0.8, 0.85
"""Of the store's memory: there is little left, and writes are refused (storage.memory_guard)."""

LOOP_LATE_MS = 200
"""An event loop that comes back so much too late keeps every request waiting."""

STARTS_MS = 30 * limits.SECOND_MS
"""So long processes have to begin, after the first of them did."""

NAMED_MAX = 6
"""So many of one kind are named; the rest is counted."""

BAD, WARN = "bad", "warn"


class Alert(NamedTuple):
    """Alert: its subject, the reason, and the page where it is resolved."""

    level: str
    title: str
    detail: str
    path: str
    parameters: Mapping[str, str] = {}


class AlertInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Input of the alert rules, as of `now_ms`.

    `died`: per queue (of some queues), the number of dead letters within the last hour.
    `sees_deployment`: whether the viewer may know of what does not belong to the namespace.
    """

    now_ms: int
    queues: Mapping[str, QueueSample]
    groups: Mapping[str, GroupSample]
    total: TotalSample | None
    died: Mapping[str, int]
    paused: frozenset[str]
    dead_letter_queues: frozenset[str]
    paused_groups: frozenset[str]
    webhooks: Sequence[Webhook]
    failed_jobs: Sequence[Job]
    unserved_jobs: Sequence[Job]
    processes: Sequence[ProcessSeen]
    checks: Mapping[str, str]
    sees_deployment: bool


def find_alerts(seen: AlertInputs) -> list[Alert]:
    """Return all alerts, the most severe first."""
    alerts = [
        *(_of_deployment(seen) if seen.sees_deployment else ()),
        *_dead_letters(seen),
        *_waiting(seen),
        *_lagging(seen),
        *_webhooks(seen.webhooks),
        *_parked(seen),
        *_unserved(seen.unserved_jobs),
        *_jobs(seen.failed_jobs),
    ]
    return sorted(alerts, key=lambda concern: concern.level != BAD)


# Queues


def is_stalled(queue: QueueSample, now_ms: int) -> bool:
    """Return whether messages have waited for long and none is received."""
    return queue.oldest_age_ms(now_ms) >= WAITS_LONG_MS and not queue.received_per_second


def is_behind(queue: QueueSample, now_ms: int) -> bool:
    """Return whether messages have waited for long although some are received."""
    return queue.oldest_age_ms(now_ms) >= WAITS_LONG_MS and bool(queue.received_per_second)


def _waiting(seen: AlertInputs) -> Iterable[Alert]:
    now_ms = seen.now_ms
    ages = {name: queue.oldest_age_ms(now_ms) for name, queue in seen.queues.items()}
    stuck = [name for name, queue in seen.queues.items() if is_stalled(queue, now_ms)]
    for name in _worst(stuck, ages):
        waits = f"{display_formats.plural(seen.queues[name].ready, 'message')} ready; the oldest has waited {display_formats.format_duration(ages[name])}."
        if name in seen.paused:
            yield Alert(WARN, f"{name} is paused", waits, f"/ui/queues/{name}")
        elif name in seen.dead_letter_queues:
            title = f"Messages in the dead-letter queue {name}"
            yield Alert(WARN, title, waits, f"/ui/queues/{name}/messages")
        else:
            yield Alert(
                BAD, f"No consumer receives from {name}", waits, f"/ui/queues/{name}/messages"
            )
    yield from _more(stuck, "queues without deliveries", "/ui/queues", {"state": "stuck"})
    behind = [name for name, queue in seen.queues.items() if is_behind(queue, now_ms)]
    for name in _worst(behind, ages):
        queue = seen.queues[name]
        detail = (
            f"The oldest message has waited {display_formats.format_duration(ages[name])}: {display_formats.rate(queue.sent_per_second)}/s sent, "
            f"{display_formats.rate(queue.acknowledged_per_second)}/s acknowledged."
        )
        yield Alert(WARN, f"{name} is falling behind", detail, f"/ui/queues/{name}")
    yield from _more(behind, "queues falling behind", "/ui/queues", {"sort": "-oldest"})


def _dead_letters(seen: AlertInputs) -> Iterable[Alert]:
    counts = {name: queue.dead_lettered for name, queue in seen.queues.items()}
    dead = [name for name, count in counts.items() if count]
    for name in _worst(dead, {name: (seen.died.get(name, 0), counts[name]) for name in dead}):
        new, path = seen.died.get(name, 0), f"/ui/queues/{name}/dead-letters"
        title = f"{display_formats.plural(counts[name], 'dead letter')} in {name}"
        if new > 0:
            yield Alert(BAD, title, f"{display_formats.count(new)} in the last hour.", path)
        else:
            yield Alert(WARN, title, "None in the last hour.", path)
    yield from _more(dead, "queues with dead letters", "/ui/queues", {"state": "dead"})


def _parked(seen: AlertInputs) -> Iterable[Alert]:
    parked = {name: queue.parked for name, queue in seen.queues.items() if queue.parked}
    for name in _worst(parked, parked):
        title = f"Parked groups in {name}"
        detail = f"{display_formats.plural(parked[name], 'message')} blocked until the groups are resumed."
        yield Alert(WARN, title, detail, f"/ui/queues/{name}/groups")
    yield from _more(parked, "queues with parked groups", "/ui/queues", {"state": "parked"})


# Groups, webhooks, jobs


def _lagging(seen: AlertInputs) -> Iterable[Alert]:
    late = {name: group.lag_ms(seen.now_ms) for name, group in seen.groups.items()}
    lagging = [name for name, lag_ms in late.items() if lag_ms >= WAITS_LONG_MS]
    for name in _worst(lagging, late):
        group = seen.groups[name]
        detail = f"{display_formats.plural(group.lag_records, 'record')} behind, {display_formats.format_duration(late[name])} in time."
        if name in seen.paused_groups:
            yield Alert(WARN, f"Group {name} is paused", detail, f"/ui/groups/{name}")
        elif group.members:
            yield Alert(WARN, f"Group {name} is lagging", detail, f"/ui/groups/{name}")
        else:
            yield Alert(BAD, f"Group {name} has no members", detail, f"/ui/groups/{name}")
    yield from _more(lagging, "lagging groups", "/ui/groups", {"sort": "-lag"})


def _webhooks(webhooks: Sequence[Webhook]) -> Iterable[Alert]:
    for webhook in webhooks:
        name, path = webhook.name.name, f"/ui/webhooks/{webhook.name.name}"
        if webhook.disabled_at_ms is not None:
            yield Alert(BAD, f"Webhook {name} is disabled", webhook.health.last_failure, path)
        elif blocked := sorted(webhook.health.blocked.items()):
            shard, failure = blocked[0]
            title = f"Webhook {name} is blocked in {display_formats.plural(len(blocked), 'shard')}"
            yield Alert(BAD, title, f"Shard {shard}, {failure}", path)
        elif webhook.health.failing_since_ms is not None:
            yield Alert(WARN, f"Webhook {name} is failing", webhook.health.last_failure, path)


def _unserved(jobs: Sequence[Job]) -> Iterable[Alert]:
    """Report jobs that no worker takes: nothing is archived, compacted or replayed."""
    if jobs:
        title = f"{display_formats.plural(len(jobs), 'job')} waiting for a worker"
        detail = "No worker is running; millstream worker starts one."
        yield Alert(BAD, title, detail, "/ui/system/jobs", {"state": "queued"})


def _jobs(jobs: Sequence[Job]) -> Iterable[Alert]:
    for job in jobs[:NAMED_MAX]:
        why = job.failure.strip().splitlines()
        title = f"{job.kind.capitalize()} of {job.subject} failed"
        yield Alert(
            WARN, title, why[-1][:200] if why else "", "/ui/system/jobs", {"state": "failed"}
        )


# The deployment


def _of_deployment(seen: AlertInputs) -> Iterable[Alert]:
    for check, result in seen.checks.items():
        if result != "ok":
            yield Alert(BAD, f"{check.capitalize()} check failed", result, "/ui/system")
    settled = any(seen.now_ms - one.started_at_ms >= STARTS_MS for one in seen.processes)
    roles = {process.role for process in seen.processes}
    if settled and ProcessRole.SWEEPER not in roles:
        yield Alert(
            BAD,
            "No sweeper is running",
            "Maintenance tasks and metrics sampling are stopped.",
            "/ui/system",
        )
    if seen.webhooks and settled and ProcessRole.DELIVERER not in roles:
        yield Alert(BAD, "No deliverer is running", "Webhook deliveries are stopped.", "/ui/system")
    for process in seen.processes:
        if process.event_loop_lag_ms >= LOOP_LATE_MS:
            late = f"Its event loop lags by {display_formats.format_duration(process.event_loop_lag_ms)}."
            yield Alert(WARN, f"Process {process.pid} is overloaded", late, "/ui/system")
    yield from _failing_objects(seen.processes)
    if seen.total is not None:
        yield from _of_store(seen.total, seen.now_ms)


def _failing_objects(processes: Sequence[ProcessSeen]) -> Iterable[Alert]:
    failing = {
        (entry.task, entry.object): entry for process in processes for entry in process.failing
    }
    for entry in list(failing.values())[:NAMED_MAX]:
        title = f"Task {entry.task} fails for {entry.object}"
        yield Alert(WARN, title, entry.reason, "/ui/system")
    names = [name for _, name in failing]
    yield from _more(names, "failing objects", "/ui/system", {})


def _of_store(total: TotalSample, now_ms: int) -> Iterable[Alert]:
    used, most = total.memory_used_bytes, total.memory_max_bytes
    if used is not None and most and used / most >= MEMORY_HIGH:
        full = used / most >= MEMORY_FULL
        detail = f"{display_formats.size(used)} of {display_formats.size(most)}."
        if full:
            yield Alert(
                BAD, "The hot store is full", detail + " Writes are rejected.", "/ui/system"
            )
        else:
            yield Alert(
                WARN,
                "The hot store is nearly full",
                detail + " Writes are rejected at 85 %.",
                "/ui/system",
            )
    if (late_ms := total.archive_lag_ms(now_ms)) >= ARCHIVE_LATE_MS:
        detail = (
            f"The oldest unarchived record has waited {display_formats.format_duration(late_ms)}."
        )
        yield Alert(WARN, "Archiving is falling behind", detail, "/ui/streams")


# Few of many


def _worst(names: Iterable[str], weights: Mapping[str, object]) -> list[str]:
    return sorted(names, key=lambda name: (weights[name], name), reverse=True)[:NAMED_MAX]


def _more(
    names: Sequence[str] | Mapping[str, object], what: str, path: str, parameters: Mapping[str, str]
) -> Iterable[Alert]:
    rest = len(names) - NAMED_MAX
    if rest > 0:
        yield Alert(
            WARN, f"{display_formats.count(rest)} more {what}", "Show all.", path, parameters
        )
