"""Alerts of the dashboard: their rules, their order by harm, groups and mutes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.admin.alerts.alert import (
    BAD,
    INFO,
    QUIET_MS,
    WAITS_LONG_MS,
    WARN,
    AlertInputs,
    GroupFacts,
    QueueFacts,
    SourceFacts,
)
from api.admin.alerts.deployment import MEMORY_FULL
from api.admin.alerts.engine import LABELS, NAMED_MAX, find_alerts
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.mutes import AlertMute, can_mute
from storage.domain.groups.group import Group, GroupKind, GroupSpec
from storage.domain.jobs import WAITING_FOR, Job, JobKind, JobState, RequestedState
from storage.domain.names import (
    GroupName,
    MirrorName,
    RouteName,
    SourceName,
    StreamName,
    TopicName,
    WebhookName,
)
from storage.domain.presence import FailingObject, ProcessRole, ProcessSeen
from storage.domain.queues.policies import QueueCaps
from storage.domain.queues.queue import QueueSpec
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    ReplicaSet,
    ReplicaSetStatus,
)
from storage.domain.sources.source import (
    InboundSource,
    SourceCounts,
    SourceSpec,
    SourceTarget,
    WebhookProvider,
)
from storage.domain.streams.stream import Shard, Stream, StreamSpec
from storage.domain.timeseries.history import NO_HISTORY, History, StateStart
from storage.domain.timeseries.samples import (
    GroupSample,
    QueueSample,
    Samples,
    StreamSample,
    TotalSample,
)
from storage.domain.topics.report import RouteProgress
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.webhooks import DeliveryHealth, Source, Webhook, WebhookSpec
from storage.mirrors.engine import MirrorLag

NOW_MS = 10_000_000_000
LONG_AGO_MS = NOW_MS - WAITS_LONG_MS
STEP_MS = limits.SERIES_STEP_MS
WELL = {"redis": "ok", "postgres": "ok", "migrations": "ok"}


def process(role, lag_ms=0.0, **facts):
    return ProcessSeen(
        id=role,
        role=role,
        host="h",
        pid=7,
        version="1",
        started_at_ms=0,
        event_loop_lag_ms=lag_ms,
        **facts,
    )


ALL_PROCESSES = tuple(process(role) for role in ProcessRole)


def found(mutes=(), **facts):
    values: dict[str, Any] = {
        "now_ms": NOW_MS,
        "queues": {},
        "groups": {},
        "total": TotalSample(memory_used_bytes=1, memory_max_bytes=100),
        "webhooks": (),
        "sources": (),
        "failed_jobs": (),
        "unserved_jobs": (),
        "processes": ALL_PROCESSES,
        "checks": WELL,
        "sees_deployment": True,
    }
    return find_alerts(AlertInputs(**(values | facts)), mutes)


def alerts_for(**facts):
    alerts = found(**facts)
    return [alert for group in (*alerts.groups, *alerts.quiet) for alert in group.alerts]


def kinds_for(**facts):
    return [alert.subject.kind for alert in alerts_for(**facts)]


def history(step_ms=STEP_MS, end_ms=NOW_MS, **columns):
    length = max(len(values) for values in columns.values())
    start_ms = end_ms - (length - 1) * step_ms
    values = {name: tuple(series) for name, series in columns.items()}
    return History(Samples(step_ms=step_ms, start_ms=start_ms, columns=values))


def aging(last_ms, steps=40):
    """Ages of an object that nobody reads, up to now."""
    return [last_ms - number * STEP_MS for number in reversed(range(steps))]


def stuck(ready=3, age_ms=WAITS_LONG_MS, **sample):
    return QueueSample(ready=ready, oldest_ready_at_ms=NOW_MS - age_ms, **sample)


def only(queue):
    return {"orders": queue}


def stream(**spec):
    shard = Shard(0, "00ff00ff00ff00ff", 0, 2**128 - 1, 0)
    return Stream(
        name=StreamName("clicks"),
        stream_id="00ff00ff00ff00fe",
        spec=StreamSpec(**spec),
        shards=(shard,),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


def group(**spec):
    return Group(
        name=GroupName("readers"),
        group_id="g",
        stream_id="00ff00ff00ff00fe",
        spec=GroupSpec(stream="clicks", **spec),
        generation=1,
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


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


def webhook(name="shop", disabled_at_ms=None, source="group:g", **health):
    return Webhook(
        name=WebhookName(name),
        webhook_id="w",
        spec=WebhookSpec(source=Source.of(source), url="https://shop.example"),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
        health=DeliveryHealth(**health),
        disabled_at_ms=disabled_at_ms,
    )


def source(**spec):
    return InboundSource(
        name=SourceName("github"),
        source_id="s",
        spec=SourceSpec(
            provider=WebhookProvider.GITHUB,
            secrets=("a secret of the provider",),
            into=SourceTarget(queue="orders"),
            **spec,
        ),
        tokens=(),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


def test_healthy_deployment_has_no_alerts():
    alerts = found(queues=only(QueueFacts(stuck(age_ms=1000))))

    assert (alerts.groups, alerts.quiet, alerts.muted) == ([], [], [])


# Queues


PAUSED, DEFAULT = QueueSpec(paused=True), QueueSpec()
DAYS_3 = 3 * limits.DAY_MS


@pytest.mark.parametrize(
    ("facts", "kind", "level"),
    [
        (QueueFacts(stuck()), AlertKind.QUEUE_STALLED, BAD),
        (QueueFacts(stuck(received_per_second=2.0)), AlertKind.QUEUE_BEHIND, WARN),
        (
            QueueFacts(
                stuck(),
                history=history(received_per_second=[1, 0, 0], acknowledged_per_second=[0, 1, 0]),
            ),
            AlertKind.QUEUE_BEHIND,
            WARN,
        ),
        (
            QueueFacts(
                stuck(received_per_second=2.0, acknowledged_per_second=0.0),
                history=history(
                    received_per_second=[2] * 60, acknowledged_per_second=[1] * 20 + [0] * 40
                ),
            ),
            AlertKind.QUEUE_BLOCKED,
            BAD,
        ),
        (QueueFacts(stuck(), spec=PAUSED), AlertKind.QUEUE_PAUSED, WARN),
        (QueueFacts(stuck(), QueueCaps(3, None)), AlertKind.QUEUE_FULL, BAD),
        (QueueFacts(QueueSample(delayed=3), QueueCaps(3, None)), AlertKind.QUEUE_FULL, BAD),
        (QueueFacts(stuck(bytes_held=75), QueueCaps(None, 99)), AlertKind.QUEUE_FULL, BAD),
        (QueueFacts(stuck(bytes_held=75), QueueCaps(4, 100)), AlertKind.QUEUE_STALLED, BAD),
        (QueueFacts(stuck(age_ms=DAYS_3), spec=DEFAULT), AlertKind.QUEUE_EXPIRING, BAD),
        (
            QueueFacts(stuck(age_ms=60_000), spec=QueueSpec(retention_ms=100_000)),
            AlertKind.QUEUE_EXPIRING,
            BAD,
        ),
        (
            QueueFacts(
                stuck(age_ms=QUIET_MS), spec=DEFAULT, history=history(sent_per_second=[0, 0])
            ),
            AlertKind.QUEUE_QUIET,
            INFO,
        ),
        (
            QueueFacts(
                stuck(age_ms=QUIET_MS), spec=PAUSED, history=history(sent_per_second=[0, 1])
            ),
            AlertKind.QUEUE_PAUSED,
            WARN,
        ),
        (
            QueueFacts(stuck(), spec=DEFAULT, is_dead_letter_queue=True),
            AlertKind.DEAD_LETTER_QUEUE_OLD,
            INFO,
        ),
        (
            QueueFacts(
                stuck(),
                spec=DEFAULT,
                history=history(moved_in_per_second=[0, 1]),
                is_dead_letter_queue=True,
            ),
            AlertKind.DEAD_LETTER_QUEUE,
            WARN,
        ),
        (QueueFacts(QueueSample(parked=4)), AlertKind.QUEUE_PARKED, WARN),
        (
            QueueFacts(
                QueueSample(parked=4),
                spec=DEFAULT,
                history=history(QUIET_MS, parked=[4, 4], sent_per_second=[0, 0]),
            ),
            AlertKind.QUEUE_QUIET,
            INFO,
        ),
        (
            QueueFacts(
                QueueSample(parked=4),
                spec=DEFAULT,
                history=history(QUIET_MS, parked=[4, 4], sent_per_second=[0, 1]),
            ),
            AlertKind.QUEUE_PARKED,
            WARN,
        ),
        (QueueFacts(QueueSample(dead_lettered=4)), AlertKind.DEAD_LETTERS_OLD, INFO),
        (
            QueueFacts(QueueSample(dead_lettered=4, dead_full_per_second=1.0)),
            AlertKind.DEAD_LETTERS,
            BAD,
        ),
        (
            QueueFacts(QueueSample(dead_lettered=4), history=history(dead_lettered=[1, 4])),
            AlertKind.DEAD_LETTERS,
            BAD,
        ),
        (
            QueueFacts(QueueSample(dead_lettered=4), history=history(dead_lettered=[4, 4])),
            AlertKind.DEAD_LETTERS_OLD,
            INFO,
        ),
    ],
)
def test_state_of_queue_has_one_kind(facts, kind, level):
    [alert] = alerts_for(queues=only(facts))

    assert (alert.subject, alert.level) == (AlertSubject(kind, "orders"), level)


def test_consumed_queue_whose_age_stands_loses_nothing():
    """Its oldest message is as old as ever: consumers keep up."""
    ages = [DAYS_3] * 40
    facts = QueueFacts(
        stuck(age_ms=DAYS_3, received_per_second=1.0, acknowledged_per_second=1.0),
        spec=DEFAULT,
        history=history(oldest_age_ms=ages, sent_per_second=[1] * 40),
    )

    assert kinds_for(queues=only(facts)) == [AlertKind.QUEUE_BEHIND]


def test_consumed_queue_loses_messages_when_age_grows():
    facts = QueueFacts(
        stuck(age_ms=DAYS_3, received_per_second=1.0),
        spec=QueueSpec(retention_ms=DAYS_3 + limits.HOUR_MS * 2),
        history=history(oldest_age_ms=aging(DAYS_3)),
    )

    [alert] = alerts_for(queues=only(facts))

    assert alert.subject.kind is AlertKind.QUEUE_EXPIRING


def test_queue_has_alerts_about_each_of_its_states():
    facts = QueueFacts(stuck(parked=5, dead_lettered=2))

    assert kinds_for(queues=only(facts)) == [
        AlertKind.QUEUE_PARKED,
        AlertKind.QUEUE_STALLED,
        AlertKind.DEAD_LETTERS_OLD,
    ]


def test_texts_of_full_and_expiring_queues_name_the_consequence():
    full = QueueFacts(stuck(3), QueueCaps(3, None))
    expiring = QueueFacts(stuck(age_ms=DAYS_3 + limits.HOUR_MS), spec=DEFAULT)

    texts = {alert.title: alert.detail for alert in alerts_for(queues={"a": full, "b": expiring})}

    assert texts["a is full"] == "3 messages, 0 B. Sends are rejected."
    assert texts["b is losing messages"].endswith("Deleted in 23 h.")


def test_alert_has_start_of_its_state_and_last_event():
    facts = QueueFacts(QueueSample(dead_lettered=3), history=history(dead_lettered=[0, 1, 1, 3, 3]))

    [alert] = alerts_for(queues=only(facts))

    assert alert.start == StateStart(NOW_MS - 3 * STEP_MS)
    assert alert.last_ms == NOW_MS - STEP_MS
    assert alert.detail == "3 in the last hour."


# Groups


def lagging(records=5, lag_ms=WAITS_LONG_MS, **sample):
    return GroupSample(lag_records=records, unread_at_ms=NOW_MS - lag_ms, **sample)


WEEK = StreamSpec().retention_ms or 0


@pytest.mark.parametrize(
    ("facts", "kind", "level"),
    [
        (GroupFacts(lagging()), AlertKind.GROUP_STALLED, BAD),
        (GroupFacts(lagging(members=2)), AlertKind.GROUP_BEHIND, WARN),
        (GroupFacts(lagging(committed_per_second=2.0)), AlertKind.GROUP_BEHIND, WARN),
        (GroupFacts(lagging(), group(paused=True), stream()), AlertKind.GROUP_PAUSED, WARN),
        (
            GroupFacts(
                lagging(lag_ms=WEEK - limits.HOUR_MS),
                group(),
                stream(),
                history=history(lag_ms=aging(WEEK - limits.HOUR_MS)),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(lag_ms=40_000),
                group(),
                stream(retention_ms=60_000),
                history=history(lag_ms=aging(40_000, 4)),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(60),
                group(),
                stream(retention_records=100),
                history=history(lag_records=[20, 40, 60]),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(60),
                group(),
                stream(retention_bytes=1_000),
                StreamSample(records=100, bytes_held=1_000),
                history(lag_records=[20, 40, 60]),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(60, members=1),
                group(),
                stream(retention_records=100),
                history=history(lag_records=[60, 60, 60]),
            ),
            AlertKind.GROUP_BEHIND,
            WARN,
        ),
        (
            GroupFacts(
                lagging(lag_ms=2 * QUIET_MS),
                group(),
                stream(),
                history=history(QUIET_MS, lag_records=[5, 5]),
            ),
            AlertKind.GROUP_QUIET,
            INFO,
        ),
    ],
)
def test_state_of_group_has_one_kind(facts, kind, level):
    [alert] = alerts_for(groups={"readers": facts})

    assert (alert.subject, alert.level) == (AlertSubject(kind, "readers"), level)


def test_group_at_the_end_of_retention_is_losing_records():
    """Records are deleted as fast as they age, so that its lag in time stands."""
    facts = GroupFacts(lagging(lag_ms=WEEK), group(), stream(), history=history(lag_ms=[WEEK] * 40))

    [alert] = alerts_for(groups={"readers": facts})

    assert alert.title == "Group readers is losing records"
    assert alert.detail.endswith("Deleted now.")


def test_simple_group_is_not_said_to_lack_members():
    facts = GroupFacts(lagging(), group(kind=GroupKind.SIMPLE), stream())

    assert [alert.title for alert in alerts_for(groups={"a": facts})] == ["Group a is not read"]


# Webhooks, jobs, the deployment


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


def lagging_route(name, lag_ms, failure="", *, paused=False):
    target = RouteTarget(queue="billing")
    route = TopicRoute(
        name=RouteName(TopicName("orders"), name),
        stream_id="00ff00ff00ff00ff",
        number=1,
        spec=RouteSpec(target=target, paused=paused),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
        failure=failure,
    )
    return RouteProgress(route, 7, lag_ms)


def test_routes_that_fail_or_lag_are_named():
    far = limits.ROUTE_ALERT_LAG_MS
    routes = [
        lagging_route("near", far - 1),
        lagging_route("far", far),
        lagging_route("paused", far, "Queue 'billing' does not exist.", paused=True),
        lagging_route("failing", 5, "Queue 'billing' does not exist."),
    ]

    alerts = alerts_for(routes=routes)

    path = "/ui/topics/orders/routes"
    failure = "7 messages not yet examined. Queue 'billing' does not exist."
    assert [(alert.level, alert.title, alert.detail, alert.path) for alert in alerts] == [
        (BAD, "Route failing of topic orders is failing", failure, f"{path}/failing"),
        (
            WARN,
            "Route far of topic orders is 1 min behind",
            "7 messages not yet examined.",
            f"{path}/far",
        ),
    ]
    assert all(can_mute(alert.subject) for alert in alerts)


def test_topics_need_a_deliverer():
    processes = [one for one in ALL_PROCESSES if one.role is not ProcessRole.DELIVERER]

    assert kinds_for(processes=processes) == []
    assert kinds_for(processes=processes, has_topics=True) == [AlertKind.DELIVERER_MISSING]


def test_webhook_of_route_is_named_by_its_route():
    failing = webhook("route:orders.crm", source="queue:route:orders.crm", failing_since_ms=7)

    [alert] = alerts_for(webhooks=[failing])

    assert alert.title == "URL of route crm of topic orders is failing"
    assert alert.path == "/ui/webhooks/route:orders.crm"


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


@pytest.mark.parametrize(
    ("counts", "kind", "level"),
    [
        (SourceCounts(waiting=3, waiting_since_ms=NOW_MS - 1000), None, ""),
        (
            SourceCounts(waiting=3, waiting_since_ms=NOW_MS - limits.SOURCE_BLOCKED_MS),
            AlertKind.SOURCE_BLOCKED,
            BAD,
        ),
        (
            SourceCounts(waiting=3, waiting_bytes=limits.OUTBOX_BYTES_MAX, waiting_since_ms=1),
            AlertKind.SOURCE_FULL,
            BAD,
        ),
        (SourceCounts(rejected=1, last_rejected_at_ms=NOW_MS), AlertKind.SOURCE_REJECTING, WARN),
        (SourceCounts(last_rejected_at_ms=NOW_MS - 2 * limits.DAY_MS), None, ""),
        (SourceCounts(last_rejected_at_ms=NOW_MS - 2, last_accepted_at_ms=NOW_MS), None, ""),
    ],
)
def test_state_of_source_has_one_kind(counts, kind, level):
    alerts = alerts_for(sources=[SourceFacts(source(), counts, "no such queue")])

    assert [(alert.subject.kind, alert.level) for alert in alerts] == [(kind, level)] * bool(kind)


def test_waiting_events_have_reason_and_size():
    counts = SourceCounts(waiting=2, waiting_bytes=2048, waiting_since_ms=7)

    [failing] = alerts_for(sources=[SourceFacts(source(), counts, "no such queue")])
    [paused] = alerts_for(sources=[SourceFacts(source(paused=True), counts)])

    assert failing.detail == "2 events wait for the target, 2.0 KiB. no such queue"
    assert paused.detail == "2 events wait for the target, 2.0 KiB. It is paused."
    assert (failing.target, paused.target) == ("", "paused")
    assert failing.start == StateStart(7)


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


def test_store_memory_has_warning_and_error_thresholds():
    nearly = TotalSample(memory_used_bytes=81, memory_max_bytes=100)
    full = TotalSample(memory_used_bytes=round(MEMORY_FULL * 100), memory_max_bytes=100)
    used = history(memory_used_bytes=[70, 81, 86])

    [warning] = alerts_for(total=nearly, store_history=used)
    [error] = alerts_for(total=full, store_history=used)

    assert (warning.level, warning.title) == (WARN, "The hot store is nearly full")
    assert (error.level, error.title) == (BAD, "The hot store is full")
    assert warning.start == StateStart(NOW_MS - STEP_MS)
    assert error.start == StateStart(NOW_MS)


def test_missing_and_overloaded_processes_are_reported():
    processes = (process(ProcessRole.API, lag_ms=900),)
    total = TotalSample(sampled_at_ms=NOW_MS - limits.HOUR_MS)

    alerts = alerts_for(processes=processes, total=total)

    assert [alert.title for alert in alerts] == [
        "No sweeper is running",
        "Process 7 is overloaded",
    ]
    assert alerts[0].start == StateStart(NOW_MS - limits.HOUR_MS)


def test_object_that_a_task_cannot_serve_is_named():
    failing = FailingObject("archive", "streams/default/logs", "no bucket", 5, 6)
    processes = (*ALL_PROCESSES, process(ProcessRole.SWEEPER, failing=(failing,)))

    [alert] = alerts_for(processes=processes)

    assert alert.subject.object == "archive:streams:default:logs"
    assert (alert.detail, alert.start) == ("no bucket", StateStart(5))


def test_late_archive_is_reported():
    total = TotalSample(unarchived_at_ms=NOW_MS - 2 * limits.HOUR_MS)

    [alert] = alerts_for(total=total)

    assert alert.start == StateStart(NOW_MS - limits.HOUR_MS)


def test_store_that_is_not_in_sync_and_unknown_replica_are_reported():
    replica_set = ReplicaSet(
        members=("a:1", "b:1"),
        primary="a:1",
        term=2,
        epoch=2,
        phase=Phase.NORMAL,
        min_insync_replicas=2,
    )
    members = (
        MemberStatus(address="a:1", role=MemberRole.PRIMARY, state=MemberState.INSYNC),
        MemberStatus(address="b:1", role=MemberRole.AWAY, state=MemberState.AWAY),
    )
    stores = ReplicaSetStatus(replica_set=replica_set, members=members, unknown_replicas=("x:1",))

    unknown, missing = alerts_for(stores=stores)

    assert unknown.subject == AlertSubject(AlertKind.STORE_UNKNOWN_REPLICA, "x:1")
    assert missing.subject == AlertSubject(AlertKind.STORE_COPY_MISSING, "b:1")
    assert missing.detail == "1 of 2 stores are in sync; writes need 2."


def test_deployment_alerts_are_hidden_from_namespace_viewers():
    assert alerts_for(processes=(), checks={"redis": "no answer"}, sees_deployment=False) == []


# Order, groups, mutes


def test_alerts_are_ordered_by_harm():
    """A queue with 1,616 messages that grew was listed behind a single dead letter, and parked groups were the last."""
    grown = history(ready=[1400, 1616])
    queues = {
        "letters": QueueFacts(
            QueueSample(dead_lettered=9000), history=history(dead_lettered=[0, 9000])
        ),
        "behind": QueueFacts(stuck(2000, received_per_second=2.0)),
        "growing": QueueFacts(stuck(1616), history=grown),
        "parked": QueueFacts(QueueSample(parked=1522)),
        "small": QueueFacts(stuck(1)),
        "unused": QueueFacts(
            stuck(50_000, QUIET_MS), spec=DEFAULT, history=history(sent_per_second=[0, 0])
        ),
        "full": QueueFacts(stuck(10), QueueCaps(10, None)),
    }

    alerts = alerts_for(queues=queues, checks={"postgres": "no answer"})

    assert [alert.subject.object for alert in alerts] == [
        "postgres",
        "full",
        "growing",
        "small",
        "behind",
        "parked",
        "letters",
        "unused",
    ]


def test_many_alerts_of_one_kind_are_counted():
    queues = {
        f"q{number:05}": QueueFacts(QueueSample(dead_lettered=number + 1))
        for number in range(10_000)
    }

    [old] = found(queues=queues).quiet

    assert (old.objects, len(old.alerts)) == (10_000, NAMED_MAX)
    assert old.waiting == sum(range(10_001))
    assert old.alerts[0].title == "10,000 dead letters in q09999"
    assert old.page == ("/ui/queues", {"state": "dead"})


def test_group_has_first_start_and_last_event_of_its_alerts():
    queues = {
        name: QueueFacts(QueueSample(dead_lettered=3), history=history(dead_lettered=values))
        for name, values in (("a", [0, 1, 1, 1]), ("b", [0, 0, 1, 3]))
    }

    [letters] = found(queues=queues).groups

    assert letters.first is not None
    assert letters.first.start == StateStart(NOW_MS - 2 * STEP_MS)
    assert letters.last_ms == NOW_MS


def mute(kind, name="orders"):
    return AlertMute(
        namespace="default", kind=kind, object=name, muted_by="ada", muted_at_ms=0, until_ms=1
    )


def test_muted_alert_is_listed_apart():
    mutes = [mute(AlertKind.QUEUE_FULL), mute(AlertKind.QUEUE_STALLED)]

    alerts = found(mutes, queues={"orders": QueueFacts(stuck()), "mails": QueueFacts(stuck())})

    assert [alert.subject.object for alert in alerts.groups[0].alerts] == ["mails"]
    assert [(one.mute.kind, one.is_active) for one in alerts.muted] == [
        (AlertKind.QUEUE_STALLED, True),
        (AlertKind.QUEUE_FULL, False),
    ]


def test_state_that_gets_worse_is_not_muted():
    worse = QueueFacts(stuck(), QueueCaps(3, None))

    alerts = found([mute(AlertKind.QUEUE_STALLED)], queues=only(worse))

    assert [group.kind for group in alerts.groups] == [AlertKind.QUEUE_FULL]


SAMPLES = st.builds(
    QueueSample,
    ready=st.integers(0, 50),
    parked=st.integers(0, 5),
    dead_lettered=st.integers(0, 5),
    oldest_ready_at_ms=st.none() | st.integers(NOW_MS - 5 * limits.DAY_MS, NOW_MS),
    received_per_second=st.none() | st.floats(0, 5),
    sent_per_second=st.none() | st.floats(0, 5),
)
FACTS = st.builds(
    QueueFacts,
    SAMPLES,
    caps=st.none() | st.builds(QueueCaps, st.none() | st.integers(1, 50), st.none()),
    spec=st.none() | st.builds(QueueSpec, paused=st.booleans()),
    history=st.just(NO_HISTORY)
    | st.builds(
        lambda ready, sent: history(ready=ready, sent_per_second=sent),
        st.lists(st.integers(0, 50), min_size=3, max_size=3),
        st.lists(st.floats(0, 2), min_size=3, max_size=3),
    ),
)


@given(st.dictionaries(st.sampled_from("abcdefgh"), FACTS))
def test_alerts_are_sorted_by_rank_and_grouped_by_kind(queues):
    alerts = found(queues=queues)

    groups = (*alerts.groups, *alerts.quiet)
    for each in groups:
        ranks = [alert.finding.rank for alert in each.alerts]
        assert ranks == sorted(ranks)
    worst = [each.alerts[0].finding.rank for each in groups]
    assert worst == sorted(worst)
    assert len({each.kind for each in groups}) == len(groups)


@given(FACTS, st.integers(1, 1000))
def test_more_messages_never_rank_lower(facts, extra):
    """Of two queues in the same state, the one with more messages waiting is not behind the other."""
    more = facts._replace(
        caps=None,
        sample=QueueSample(**(as_fields(facts.sample) | {"ready": facts.sample.ready + extra})),
    )
    facts = facts._replace(caps=None)

    ranks = {
        alert.subject: alert.finding.rank
        for alert in alerts_for(queues={"more": more, "same": facts})
    }

    for subject, rank in ranks.items():
        if subject.object == "same":
            assert ranks[AlertSubject(subject.kind, "more")] <= rank


def as_fields(sample):
    return {name: getattr(sample, name) for name in sample.__struct_fields__}


def test_every_kind_has_a_label():
    assert set(LABELS) == set(AlertKind)
