"""Query engine: fixes what a query reads, submits its job, and waits for the rows.

submit ─▶ check relations ─▶ ranges of their streams ─▶ job of a worker ─▶ rows, stored with the job
"""

import asyncio
import secrets
from contextlib import suppress

import attrs
import msgspec

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import (
    JobNotFound,
    JobRefused,
    MillstreamError,
    QueryFailed,
    StorageBusy,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.jobs import Job, JobKind, JobLease, JobState, WaitReason
from storage.domain.names import StreamName, ViewName
from storage.domain.queries.query import REFUSED_AT, QuerySpec, SqlQuery, StreamRanges
from storage.domain.queries.result import QueryResult
from storage.jobs import Jobs
from storage.operations.job_waits import JobWaiter
from storage.postgres.repositories.query_results import QueryResultRows
from storage.postgres.repositories.views import ViewRows
from storage.streams.read import RecordReader
from storage.streams.seek import ranges_of_shards

_OPEN = (JobState.QUEUED, JobState.RUNNING)
_results = msgspec.json.Decoder(QueryResult)


class Query(msgspec.Struct, frozen=True):
    """A query that runs as a job. `result`: None until it is done."""

    job: Job
    spec: QuerySpec
    result: QueryResult | None = None
    waiting_for: WaitReason | None = None


@attrs.define(eq=False, slots=False, kw_only=True)
class Queries:
    """The queries of a deployment; the id of a query is that of its job."""

    _catalog: Catalog
    _reader: RecordReader
    _views: ViewRows
    _rows: QueryResultRows
    _jobs: Jobs
    _waiter: JobWaiter

    async def run(self, namespace: str, query: SqlQuery) -> Query:
        """Run a query; wait for its end, up to QUERY_WAIT_MS, and not without a worker.

        Raises ValidationFailed if the query is invalid or refused, QueryFailed if it fails or is cancelled, StorageBusy if
        QUERIES_OPEN_MAX of the namespace are open.
        """
        submitted = await self.submit(namespace, query)
        job, reason = await self._waiter.ended(submitted.job, limits.QUERY_WAIT_MS)
        if job.state.is_over and job.state is not JobState.DONE:
            raise failure_of(job)
        return await self._query_of(job, reason)

    async def submit(self, namespace: str, query: SqlQuery) -> Query:
        """Submit a query over the records that its streams have now, as `run` does."""
        query.check()
        await self._check_open(namespace)
        await self._check_views(namespace, query)
        sources = [*query.sources()]
        ranges = await asyncio.gather(
            *(self._ranges(namespace, query, *source) for source in sources)
        )
        reads = {name: of_name for (name, _, _), of_name in zip(sources, ranges, strict=True)}
        spec = QuerySpec(query=query, reads=reads)
        job_id = secrets.token_hex(16)
        job = await self._jobs.submit(
            namespace,
            JobKind.QUERY,
            job_id,
            msgspec.to_builtins(spec),
            attempts_max=limits.QUERY_ATTEMPTS_MAX,
            job_id=job_id,
        )
        return Query(job, spec)

    async def get(self, namespace: str, query_id: str) -> Query:
        """Return a query of the namespace, with its result once it is done. Raises JobNotFound."""
        job = await self._job(namespace, query_id)
        return await self._query_of(job, await self._waiter.reason(job))

    async def recent(self, namespace: str, limit: int) -> list[Query]:
        """Return the last queries of a namespace without their results, the newest first."""
        jobs = await self._jobs.list(namespace=namespace, kind=JobKind.QUERY, limit=limit)
        return [Query(job, msgspec.convert(job.spec, QuerySpec)) for job in jobs]

    async def cancel(self, namespace: str, query_id: str) -> Query:
        """Cancel a query; one that has ended stays as it is. Raises JobNotFound."""
        job = await self._job(namespace, query_id)
        if not job.state.is_over:
            with suppress(JobRefused):  # it has ended since
                await self._jobs.cancel(query_id)
        return await self.get(namespace, query_id)

    async def save(self, claim: JobLease, result: QueryResult) -> None:
        """Store the result of a query for its worker, before the job's end. Raises LeaseLost."""
        await self._rows.save(claim, msgspec.json.encode(result))

    async def _job(self, namespace: str, query_id: str) -> Job:
        job = await self._jobs.get(query_id)
        if (job.namespace, job.kind) != (namespace, JobKind.QUERY):
            raise JobNotFound(f"Query '{query_id}' does not exist.")
        return job

    async def _query_of(self, job: Job, reason: WaitReason | None) -> Query:
        spec = msgspec.convert(job.spec, QuerySpec)
        is_done = job.state is JobState.DONE
        stored = await self._rows.find(job.job_id) if is_done else None
        return Query(job, spec, None if stored is None else _results.decode(stored), reason)

    async def _check_open(self, namespace: str) -> None:
        """Raise StorageBusy while too many queries are open."""
        most = limits.QUERIES_OPEN_MAX
        pages = await asyncio.gather(
            *(
                self._jobs.list(namespace=namespace, kind=JobKind.QUERY, state=state, limit=most)
                for state in _OPEN
            )
        )
        if sum(map(len, pages)) >= most:
            raise StorageBusy(f"{most} queries of the namespace are open; nothing happened.")

    async def _check_views(self, namespace: str, query: SqlQuery) -> None:
        for name, view in query.views.items():
            if await self._views.find(ViewName(view, namespace)) is None:
                detail = f"View '{view}' does not exist"
                raise ValidationFailed.at(f"/from/{name}/view", detail, "not_found")

    async def _ranges(
        self, namespace: str, query: SqlQuery, name: str, field: str, stream_name: str
    ) -> StreamRanges:
        """Return the offsets of a relation's records. Raises ValidationFailed without its stream."""
        stream = query.streams.get(name)
        start_ms, end_ms = (stream.start_time_ms, stream.end_time_ms) if stream else (None, None)
        try:
            resolved = await self._catalog.fresh_stream(StreamName(stream_name, namespace))
        except StreamNotFound as error:
            pointer = f"/from/{name}/{field}"
            raise ValidationFailed.at(pointer, error.detail, "not_found") from None
        ranges = await ranges_of_shards(self._reader, resolved, start_ms, end_ms)
        return StreamRanges(resolved.stream_id, tuple(ranges))


def failure_of(job: Job) -> MillstreamError:
    """Return the error of a query that has ended without rows."""
    if REFUSED_AT in job.progress:
        return ValidationFailed.at(job.progress[REFUSED_AT], job.failure, "sql_refused")
    if job.state is JobState.CANCELLED:
        return QueryFailed("The query was cancelled.")
    return QueryFailed(job.failure)
