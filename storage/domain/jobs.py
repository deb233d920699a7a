"""Long work that a worker does: what a job is, and the life of one.

    queued ──▶ running ──▶ done
      ▲  ▲        │ ├────▶ failed       its attempts are used up, or trying again would not help
      │  └────────┘ ├────▶ cancelled
      │  lost lease └────▶ paused
      └─────────────────────┘ resumed

A worker holds a running job by a lease that it renews. A job whose lease has run out is taken by the next
worker, under a higher attempt; what the old attempt still tries to write is refused by that number.
A worker that ends in good order gives its jobs back, which is no failure; a lease that ran out is one.
"""

from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import JobRefused


class JobKind(StrEnum):
    """What is to be done."""

    ARCHIVE = "archive"
    """Copy ranges of logs into Parquet."""

    COMPACT = "compact"
    """Make few large files of many small ones."""

    REPLAY = "replay"
    """Send records of a stream again."""


class JobState(StrEnum):
    """Where a job is: see the picture above."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Nothing becomes of it any more."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class Wish(StrEnum):
    """What its owner wants of a job that a worker has in hand; the worker sees it at its next heartbeat."""

    NONE = "none"
    PAUSE = "pause"
    CANCEL = "cancel"


class Claim(msgspec.Struct, frozen=True):
    """A worker's right to a job: valid while the job's row still names this attempt."""

    job_id: str
    attempt: int
    worker: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `spec` and `progress` belong to its kind. `subject`: of one kind, namespace and subject at most
    one job is open. `attempt` counts how often it was begun; `failures`, those in a row that ended in an error
    or with their worker and got no further, which `attempts_max` bounds. A queued job waits until
    `run_after_ms`. `worker` is who has it in hand, or had it last.
    """

    job_id: str
    namespace: str
    kind: JobKind
    subject: str
    spec: dict[str, Any]
    state: JobState
    wish: Wish
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
    def claim(self) -> Claim:
        """The right of the worker that was given this job."""
        assert self.worker is not None
        return Claim(self.job_id, self.attempt, self.worker)


class JobPart(msgspec.Struct, frozen=True):
    """How far a part of a job is, a shard of a replay say: `position` is the next thing to do there, `counts`
    what was done."""

    part: str
    position: int
    done: bool
    counts: dict[str, int]


class LeaseLost(Exception):
    """This attempt does not hold the job any more; nothing was written."""


class JobCommand(StrEnum):
    """What a job's owner can say."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


class Standing(msgspec.Struct, frozen=True):
    """A job's state and the wish that stands."""

    state: JobState
    wish: Wish = Wish.NONE


def after_word(word: JobCommand, now: Standing, *, held: bool) -> Standing:
    """Where a job stands after its owner's word. `held`: a worker has it in hand, and will see the wish; what
    nobody has in hand changes at once. A word that is said again changes nothing. Raises JobRefused.
    """
    match word:
        case JobCommand.PAUSE:
            return _after_pause(now, held)
        case JobCommand.RESUME:
            return _after_resume(now)
        case JobCommand.CANCEL:
            return _after_cancel(now, held)
        case JobCommand.RETRY:
            return _after_retry(now)


def _after_pause(now: Standing, held: bool) -> Standing:
    if now.state.is_over or now.wish is Wish.CANCEL:
        raise _refusal("paused", now)
    return Standing(JobState.RUNNING, Wish.PAUSE) if held else Standing(JobState.PAUSED)


def _after_resume(now: Standing) -> Standing:
    if now.state.is_over or now.wish is Wish.CANCEL:
        raise _refusal("resumed", now)
    return Standing(JobState.QUEUED if now.state is JobState.PAUSED else now.state)


def _after_cancel(now: Standing, held: bool) -> Standing:
    if now.state is JobState.CANCELLED:
        return now
    if now.state.is_over:
        raise _refusal("cancelled", now)
    return Standing(JobState.RUNNING, Wish.CANCEL) if held else Standing(JobState.CANCELLED)


def _after_retry(now: Standing) -> Standing:
    if now.state is not JobState.FAILED:
        raise _refusal("retried", now)
    return Standing(JobState.QUEUED)


def _refusal(what: str, now: Standing) -> JobRefused:
    being = "being cancelled" if now.wish is Wish.CANCEL else now.state.value
    return JobRefused(f"The job cannot be {what}: it is {being}.", reason=now.state.value)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a job when its worker lets go of it. `wait_ms`: it is not begun again before."""

    state: JobState
    failures: int = 0
    wait_ms: int = 0
    failure: str = ""


def given_back(job: Job) -> Outcome:
    """The worker stopped, in good order, before the end: as the owner wished, or because it had to."""
    return Outcome(state=_as_wished(job.wish), failures=job.failures, failure=job.failure)


def failed(job: Job, failure: str, *, retry: bool, first_wait_ms: int) -> Outcome:
    """An attempt ended in an error. `retry`: another one may do better, and is made as long as there may be."""
    failures = job.failures + 1
    if not retry or failures >= job.attempts_max:
        return Outcome(state=JobState.FAILED, failures=failures, failure=failure)
    return Outcome(
        state=_as_wished(job.wish),
        failures=failures,
        wait_ms=wait_after_ms(failures, first_wait_ms),
        failure=failure,
    )


def _as_wished(wish: Wish) -> JobState:
    match wish:
        case Wish.NONE:
            return JobState.QUEUED
        case Wish.PAUSE:
            return JobState.PAUSED
        case Wish.CANCEL:
            return JobState.CANCELLED


def wait_after_ms(failures: int, first_ms: int) -> int:
    """How long a job rests after so many failures in a row, 1 or more: each time twice as long, up to a limit."""
    doublings = min(failures - 1, _DOUBLINGS_MAX)
    return min(first_ms << doublings, limits.JOB_BACKOFF_MS_MAX)


_DOUBLINGS_MAX = 30  # so that the number stays a small one; the limit is met long before
