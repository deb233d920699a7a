"""Jobs: background work of workers, and its life cycle.

    queued ──▶ running ──▶ done
      ▲  ▲        │ ├────▶ failed       its attempts are used up, or a retry would not help
      │  └────────┘ ├────▶ cancelled
      │  lost lease └────▶ paused
      └─────────────────────┘ resumed

A worker holds a running job by a lease that it renews. A job whose lease has expired is taken by the next
worker, under a higher attempt number, which fences writes of the old attempt. A worker that shuts down properly
returns its jobs, which is not a failure; an expired lease is one.
"""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import JobRefused


class JobSlots(StrEnum):
    """Slots of a worker that kinds of jobs share.

    short: what is not archived in time is lost to retention. long: jobs that may last for days. views: scans have no end.
    queries: their results are in the worker's memory.
    """

    SHORT = "short"
    LONG = "long"
    VIEWS = "views"
    QUERIES = "queries"


class JobKind(StrEnum):
    """Type of a job."""

    ARCHIVE = "archive"
    """Copy ranges of logs into Parquet."""

    COMPACT = "compact"
    """Merge many small files into few large ones."""

    REPLAY = "replay"
    """Send records of a stream again."""

    BACK_TEST = "backtest"
    """Evaluate a match on the messages of a topic."""

    VIEW_PLAN = "view_plan"
    """Plan the query of a view."""

    VIEW_SEARCH = "view_search"
    """Find the records that contributed to a row of a view."""

    VIEW_SCAN = "view_scan"
    """Keep the views over a stream up to date. Such a job has no end while there are any."""

    VIEW_BACK_TEST = "view_backtest"
    """Evaluate a query and its sinks over the records of a view."""

    QUERY = "query"
    """Run a query once."""

    @property
    def slots(self) -> JobSlots:
        """Slots of a worker that such a job takes."""
        match self:
            case JobKind.ARCHIVE | JobKind.COMPACT:
                return JobSlots.SHORT
            case JobKind.REPLAY | JobKind.BACK_TEST | JobKind.VIEW_BACK_TEST:
                return JobSlots.LONG
            case JobKind.VIEW_PLAN | JobKind.VIEW_SEARCH | JobKind.VIEW_SCAN:
                return JobSlots.VIEWS
            case JobKind.QUERY:
                return JobSlots.QUERIES


CALL_KINDS = (JobKind.VIEW_PLAN, JobKind.VIEW_SEARCH, JobKind.QUERY)
"""Kinds that a call submits and waits for: it is told of a failure, and the result is deleted with the job."""

WAITING_FOR = "waiting_for"
"""Member of a job's progress: why its last attempt gave its place back, or why the present one waits."""


class JobState(StrEnum):
    """State of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """True if the state is final."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class RequestedState(StrEnum):
    """Action requested by a running job's owner; its worker sees it at its next heartbeat."""

    NONE = "none"
    PAUSE = "pause"
    CANCEL = "cancel"


class WaitReason(StrEnum):
    """Reason why an open job makes no progress.

    worker: no worker runs. capacity: the workers have no free place. readers: a replay's target has a backlog larger than its
    `lag_records_max`. target: the target accepts nothing. pace: the next record is due later, at the replay's speed.
    spark: the job's worker starts Spark, for its first job, or Spark is not installed yet. executors: the Spark cluster runs
    none that can do the job; `failure` says why.
    """

    WORKER = "worker"
    CAPACITY = "capacity"
    READERS = "readers"
    TARGET = "target"
    PACE = "pace"
    SPARK = "spark"
    EXECUTORS = "executors"


class JobLease(msgspec.Struct, frozen=True):
    """A worker's claim to a job: valid while the job's row still has this attempt."""

    job_id: str
    attempt: int
    worker: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job.

    `spec` and `progress` are specific to its kind. `subject`: of one kind, namespace and subject at most one job is
    open. `attempt` counts how often it was started; `failures` counts consecutive attempts that ended in an error, or
    with the death of their worker, without progress; `attempts_max` bounds it. A queued job waits until
    `run_after_ms`. `worker` is the one that holds it, or held it last.
    """

    job_id: str
    namespace: str
    kind: JobKind
    subject: str
    spec: dict[str, Any]
    state: JobState
    requested_state: RequestedState
    attempt: int
    failures: int
    attempts_max: int
    run_after_ms: int
    worker: str | None
    progress: dict[str, Any]
    failure: str
    created_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None

    @property
    def claim(self) -> JobLease:
        """Claim of the worker that was given this job."""
        assert self.worker is not None
        return JobLease(self.job_id, self.attempt, self.worker)

    def waiting_for(self, now_ms: int, *, has_worker: bool) -> WaitReason | None:
        """Return why the job makes no progress now; None if it runs or is about to start.

        `has_worker`: a worker process runs.
        """
        if self.state is JobState.RUNNING and self.progress.get(WAITING_FOR) == WaitReason.SPARK:
            return WaitReason.SPARK
        if self.state is not JobState.QUEUED:
            return None
        if not has_worker:
            return WaitReason.WORKER
        if WAITING_FOR in self.progress:
            return WaitReason(self.progress[WAITING_FOR])
        is_late = now_ms - self.run_after_ms > limits.JOB_CAPACITY_NOTED_MS
        return WaitReason.CAPACITY if is_late else None


class JobPart(msgspec.Struct, frozen=True):
    """Progress of a part of a job, for example a shard of a replay.

    `position` is the next item to process there, `counts` the work done.
    """

    part: str
    position: int
    done: bool
    counts: dict[str, int]


class LeaseLost(Exception):
    """Error: this attempt no longer holds the job; nothing was written."""


class JobCommand(StrEnum):
    """Command of a job's owner."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


