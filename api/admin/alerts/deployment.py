"""Alerts of the deployment: stores, processes, and objects that tasks cannot serve."""

from collections.abc import Iterator

from api.admin import display_formats
from api.admin.alerts.alert import Alert, AlertCandidate, AlertInputs
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.rank import Finding
from storage.domain.presence import ProcessRole
from storage.domain.replication.replica_set import MemberState, ReplicaSetStatus
from storage.domain.timeseries.history import StateCondition, StateStart
from storage.domain.timeseries.samples import TotalSample

ARCHIVE_LATE_MS = limits.HOUR_MS
"""Age of the oldest unarchived record from which the archive is behind."""

MEMORY_HIGH, MEMORY_FULL = 0.8, 0.85
"""Of the store's memory: there is little left, and writes are refused (storage.memory_guard)."""

LOOP_LATE_MS = 200
"""Lag of an event loop from which every request waits for long."""

STARTS_MS = 30 * limits.SECOND_MS
"""Time for other processes to start, after the first of them did."""

MEMORY_COLUMNS = ("memory_used_bytes",)
"""Columns of the deployment's history that the rules look at."""


def deployment_alerts(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    """Yield the alerts of what does not belong to a namespace."""
    yield from _checks(inputs)
    yield from _missing_processes(inputs)
    for process in inputs.processes:
        if process.event_loop_lag_ms >= LOOP_LATE_MS:
            lag = display_formats.format_duration(process.event_loop_lag_ms)
            yield _candidate(
                AlertKind.PROCESS_OVERLOADED,
                process.id,
                f"Process {process.pid} is overloaded",
                f"Its event loop lags by {lag}.",
            )
    yield from _failing_objects(inputs)
    if inputs.stores is not None:
        yield from _replica_set(inputs.stores)
    if inputs.total is not None:
        yield from _memory(inputs, inputs.total)
        yield from _archive(inputs.total, inputs.now_ms)


def _candidate(
    kind: AlertKind,
    name: str,
    title: str,
    detail: str,
    *,
    start: StateStart | None = None,
    path: str = "/ui/system",
) -> AlertCandidate:
    def describe(finding: Finding) -> Alert:
        return Alert(finding=finding, title=title, detail=detail, path=path, start=start)

    return AlertCandidate(Finding(AlertSubject(kind, name)), describe)


def _checks(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    for check, result in inputs.checks.items():
        if result != "ok":
            title = f"{check.capitalize()} check failed"
            yield _candidate(AlertKind.CHECK_FAILED, check, title, result)


def _missing_processes(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    if not any(inputs.now_ms - one.started_at_ms >= STARTS_MS for one in inputs.processes):
        return
    roles = {process.role for process in inputs.processes}
    if ProcessRole.SWEEPER not in roles:
        sampled_at_ms = inputs.total.sampled_at_ms if inputs.total else 0
        yield _candidate(
            AlertKind.SWEEPER_MISSING,
            "sweeper",
            "No sweeper is running",
            "Maintenance tasks and metrics sampling are stopped.",
            start=StateStart(sampled_at_ms) if sampled_at_ms else None,
        )
    if (inputs.webhooks or inputs.has_topics) and ProcessRole.DELIVERER not in roles:
        yield _candidate(
            AlertKind.DELIVERER_MISSING,
            "deliverer",
            "No deliverer is running",
            "Deliveries of webhooks, and routes of topics, are stopped.",
        )


def _failing_objects(inputs: AlertInputs) -> Iterator[AlertCandidate]:
    failing = {
        (entry.task, entry.object): entry
        for process in inputs.processes
        for entry in process.failing
    }
    for entry in failing.values():
        yield _candidate(
            AlertKind.OBJECT_FAILING,
            f"{entry.task}:{entry.object}".replace("/", ":"),
            f"Task {entry.task} fails for {entry.object}",
            entry.reason,
            start=StateStart(entry.since_ms),
        )


def _replica_set(stores: ReplicaSetStatus) -> Iterator[AlertCandidate]:
    for address in stores.unknown_replicas:
        yield _candidate(
            AlertKind.STORE_UNKNOWN_REPLICA,
            address,
            f"{address} replicates the store and is not a member",
            "Disconnect it: it is counted as a copy, and acknowledged writes can be lost with one machine.",
            path="/ui/stores",
        )
    for member in stores.members:
        if member.state is not MemberState.INSYNC:
            yield _candidate(
                AlertKind.STORE_COPY_MISSING,
                member.address,
                f"Store {member.address} is {member.state}",
                f"{stores.insync_replicas} of {len(stores.members)} stores are in sync; writes need"
                f" {stores.replica_set.min_insync_replicas}.",
                path="/ui/stores",
            )


def _memory(inputs: AlertInputs, total: TotalSample) -> Iterator[AlertCandidate]:
    if not is_memory_high(total):
        return
    used, most = total.memory_used_bytes or 0, total.memory_max_bytes or 0
    detail = f"{display_formats.size(used)} of {display_formats.size(most)}."
    is_full = used / most >= MEMORY_FULL
    share = MEMORY_FULL if is_full else MEMORY_HIGH
    start = inputs.store_history.start_of(StateCondition(MEMORY_COLUMNS, share * most))
    if is_full:
        title, detail = "The hot store is full", f"{detail} Writes are rejected."
        yield _candidate(AlertKind.STORE_FULL, "hot_store", title, detail, start=start)
    else:
        title, detail = "The hot store is nearly full", f"{detail} Writes are rejected at 85 %."
        yield _candidate(AlertKind.STORE_NEARLY_FULL, "hot_store", title, detail, start=start)


def is_memory_high(total: TotalSample | None) -> bool:
    """Return whether the store's memory has an alert."""
    if total is None or total.memory_used_bytes is None or not total.memory_max_bytes:
        return False
    return total.memory_used_bytes / total.memory_max_bytes >= MEMORY_HIGH


def _archive(total: TotalSample, now_ms: int) -> Iterator[AlertCandidate]:
    late_ms = total.archive_lag_ms(now_ms)
    if late_ms >= ARCHIVE_LATE_MS:
        age = display_formats.format_duration(late_ms)
        yield _candidate(
            AlertKind.ARCHIVE_BEHIND,
            "archive",
            "Archiving is falling behind",
            f"The oldest unarchived record has waited {age}.",
            start=StateStart(now_ms - late_ms + ARCHIVE_LATE_MS),
            path="/ui/streams",
        )
