"""Long work that a worker does: what a job is, and the life of one.

    queued ──▶ running ──▶ done
      ▲  ▲        │ ├────▶ failed       its attempts are used up, or trying again would not help
      │  └────────┘ ├────▶ cancelled
      │  lost lease └────▶ paused
      └─────────────────────┘ resumed

A worker holds a running job by a lease that it renews. A job whose lease has run out is taken by the next
worker, under a higher attempt; what the old attempt still tries to write is refused by that number.
"""

from enum import StrEnum
from typing import Any

import msgspec


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


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `spec` and `progress` belong to its kind. `subject`: of one kind, namespace and subject at most
    one job is open. `attempt` counts how often it was begun; `failures`, those that ended in an error, which
    `attempts_max` bounds.
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
    progress: dict[str, Any]
    failure: str
    created_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None


class Claim(msgspec.Struct, frozen=True):
    """A worker's right to a job: valid while the job's row still names this attempt."""

    job_id: str
    attempt: int
    worker: str
