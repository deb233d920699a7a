"""Job schemas."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.native.former_names import former_name
from api.rest.schema_base import Time
from storage.domain.jobs import (
    WAITING_FOR,
    Job,
    JobKind,
    JobPart,
    JobState,
    RequestedState,
    WaitReason,
)


class JobOut(BaseModel):
    """A job and its progress."""

    id: str
    kind: JobKind
    subject: Annotated[
        str, Field(description="At most one job of a type and subject is open at a time.")
    ]
    state: JobState
    requested_state: Annotated[RequestedState, Field(description="Pending action.")]
    wish: ClassVar[Any] = former_name("requested_state", RequestedState)
    waiting_for: Annotated[
        WaitReason | None,
        Field(description="Why the job makes no progress; null if it does."),
    ]
    attempt: Annotated[int, Field(description="Number of times the job was started.")]
    failures: Annotated[int, Field(description="Consecutive failed attempts without progress.")]
    attempts_max: int
    progress: Annotated[
        dict[str, Any], Field(description="Progress, in a format specific to the job type.")
    ]
    failure: Annotated[
        str, Field(description="Error of the last failed attempt; empty if none failed.")
    ]
    created_at: Time
    run_after: Annotated[Time, Field(description="A queued job does not start before this time.")]
    started_at: Time | None
    ended_at: Time | None

    @classmethod
    def from_domain(cls, job: Job, waiting_for: WaitReason | None) -> Self:
        return cls(**_fields(job), waiting_for=waiting_for)


class JobPartOut(BaseModel):
    """Progress of a part of a job."""

    part: str
    position: Annotated[int, Field(description="Next position of the part.")]
    done: bool
    counts: dict[str, int]


class JobDetail(JobOut):
    """A job and the progress of its parts."""

    parts: list[JobPartOut]

    @classmethod
    def of(cls, job: Job, parts: Mapping[str, JobPart], waiting_for: WaitReason | None) -> Self:
        """Return the job with its parts."""
        shown = [
            JobPartOut(part=part.part, position=part.position, done=part.done, counts=part.counts)
            for part in parts.values()
        ]
        return cls(**_fields(job), waiting_for=waiting_for, parts=shown)


class JobPage(BaseModel):
    """Jobs, newest first."""

    items: list[JobOut]
    next_cursor: str | None


def _fields(job: Job) -> dict[str, Any]:
    return {
        "id": job.job_id,
        "kind": job.kind,
        "subject": job.subject,
        "state": job.state,
        "requested_state": job.requested_state,
        "attempt": job.attempt,
        "failures": job.failures,
        "attempts_max": job.attempts_max,
        "progress": {name: value for name, value in job.progress.items() if name != WAITING_FOR},
        "failure": job.failure,
        "created_at": rfc3339(job.created_at_ms),
        "run_after": rfc3339(job.run_after_ms),
        "started_at": _time(job.started_at_ms),
        "ended_at": _time(job.ended_at_ms),
    }


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)
