"""Alerts of webhooks, mirrors and jobs that fail."""

import msgspec

from api.admin.alerts.alert import BAD, QueueFacts
from storage.domain import limits
from storage.domain.jobs import WAITING_FOR, Job, JobKind, JobState, RequestedState
from storage.domain.names import MirrorName
from storage.domain.timeseries.history import StateStart
from storage.domain.timeseries.samples import QueueSample
from storage.mirrors.engine import MirrorLag
from tests.unit.admin.alerts.facts import alerts_for, webhook


def job(number, ended_at_ms, subject="clicks"):
    return Job(
        job_id=f"job-{number}",
        namespace="default",
        kind=JobKind.ARCHIVE,
        subject=subject,
        spec={},
        state=JobState.FAILED,
        requested_state=RequestedState.NONE,
        attempt=1,
        failures=1,
        attempts_max=1,
        run_after_ms=0,
        worker=None,
        progress={},
        failure=f"first line\nreason {number}",
        created_at_ms=0,
        started_at_ms=0,
        ended_at_ms=ended_at_ms,
    )


def test_blocked_shard_is_reported_although_others_succeed():
    blocked = webhook(blocked={3: "offset 7: 400", 5: "offset 1: 400"})

    [alert] = alerts_for(webhooks=[blocked])

    assert (alert.level, alert.title) == (BAD, "Webhook shop is blocked in 2 shards")
    assert alert.detail == "Shard 3, offset 7: 400"


def test_mirrors_that_fail_or_lag_are_named():
    far = limits.MIRROR_ALERT_LAG_MS
    mirrors = [
        MirrorLag(MirrorName("near"), far - 1, 5, 0, ()),
        MirrorLag(MirrorName("far"), far, 5, 0, ()),
        MirrorLag(MirrorName("failing"), 0, 7, 0, ("The origin answered 403", "other")),
    ]

    alerts = alerts_for(mirrors=mirrors)

    assert [(alert.title, alert.detail, alert.path) for alert in alerts] == [
        ("Mirror failing is failing", "The origin answered 403", "/ui/mirrors/failing"),
        ("Mirror far is 1 min behind", "", "/ui/mirrors/far"),
    ]


def test_webhooks_are_ranked_by_their_backlog():
    queues = {"few": QueueFacts(QueueSample(ready=2)), "many": QueueFacts(QueueSample(ready=9))}
    webhooks = [
        webhook("a", source="queue:few", failing_since_ms=7),
        webhook("b", source="queue:many", failing_since_ms=8, last_failure_at_ms=9),
        webhook("c", disabled_at_ms=5),
    ]

    alerts = alerts_for(webhooks=webhooks, queues=queues)

    assert [alert.subject.object for alert in alerts] == ["b", "a", "c"]
    assert (alerts[0].start, alerts[0].last_ms) == (StateStart(8), 9)


def test_jobs_without_executors_have_the_reason():
    waiting = msgspec.structs.replace(
        job(1, 0), progress={WAITING_FOR: "executors"}, failure="no free cores"
    )

    alerts = alerts_for(unserved_jobs=[waiting, job(2, 0)])

    assert {alert.title: alert.detail for alert in alerts} == {
        "1 job waiting for executors of the Spark cluster": "no free cores",
        "1 job waiting for a worker": "No worker is running; millstream worker starts one.",
    }


def test_jobs_without_worker_are_reported_once():
    [alert] = alerts_for(unserved_jobs=[job(number, 0) for number in range(3)])

    assert (alert.level, alert.title) == (BAD, "3 jobs waiting for a worker")


def test_failures_of_one_subject_are_one_alert():
    jobs = [job(1, 100), job(2, 300), job(3, 200, "orders")]

    alerts = {alert.subject.object: alert for alert in alerts_for(failed_jobs=jobs)}

    clicks = alerts["archive:clicks"]
    assert set(alerts) == {"archive:clicks", "archive:orders"}
    assert clicks.title == "Archive of clicks failed, 2 times"
    assert (clicks.detail, clicks.target) == ("reason 2", "job-2")
    assert (clicks.start, clicks.last_ms) == (StateStart(100), 300)
