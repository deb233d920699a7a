"""Back-tests of views: another configuration, over the records that the rows include.

    submit ──▶ plan ──▶ job ──▶ snapshot of the present rows and of their positions
                            ──▶ batches of a revision that nobody reads, up to these positions
                            ──▶ differences of the rows, and the messages that the sinks would have got

Nothing is sent, and the view goes on meanwhile. A maintenance task deletes the rows of a back-test once its job is over.
"""

import attrs
import msgspec

from storage.domain import limits
from storage.domain.errors import JobNotFound, JobRefused, ValidationFailed
from storage.domain.jobs import Job, JobKind, JobState
from storage.domain.names import ViewName
from storage.domain.views.plan import ViewBackTestSpec
from storage.domain.views.progress import RevisionReport
from storage.domain.views.view import View, ViewQuery, ViewSpec
from storage.jobs import Jobs
from storage.views.engine import Views


class ViewBackTest(msgspec.Struct, frozen=True):
    """Back-test of a view; its result is None until the job is done."""

    job: Job
    spec: ViewSpec
    result: RevisionReport | None


@attrs.define(eq=False, slots=False)
class ViewBackTests:
    """Back-tests of views, by jobs."""

    _views: Views
    _jobs: Jobs

    async def submit(self, name: ViewName, spec: ViewSpec) -> ViewBackTest:
        """Submit a job that evaluates a configuration, or return the open one of the same.

        A view has one open job: JobRefused if that is of another configuration. Raises ViewNotFound, ViewPlanPending, and
        ValidationFailed, also for a query of another stream than the view's.
        """
        spec.check()
        view = await self._views.get(name)
        _check_stream(view, spec)
        spec = await self._views.with_columns(name, spec, view)
        plan = await self._views.plan_for(name, spec)
        test = ViewBackTestSpec(
            view_id=view.view_id, created_at_ms=view.created_at_ms, spec=spec, plan=plan
        )
        job = await self._jobs.submit(
            name.namespace,
            JobKind.VIEW_BACK_TEST,
            name.name,
            msgspec.to_builtins(test),
            attempts_max=limits.VIEW_BACK_TEST_ATTEMPTS_MAX,
            take_open=True,
        )
        submitted = _back_test_of(job)
        if submitted.spec != spec:
            detail = f"Job {job.job_id}, another back-test of this view, is still open."
            raise JobRefused(detail, reason="open", job_id=job.job_id)
        return submitted

    async def get(self, name: ViewName, job_id: str) -> ViewBackTest:
        """Return a back-test of the view. Raises JobNotFound."""
        job = await self._jobs.get(job_id)
        key = job.namespace, job.kind, job.subject
        if key != (name.namespace, JobKind.VIEW_BACK_TEST, name.name):
            raise JobNotFound(f"Back-test '{job_id}' of view '{name.name}' does not exist.")
        return _back_test_of(job)

    async def recent(self, name: ViewName, limit: int) -> list[ViewBackTest]:
        """Return the last back-tests of the view, the newest first."""
        jobs = await self._jobs.list(
            namespace=name.namespace,
            kind=JobKind.VIEW_BACK_TEST,
            subject=name.name,
            limit=limit,
        )
        return [_back_test_of(job) for job in jobs]


def _check_stream(view: View, spec: ViewSpec) -> None:
    streams, own = _streams_of(view.spec.query), _streams_of(spec.query)
    if own != streams:
        read = " and ".join(map(repr, streams))
        detail = f"The view reads {read}; a back-test evaluates the same records"
        if len(own) != len(streams):
            raise ValidationFailed.at("/from", detail, "conflict")
        pointer = f"/from/{spec.query.relation}/stream"
        raise ValidationFailed.at(pointer, detail, "conflict")


def _streams_of(query: ViewQuery) -> list[str]:
    """Return the streams that a query follows, the first one first."""
    return [query.input.stream, *(one.stream for one in query.joined.values())]


def _back_test_of(job: Job) -> ViewBackTest:
    spec = msgspec.convert(job.spec, ViewBackTestSpec).spec
    result = job.progress.get("result") if job.state is JobState.DONE else None
    return ViewBackTest(job, spec, msgspec.convert(result, RevisionReport | None))
