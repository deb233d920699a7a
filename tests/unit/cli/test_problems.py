"""Problems in the description of a queue, stream, group or webhook."""

from datetime import UTC, datetime
from typing import Any

import pytest

from api.cli.descriptions.problems import (
    group_problems,
    queue_problems,
    stream_problems,
    webhook_problems,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR_AGO = "2026-01-31T11:00:00.000Z"
QUEUE = {
    "name": "orders",
    "paused": False,
    "messages_max": None,
    "bytes_max": None,
    "in_flight_max": 100,
    "overflow": "reject",
}
STATS = {
    **dict.fromkeys(("ready", "delayed", "in_flight", "parked", "dead_lettered", "bytes_held"), 0),
    "oldest_ready_at": HOUR_AGO,
}
STREAM = {"name": "clicks", "retention_seconds": 3_900}
SHARD = {"index": 0, "open": True, "fenced": False}
MEASURED = {"members": 1, "lag_records": 5, "oldest_unread_at": None}
GROUP = {"name": "billing", "kind": "ordered", "paused": False}
MEMBER = {"member": "a", "disconnected": False}
LEASE = {"shard": 0, "member": "a", "finished": False}
LAG = {"records": 0, "loss_in_seconds": None, "shards": [{"expired": 0}]}
HEALTH: dict[str, Any] = {
    "state": "active",
    "blocked": [],
    "last_failure": "500",
    "failing_since": HOUR_AGO,
    "disabled_at": HOUR_AGO,
    "disabled_reason": "failing",
}


@pytest.fixture(autouse=True)
def time(monkeypatch):
    monkeypatch.setattr("api.cli.shell.output.now", lambda: NOW)


def problems_of_queue(rate: float | None = 1.0, **changes: Any) -> list[str]:
    queue = {**QUEUE, **{name: changes[name] for name in changes if name in QUEUE}}
    stats = {**STATS, **{name: changes[name] for name in changes if name in STATS}}
    reasons = [{"count": 1, "reason": ""}, {"count": 3, "reason": "card expired"}]
    measurement = None if rate is None else {"received_per_second": rate, "consumers": 0}
    return queue_problems(queue, stats, measurement, reasons)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"ready": 7, "rate": 0},
            "7 messages are ready and none is received, the oldest since 1h; the queue has no",
        ),
        ({"ready": 9, "messages_max": 10}, "9 of messages_max 10: then overflow is reject."),
        ({"bytes_held": 95, "bytes_max": 100}, "95 of bytes_max 100"),
        ({"in_flight": 100}, "100 messages are in flight, which is in_flight_max"),
        ({"parked": 2}, "2 messages are parked"),
        ({"dead_lettered": 4}, "4 dead letters (3 card expired, 1 no reason)"),
        ({"paused": True, "ready": 7, "rate": 0}, "Paused. It accepts messages"),
    ],
)
def test_problem_of_queue_is_reported(changes, problem):
    [reported] = problems_of_queue(**changes)

    assert reported.startswith(problem)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ready": 7},
        {"ready": 7, "rate": None},
        {"ready": 8, "messages_max": 10},
        {"in_flight": 99},
    ],
)
def test_queue_at_work_has_no_problems(changes):
    assert problems_of_queue(**changes) == []


@pytest.mark.parametrize(
    ("group", "measurement", "problem"),
    [
        ({}, {"members": 0}, "Group billing has no members and 5 unread records."),
        ({"paused": True}, {}, "Group billing is paused and has 5 unread records."),
        ({}, {"oldest_unread_at": HOUR_AGO}, "Group billing is 1h behind; records expire after"),
    ],
)
def test_late_group_is_a_problem_of_stream(group, measurement, problem):
    groups = [{**GROUP, **group, "measurement": {**MEASURED, **measurement}}]

    [reported] = stream_problems(STREAM, [SHARD], groups)

    assert reported.startswith(problem)


@pytest.mark.parametrize(
    ("group", "measurement"),
    [
        ({}, {}),
        ({}, {"lag_records": 0, "members": 0}),
        ({"kind": "simple"}, {"members": 0}),
        ({"paused": True}, {"lag_records": 0}),
    ],
)
def test_reading_group_is_no_problem_of_stream(group, measurement):
    groups = [{**GROUP, **group, "measurement": {**MEASURED, **measurement}}]

    assert stream_problems(STREAM, [SHARD], groups) == []


def test_group_without_measurement_is_no_problem():
    assert stream_problems(STREAM, [SHARD], [{**GROUP, "measurement": None}]) == []


def test_fenced_shard_is_a_problem_while_open():
    shards = [{**SHARD, "fenced": True}, {"index": 1, "open": False, "fenced": True}]

    [reported] = stream_problems(STREAM, shards, [])

    assert reported.startswith("Shards 0 are fenced")


@pytest.mark.parametrize(
    ("group", "lag", "problem"),
    [
        ({}, {"shards": [{"expired": 2}, {"expired": 1}]}, "3 records expired before"),
        ({}, {"records": 1, "loss_in_seconds": 7_200}, "The next unread record expires in 2h."),
        ({"members": []}, {"records": 5}, "No members, and 5 records are unread."),
        ({"shards": [{**LEASE, "member": None}]}, {}, "Shards 0 have no member."),
        ({"members": [{**MEMBER, "disconnected": True}]}, {}, "Member a is disconnected"),
        ({"paused": True}, {}, "Paused. Its members receive no records"),
    ],
)
def test_problem_of_group_is_reported(group, lag, problem):
    details = {**GROUP, "members": [MEMBER], "shards": [LEASE], **group}

    [reported] = group_problems(details, {**LAG, **lag})

    assert reported.startswith(problem)


@pytest.mark.parametrize(
    ("group", "lag"),
    [
        ({}, {"records": 5, "loss_in_seconds": 100_000}),
        ({"members": [], "shards": [{**LEASE, "member": None}]}, {}),
        ({"kind": "simple", "members": []}, {"records": 5}),
        ({"shards": [{**LEASE, "member": None, "finished": True}]}, {}),
    ],
)
def test_reading_group_has_no_problems(group, lag):
    details = {**GROUP, "members": [MEMBER], "shards": [LEASE], **group}

    assert group_problems(details, {**LAG, **lag}) == []


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"state": "failing"}, ["Failing since 1h: 500."]),
        ({"state": "paused"}, ["Paused; `millstream webhook resume hook` resumes it."]),
        (
            {"state": "disabled", "last_failure": "gone."},
            ["Disabled since 1h (failing): gone. `millstream webhook resume hook` enables it."],
        ),
        (
            {"blocked": [{"shard": 3, "failure": "400"}]},
            ["Shard 3 waits for a record that is not accepted: 400"],
        ),
    ],
)
def test_problem_of_webhook_is_reported(changes, problems):
    assert webhook_problems({"name": "hook", "health": {**HEALTH, **changes}}) == problems
