"""Facts about a deployment, and the alerts that they cause."""

from typing import Any

from api.admin.alerts.alert import WAITS_LONG_MS, AlertInputs
from api.admin.alerts.engine import find_alerts
from storage.domain import limits
from storage.domain.groups.group import Group, GroupSpec
from storage.domain.names import GroupName, StreamName, WebhookName
from storage.domain.presence import ProcessRole, ProcessSeen
from storage.domain.streams.stream import Shard, Stream, StreamSpec
from storage.domain.timeseries.history import History
from storage.domain.timeseries.samples import QueueSample, Samples, TotalSample
from storage.domain.webhooks import DeliveryHealth, Source, Webhook, WebhookSpec

NOW_MS = 10_000_000_000
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


def find(mutes=(), **facts):
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
    alerts = find(**facts)
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