class JobStatus(msgspec.Struct, frozen=True):
    """A job's state and its pending action."""

    state: JobState
    requested_state: RequestedState = RequestedState.NONE


def apply_command(command: JobCommand, now: JobStatus, *, is_leased: bool) -> JobStatus:
    """Return the state of a job after its owner's command. Raises JobRefused.

    `is_leased`: a worker holds it, and will see the requested action; a job without a worker changes immediately. A
    repeated command changes nothing.
    """
    match command:
        case JobCommand.PAUSE:
            return _after_pause(now, is_leased)
        case JobCommand.RESUME:
            return _after_resume(now)
        case JobCommand.CANCEL:
            return _after_cancel(now, is_leased)
        case JobCommand.RETRY:
            return _after_retry(now)


def _after_pause(now: JobStatus, is_leased: bool) -> JobStatus:
    if now.state.is_over or now.requested_state is RequestedState.CANCEL:
        raise _refusal("paused", now)
    return (
        JobStatus(JobState.RUNNING, RequestedState.PAUSE)
        if is_leased
        else JobStatus(JobState.PAUSED)
    )


def _after_resume(now: JobStatus) -> JobStatus:
    if now.state.is_over or now.requested_state is RequestedState.CANCEL:
        raise _refusal("resumed", now)
    return JobStatus(JobState.QUEUED if now.state is JobState.PAUSED else now.state)


def _after_cancel(now: JobStatus, is_leased: bool) -> JobStatus:
    if now.state is JobState.CANCELLED:
        return now
    if now.state.is_over:
        raise _refusal("cancelled", now)
    return (
        JobStatus(JobState.RUNNING, RequestedState.CANCEL)
        if is_leased
        else JobStatus(JobState.CANCELLED)
    )


def _after_retry(now: JobStatus) -> JobStatus:
    if now.state is not JobState.FAILED:
        raise _refusal("retried", now)
    return JobStatus(JobState.QUEUED)


def _refusal(what: str, now: JobStatus) -> JobRefused:
    being = "being cancelled" if now.requested_state is RequestedState.CANCEL else now.state.value
    return JobRefused(f"The job cannot be {what} because it is {being}.", reason=now.state.value)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """State of a job after its worker releases it. `wait_ms`: delay before the next attempt."""

    state: JobState
    failures: int = 0
    wait_ms: int = 0
    failure: str = ""


def released(job: Job) -> Outcome:
    """Return the outcome of a job whose worker stopped properly before the end.

    Either the owner requested it, or the worker had to stop.
    """
    return Outcome(
        state=_state_for(job.requested_state), failures=job.failures, failure=job.failure
    )


def waiting(job: Job, wait_ms: int, failure: str = "") -> Outcome:
    """Return the outcome of an attempt that gave its place back, to continue after `wait_ms`.

    `failure` is why, if something failed that is not the job.
    """
    outcome = released(job)
    if failure:
        outcome = replace(outcome, failure=failure)
    return outcome if outcome.state is not JobState.QUEUED else replace(outcome, wait_ms=wait_ms)


def failed(job: Job, failure: str, *, retry: bool, first_wait_ms: int) -> Outcome:
    """Return the outcome of an attempt that ended in an error.

    `retry`: another attempt may succeed, and is made while `attempts_max` permits.
    """
    failures = job.failures + 1
    if not retry or failures >= job.attempts_max:
        return Outcome(state=JobState.FAILED, failures=failures, failure=failure)
    return Outcome(
        state=_state_for(job.requested_state),
        failures=failures,
        wait_ms=wait_after_ms(failures, first_wait_ms),
        failure=failure,
    )


def _state_for(requested: RequestedState) -> JobState:
    match requested:
        case RequestedState.NONE:
            return JobState.QUEUED
        case RequestedState.PAUSE:
            return JobState.PAUSED
        case RequestedState.CANCEL:
            return JobState.CANCELLED


def wait_after_ms(failures: int, first_ms: int) -> int:
    """Return the back-off after this many consecutive failures, 1 or more.

    It doubles each time, up to a limit.
    """
    doublings = min(failures - 1, _DOUBLINGS_MAX)
    return min(first_ms << doublings, limits.JOB_BACKOFF_MS_MAX)


_DOUBLINGS_MAX = 30  # so that the number stays small; the limit is reached long before
