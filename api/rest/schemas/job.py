"""Job schemas."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from api.native.former_names import former_name
from api.rest.field_map import Mapped
from api.rest.schema_base import ListPage, Time
from storage.domain.jobs import (
    WAITING_FOR,
    Job,
    JobKind,
    JobState,
    RequestedState,
    WaitReason,
)


class JobOut(Mapped):
    """A job and its progress."""

    renamed = {"id": "job_id"}

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
    def of(cls, job: Job, waiting_for: WaitReason | None, **others: Any) -> Self:
        """Return the job with its state."""
        progress = {name: value for name, value in job.progress.items() if name != WAITING_FOR}
        return cls.from_domain(job, progress=progress, waiting_for=waiting_for, **others)


class JobPartOut(Mapped):
    """Progress of a part of a job."""

    part: str
    position: Annotated[int, Field(description="Next position of the part.")]
    done: bool
    counts: dict[str, int]


class JobDetail(JobOut):
    """A job and the progress of its parts."""

    parts: list[JobPartOut]


class JobPage(ListPage[JobOut]):
    """Jobs, newest first."""
