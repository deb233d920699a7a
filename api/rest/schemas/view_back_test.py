"""Back-test schemas of views: the job that evaluates a configuration, and its result."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.field_map import Mapped
from api.rest.schema_base import Time
from api.rest.view_fields import RowDifferenceOut, differences_out, row_out
from storage.domain.jobs import JobState, RequestedState, WaitReason
from storage.domain.views.changes import ChangeKind, SinkMessage, SinkReport
from storage.domain.views.progress import RevisionReport
from storage.views.back_tests import ViewBackTest


class ViewBackTestMessage(BaseModel):
    """Message that a sink would have got: a change of a row, with the row's key."""

    change: ChangeKind
    key: str
    row: dict[str, Any] | None
    before: dict[str, Any] | None

    @classmethod
    def of(cls, message: SinkMessage) -> Self:
        """Return the message on the wire."""
        return cls(
            change=message.change,
            key=message.key,
            row=row_out(message.row),
            before=row_out(message.before),
        )


class ViewBackTestSink(BaseModel):
    """Messages that a sink would have got: their number, and the first 5 of at most 64 KiB."""

    sink: Annotated[str, Field(description="Kind and name, such as `queue:alerts`.")]
    messages: int
    samples: list[ViewBackTestMessage]

    @classmethod
    def of(cls, report: SinkReport) -> Self:
        """Return the messages of a sink on the wire."""
        samples = [ViewBackTestMessage.of(message) for message in report.samples]
        return cls(sink=report.sink, messages=report.messages, samples=samples)


class ViewBackTestResult(BaseModel):
    """Comparison of the rows of a back-test with those that the view had when it began.

    `exact`: both include the stream up to the same offsets. Fewer `records` than `view_records`: the configuration starts later, or
    retention has deleted the others. `samples` are the first rows that differ, at most 20 and 64 KiB: `before` is the view's.
    """

    revision: Annotated[int, Field(description="Number of the view's revision.")]
    exact: bool
    records: int
    view_records: int
    added: int
    removed: int
    changed: int
    samples: list[RowDifferenceOut]
    sinks: list[ViewBackTestSink]

    @classmethod
    def of(cls, report: RevisionReport) -> Self:
        """Return the result on the wire."""
        return cls(
            revision=report.former,
            exact=report.is_exact,
            records=report.records,
            view_records=report.former_records,
            added=report.added,
            removed=report.removed,
            changed=report.changed,
            samples=differences_out(report),
            sinks=[ViewBackTestSink.of(sink) for sink in report.sinks],
        )


class ViewBackTestOut(Mapped):
    """A back-test of a view, which runs as a job."""

    renamed = {"id": "job_id", "view": "subject"}

    id: Annotated[str, Field(description="Id of the job, by which it is cancelled and retried.")]
    view: str
    state: JobState
    requested_state: Annotated[RequestedState, Field(description="Pending action.")]
    waiting_for: Annotated[
        WaitReason | None, Field(description="Why the job makes no progress; null if it does.")
    ]
    attempt: int
    failure: Annotated[
        str, Field(description="Error of the last failed attempt; empty if none failed.")
    ]
    created_at: Time
    started_at: Time | None
    ended_at: Time | None
    sql: str
    records: Annotated[int, Field(description="Records that were evaluated.")]
    records_total: Annotated[
        int | None, Field(description="Records of the view's rows; null before the job has begun.")
    ]
    result: Annotated[ViewBackTestResult | None, Field(description="Null until the job is done.")]

    @classmethod
    def of(cls, back_test: ViewBackTest, waiting_for: WaitReason | None) -> Self:
        """Return the job with its state and result."""
        job, result = back_test.job, back_test.result
        return cls.mapped(
            job,
            sql=back_test.spec.query.sql,
            records=job.progress.get("records", 0),
            records_total=job.progress.get("records_total"),
            waiting_for=waiting_for,
            result=None if result is None else ViewBackTestResult.of(result),
        )


class ViewBackTestList(BaseModel):
    """The last back-tests of a view, the newest first."""

    items: list[ViewBackTestOut]
