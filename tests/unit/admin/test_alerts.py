"""Alerts of the dashboard, and their order."""

from typing import Any

from api.admin.alerts import (
    BAD,
    MEMORY_FULL,
    NAMED_MAX,
    WAITS_LONG_MS,
    WARN,
    AlertInputs,
    find_alerts,
)
from storage.domain.names import WebhookName
from storage.domain.presence import ProcessRole, ProcessSeen
from storage.domain.timeseries.samples import GroupSample, QueueSample, TotalSample
from storage.domain.webhooks import DeliveryHealth, Source, Webhook, WebhookSpec

NOW_MS = 1_000_000_000
LONG_AGO_MS = NOW_MS - WAITS_LONG_MS
WELL = {"redis": "ok", "postgres": "ok", "migrations": "ok"}


def process(role, lag_ms=0.0):
    return ProcessSeen(
        id=role,
        role=role,
        host="h",
        pid=7,
        version="1",
        started_at_ms=0,
        event_loop_lag_ms=lag_ms,
    )


ALL_PROCESSES = tuple(process(role) for role in ProcessRole)


def alerts_for(**facts):
    told: dict[str, Any] = {
        "now_ms": NOW_MS,
        "queues": {},
        "groups": {},
        "total": TotalSample(memory_used_bytes=1, memory_max_bytes=100),
        "died": {},
        "paused": frozenset(),
        "dead_letter_queues": frozenset(),
        "paused_groups": frozenset(),
        "webhooks": (),
        "failed_jobs": (),
        "unserved_jobs": (),
        "processes": ALL_PROCESSES,
        "checks": WELL,
        "sees_deployment": True,
    }
    return find_alerts(AlertInputs(**(told | facts)))


def test_healthy_deployment_has_no_alerts():
    queues = {"orders": QueueSample(ready=5, oldest_ready_at_ms=NOW_MS - 1000)}

    assert alerts_for(queues=queues) == []


def test_queue_without_receivers_is_most_severe():
    stuck = QueueSample(ready=3, oldest_ready_at_ms=LONG_AGO_MS, received_per_second=0.0)
    behind = QueueSample(ready=3, oldest_ready_at_ms=LONG_AGO_MS, received_per_second=2.0)

    alerts = alerts_for(queues={"behind": behind, "stuck": stuck})

    assert [(result.level, result.title) for result in alerts] == [
        (BAD, "No consumer receives from stuck"),
        (WARN, "behind is falling behind"),
    ]


def test_paused_queue_is_reported_as_paused():
    stuck = QueueSample(ready=3, oldest_ready_at_ms=LONG_AGO_MS)

    [alert] = alerts_for(queues={"orders": stuck}, paused=frozenset({"orders"}))

    assert (alert.level, alert.title) == (WARN, "orders is paused")


def test_new_dead_letters_are_more_severe_than_old_ones():
    queues = {"old": QueueSample(dead_lettered=9), "new": QueueSample(dead_lettered=1)}

    alerts = alerts_for(queues=queues, died={"new": 1})

    assert [(result.level, result.path) for result in alerts] == [
        (BAD, "/ui/queues/new/dead-letters"),
        (WARN, "/ui/queues/old/dead-letters"),
    ]


def test_many_alerts_of_one_kind_are_summarised():
    queues = {f"q{number:05}": QueueSample(dead_lettered=number + 1) for number in range(10_000)}

    alerts = alerts_for(queues=queues)

    assert len(alerts) == NAMED_MAX + 1
    assert alerts[0].title == "10,000 dead letters in q09999"
    assert alerts[-1].title == "9,994 more queues with dead letters"
    assert alerts[-1].parameters == {"state": "dead"}


def test_dead_letter_queue_needs_no_consumer():
    stuck = QueueSample(ready=3, oldest_ready_at_ms=LONG_AGO_MS)

    [alert] = alerts_for(queues={"dead": stuck}, dead_letter_queues=frozenset({"dead"}))

    assert (alert.level, alert.title) == (WARN, "Messages in the dead-letter queue dead")


def test_blocked_shard_is_reported_although_others_succeed():
    health = DeliveryHealth(blocked={3: "offset 7: 400", 5: "offset 1: 400"})
    webhook = Webhook(
        name=WebhookName("shop"),
        webhook_id="w",
        spec=WebhookSpec(source=Source.of("group:g"), url="https://shop.example"),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
        health=health,
    )

    [alert] = alerts_for(webhooks=[webhook])

    assert (alert.level, alert.title) == (BAD, "Webhook shop is blocked in 2 shards")
    assert alert.detail == "Shard 3, offset 7: 400"


def test_paused_group_is_reported_as_paused():
    groups = {"a": GroupSample(lag_records=5, unread_at_ms=LONG_AGO_MS)}

    [alert] = alerts_for(groups=groups, paused_groups=frozenset({"a"}))

    assert (alert.level, alert.title) == (WARN, "Group a is paused")


def test_group_without_members_precedes_lagging_group():
    late = {"lag_records": 5, "unread_at_ms": LONG_AGO_MS}

    alerts = alerts_for(groups={"a": GroupSample(members=2, **late), "b": GroupSample(**late)})

    assert [result.title for result in alerts] == ["Group b has no members", "Group a is lagging"]


def test_jobs_without_worker_are_reported_once():
    [alert] = alerts_for(unserved_jobs=[None] * 3)

    assert (alert.level, alert.title) == (BAD, "3 jobs waiting for a worker")


def test_store_memory_has_warning_and_error_thresholds():
    nearly = TotalSample(memory_used_bytes=81, memory_max_bytes=100)
    full = TotalSample(memory_used_bytes=round(MEMORY_FULL * 100), memory_max_bytes=100)

    assert [alert.title for alert in alerts_for(total=nearly)] == ["The hot store is nearly full"]
    assert [(alert.level, alert.title) for alert in alerts_for(total=full)] == [
        (BAD, "The hot store is full")
    ]


def test_missing_and_overloaded_processes_are_reported():
    processes = (process(ProcessRole.API, lag_ms=900),)

    alerts = alerts_for(processes=processes)

    assert [result.title for result in alerts] == [
        "No sweeper is running",
        "Process 7 is overloaded",
    ]


def test_deployment_alerts_are_hidden_from_namespace_viewers():
    alerts = alerts_for(processes=(), checks={"redis": "no answer"}, sees_deployment=False)

    assert alerts == []
