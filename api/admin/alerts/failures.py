"""Alerts of webhooks, mirrors and jobs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from api.admin import display_formats
from api.admin.alerts.alert import Alert, AlertCandidate, AlertInputs
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.jobs import WAITING_FOR, Job, WaitReason
from storage.domain.timeseries.history import StateStart
from storage.domain.webhooks import SourceKind, Webhook
from storage.mirrors.engine import MirrorLag

_CHARACTERS_MAX = 200  # of a job's error


def webhook_alerts(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    """Yield the alerts of webhooks that do not deliver."""
    for webhook in inputs.webhooks:
        kind = _webhook_kind(webhook)
        if kind is not None:
            subject = AlertSubject(kind, webhook.name.name)
            finding = Finding(subject, _backlog(webhook, inputs))
            yield AlertCandidate(finding, partial(_describe_webhook, webhook))


def _webhook_kind(webhook: Webhook) -> AlertKind | None:
    if webhook.disabled_at_ms is not None:
        return AlertKind.WEBHOOK_DISABLED
    if webhook.health.blocked:
        return AlertKind.WEBHOOK_BLOCKED
    return AlertKind.WEBHOOK_FAILING if webhook.health.failing_since_ms is not None else None


def _backlog(webhook: Webhook, inputs: AlertInputs) -> int:
    """Return the messages or records that wait for the webhook."""
    source = webhook.spec.source
    if source.kind is SourceKind.GROUP:
        group = inputs.groups.get(source.name)
        return 0 if group is None else group.sample.lag_records
    queue = inputs.queues.get(source.name)
    return 0 if queue is None else queue.sample.ready


def _describe_webhook(webhook: Webhook, finding: Finding) -> Alert:
    name, health = webhook.name.name, webhook.health
    subject = _subject_of(webhook)
    since_ms, title, detail = (
        health.failing_since_ms,
        f"{subject} is failing",
        health.last_failure,
    )
    if webhook.disabled_at_ms is not None:
        since_ms, title = webhook.disabled_at_ms, f"{subject} is disabled"
    elif health.blocked:
        shard, failure = min(health.blocked.items())
        shards = display_formats.plural(len(health.blocked), "shard")
        title, detail = f"{subject} is blocked in {shards}", f"Shard {shard}, {failure}"
    return Alert(
        finding=finding,
        title=title,
        detail=detail,
        path=f"/ui/webhooks/{name}",
        start=None if since_ms is None else StateStart(since_ms),
        last_ms=health.last_failure_at_ms,
    )


def _subject_of(webhook: Webhook) -> str:
    """Return the webhook as a title names it: that of a route by its route."""
    route = webhook.name.route
    if route is None:
        return f"Webhook {webhook.name.name}"
    return f"URL of route {route.route} of topic {route.topic.name}"


def mirror_alerts(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    """Yield the alerts of mirrors that fail, or are far behind."""
    for mirror in inputs.mirrors:
        is_behind = mirror.lag_ms >= limits.MIRROR_ALERT_LAG_MS
        if mirror.failures or is_behind:
            kind = AlertKind.MIRROR_FAILING if mirror.failures else AlertKind.MIRROR_BEHIND
            finding = Finding(AlertSubject(kind, mirror.name.name), mirror.lag_records)
            yield AlertCandidate(finding, partial(_describe_mirror, mirror, inputs.now_ms))


def _describe_mirror(mirror: MirrorLag, now_ms: int, finding: Finding) -> Alert:
    name, lag = mirror.name.name, display_formats.format_duration(mirror.lag_ms)
    title = f"Mirror {name} is {lag} behind"
    if mirror.failures:
        title = f"Mirror {name} is failing"
    return Alert(
        finding=finding,
        title=title,
        detail=mirror.failures[0][:_CHARACTERS_MAX] if mirror.failures else "",
        path=f"/ui/mirrors/{name}",
        start=StateStart(now_ms - mirror.lag_ms),
    )


def job_alerts(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    """Yield the alerts of jobs that no worker runs, and of failed ones by subject."""
    for needed, unserved in _by_need(inputs.unserved_jobs).items():
        subject = AlertSubject(AlertKind.JOBS_UNSERVED, needed)
        yield AlertCandidate(Finding(subject), partial(_describe_unserved, unserved))
    for name, jobs in _by_subject(inputs.failed_jobs).items():
        subject = AlertSubject(AlertKind.JOB_FAILED, name)
        yield AlertCandidate(Finding(subject), partial(_describe_failed, jobs))


def _by_need(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Return jobs by what they need: a worker, or executors of the Spark cluster."""
    of_need = defaultdict(list)
    for job in jobs:
        needs_executors = job.progress.get(WAITING_FOR) == WaitReason.EXECUTORS
        of_need["executors" if needs_executors else "workers"].append(job)
    return of_need


def _by_subject(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    of_subject = defaultdict(list)
    for job in jobs:
        of_subject[f"{job.kind}:{job.subject}"].append(job)
    return of_subject


def _describe_unserved(jobs: Sequence[Job], finding: Finding) -> Alert:
    title, detail = "a worker", "No worker is running; millstream worker starts one."
    if finding.subject.object == "executors":
        newest = max(jobs, key=lambda job: job.run_after_ms)
        title, detail = "executors of the Spark cluster", newest.failure[:_CHARACTERS_MAX]
    return Alert(
        finding=finding,
        title=f"{display_formats.plural(len(jobs), 'job')} waiting for {title}",
        detail=detail,
        path="/ui/system/jobs",
        parameters={"state": "queued"},
        start=StateStart(min(job.run_after_ms for job in jobs)),
    )


def _describe_failed(jobs: Sequence[Job], finding: Finding) -> Alert:
    newest = max(jobs, key=_ended_ms)
    reason = newest.failure.strip().splitlines()
    times = f", {display_formats.count(len(jobs))} times" if len(jobs) > 1 else ""
    return Alert(
        finding=finding,
        title=f"{newest.kind.capitalize()} of {newest.subject} failed{times}",
        detail=reason[-1][:_CHARACTERS_MAX] if reason else "",
        path="/ui/system/jobs",
        parameters={"state": "failed"},
        start=StateStart(min(map(_ended_ms, jobs))),
        last_ms=_ended_ms(newest),
        target=newest.job_id,
    )


def _ended_ms(job: Job) -> int:
    return job.ended_at_ms or job.created_at_ms
