"""Back-test schemas: what is evaluated, the jobs that do so, and their results."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.field_map import Mapped, MappedConfig, domain_value
from api.rest.schema_base import Moment, Time
from api.rest.topic_fields import RouteMatchField
from api.rest.view_fields import RowDifferenceOut, differences_out, row_out
from storage.domain import limits
from storage.domain.jobs import JobState, RequestedState, WaitReason
from storage.domain.topics.back_test import BackTest, BackTestResult
from storage.domain.views.changes import ChangeKind, SinkMessage, SinkReport
from storage.domain.views.progress import RevisionReport
from storage.topics.back_tests import BackTestJob
from storage.views.back_tests import ViewBackTest


class BackTestJobConfig(MappedConfig):
    """A match, to be evaluated on all messages that a topic has, by a job."""

    domain = BackTest

    match: RouteMatchField = None
    compare_with: Annotated[
        str | None, Field(description="Name of a route, whose present match is evaluated too.")
    ] = None
    start_time: Annotated[
        Moment | None,
        Field(description="Messages accepted at or after this time; null: from the earliest on."),
    ] = None
    end_time: Annotated[
        Moment | None, Field(description="Messages accepted before this time; null: until now.")
    ] = None
    samples_max: Annotated[int, Field(description="Ids of each kind to return at most.")] = (
        limits.BACK_TEST_SAMPLES_DEFAULT
    )

    def to_domain(self) -> BackTest:
        return domain_value(BackTest, self, match=self.match)


class BackTestConfig(BackTestJobConfig):
    """A match, to be evaluated on the messages that a topic has."""

    messages_max: Annotated[
        int,
        Field(description="Messages to evaluate at most. If there are more, `complete` is false."),
    ] = limits.BACK_TEST_MESSAGES_MAX


class BackTestSamples(Mapped):
    """Ids of the first messages of each kind."""

    matched: list[str]
    gained: list[str]
    lost: list[str]


class BackTestOut(Mapped):
    """Messages that a match takes, of those that were evaluated."""

    evaluated: int
    matched: int
    gained: Annotated[
        int | None, Field(description="Taken by the match, and not by the route to compare with.")
    ]
    lost: Annotated[
        int | None, Field(description="Taken by the route to compare with, and not by the match.")
    ]
    failed_by_path: Annotated[
        dict[str, int],
        Field(description="Messages that fail a condition, by its path; most first."),
    ]
    samples: BackTestSamples
    complete: Annotated[
        bool,
        Field(description="False if the range has, or had, more messages than were evaluated."),
    ]

    @classmethod
    def of(cls, result: BackTestResult, *, has_other: bool) -> Self:
        """Return a result; `has_other` if a route was compared."""
        failed = sorted(result.failed_by_path.items(), key=lambda item: (-item[1], item[0]))
        samples = BackTestSamples(
            matched=[*map(str, result.matched_ids)],
            gained=[*map(str, result.gained_ids)],
            lost=[*map(str, result.lost_ids)],
        )
        return cls.from_domain(
            result,
            gained=result.gained if has_other else None,
            lost=result.lost if has_other else None,
            failed_by_path=dict(failed),
            samples=samples,
        )


class BackTestState(Mapped):
    """A back-test that runs as a job: its state."""

    renamed = {"id": "job_id"}

    id: Annotated[str, Field(description="Id of the job, by which it is cancelled and retried.")]
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


class BackTestJobOut(BackTestState):
    """A back-test that runs as a job, and its result so far."""

    topic: str
    match: RouteMatchField
    compare_with: str | None
    start_time: Time | None
    end_time: Time | None
    messages: Annotated[
        int, Field(description="Messages of the range, of which `result.evaluated` are evaluated.")
    ]
    result: BackTestOut

    @classmethod
    def of(cls, back_test: BackTestJob, waiting_for: WaitReason | None) -> Self:
        """Return the job with its state and result."""
        job, spec = back_test.job, back_test.spec
        has_other = spec.test.compare_with is not None
        return cls.mapped(
            job,
            spec,
            spec.test,
            match=spec.test.match,
            waiting_for=waiting_for,
            result=BackTestOut.of(back_test.result, has_other=has_other),
        )


# Views


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


class ViewBackTestOut(BackTestState):
    """A back-test of a view, which runs as a job."""

    view: str
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
            view=job.subject,
            sql=back_test.spec.query.sql,
            records=job.progress.get("records", 0),
            records_total=job.progress.get("records_total"),
            waiting_for=waiting_for,
            result=None if result is None else ViewBackTestResult.of(result),
        )


class ViewBackTestList(BaseModel):
    """The last back-tests of a view, the newest first."""

    items: list[ViewBackTestOut]
