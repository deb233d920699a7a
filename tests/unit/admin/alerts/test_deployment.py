"""Alerts of the deployment: its stores, processes and archive."""

from api.admin.alerts.alert import BAD, WARN
from api.admin.alerts.deployment import MEMORY_FULL
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.presence import FailingObject, ProcessRole
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    ReplicaSet,
    ReplicaSetStatus,
)
from storage.domain.timeseries.history import StateStart
from storage.domain.timeseries.samples import TotalSample
from tests.unit.admin.alerts.facts import (
    ALL_PROCESSES,
    NOW_MS,
    STEP_MS,
    alerts_for,
    history,
    process,
)


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
