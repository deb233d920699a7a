"""A stream, and a worker that is played by the test."""

import asyncio
from typing import Any

import msgspec
import pytest

from storage.bootstrap import Storage
from storage.domain.jobs import JobKind, JobLease, JobState
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.plan import KeyColumn, PlanResult, SqlRefusal, ViewColumn, ViewPlan
from storage.domain.views.progress import RowChange, ViewBatch, ViewProgress
from storage.domain.views.row_key import encode_key
from storage.domain.views.view import View, ViewInput, ViewQuery, ViewSpec
from tests.conditions import eventually

NAME, STREAM = ViewName("clicks-per-page"), StreamName("clicks")
PLAN = ViewPlan(
    columns=(ViewColumn("page", "string"), ViewColumn("clicks", "bigint")),
    key=(
        KeyColumn("page", "string"),
        KeyColumn("", "bigint"),
        KeyColumn("since", "timestamp", is_window=True),
    ),
    window_ms=(60_000, 60_000),
)
MINUTE_MS = 60_000


def spec_of(sql: str = "select 1", **options: Any) -> ViewSpec:
    query = ViewQuery(sql=sql, inputs={"c": ViewInput(stream=STREAM.name)})
    return ViewSpec(query=query, **options)


def minute(nth: int) -> str:
    return f"1970-01-01T00:{nth:02}:00.000000Z"


def row(page: str, number: int, nth: int, clicks: int = 1) -> RowChange:
    """Return the row of a page, a number and the nth minute."""
    return RowChange(
        key=encode_key([page, number, minute(nth)], PLAN.key),
        row=msgspec.json.encode({"page": page, "n": number, "m": nth, "clicks": clicks}).decode(),
        state=f"state of {clicks}",
        window_end_ms=(nth + 1) * MINUTE_MS,
    )


class Worker:
    """The worker's side of views."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.claim: JobLease = JobLease("none", 0, "w1")

    async def plans(self, result: PlanResult | None = None) -> None:
        """Finish the next planning job."""
        jobs = self._storage.jobs
        await eventually(self._has_plan, True)
        job = await jobs.claim("w1", [JobKind.VIEW_PLAN])
        assert job is not None
        progress = {"result": msgspec.to_builtins(result or PlanResult(plan=PLAN))}
        await jobs.finish(job.claim, progress=progress)

    async def _has_plan(self) -> bool:
        return bool(await self._storage.jobs.list(kind=JobKind.VIEW_PLAN, state=JobState.QUEUED))

    async def put(self, spec: ViewSpec, **options: Any) -> Any:
        """Put the view, and plan its query."""
        put, _ = await asyncio.gather(self._storage.views.put(NAME, spec, **options), self.plans())
        return put

    async def refuse(self, spec: ViewSpec, refusal: SqlRefusal) -> Any:
        """Put the view, whose query is refused; return the error."""
        put, _ = await asyncio.gather(
            self._storage.views.put(NAME, spec),
            self.plans(PlanResult(refusal=refusal)),
            return_exceptions=True,
        )
        return put

    async def start(self, worker: str = "w1") -> JobLease:
        """Claim the scan job."""
        job = await self._storage.jobs.claim(worker, [JobKind.VIEW_SCAN])
        assert job is not None
        self.claim = job.claim
        return self.claim

    async def commit(
        self,
        *rows: RowChange,
        read: int = 1,
        watermark_ms: int | None = None,
        view: View | None = None,
    ) -> ViewProgress:
        """Commit the next batch of the newest revision, which reads `read` records of shard 0."""
        revision_id, batch = await self.batch(*rows, read=read, watermark_ms=watermark_ms)
        view = view or await self._storage.views.get(NAME)
        return await self._storage.view_scans.commit(self.claim, view, revision_id, batch)

    async def batch(
        self, *rows: RowChange, read: int = 1, watermark_ms: int | None = None
    ) -> tuple[str, ViewBatch]:
        """Return the next batch of the newest revision."""
        status = await self._storage.views.status(NAME)
        revision = status.building or status.active
        before = revision.progress
        after = ViewProgress(
            positions={0: before.positions.get(0, 0) + read},
            marks={0: watermark_ms or 0},
            watermark_ms=watermark_ms,
            batch=before.batch + 1,
            counts=msgspec.structs.replace(before.counts, records=before.counts.records + read),
        )
        return revision.revision_id, ViewBatch(before=before, after=after, changes=rows)


@pytest.fixture
async def worker(engines) -> Worker:
    await engines.catalog.put_stream(STREAM, StreamSpec())
    return Worker(engines)


@pytest.fixture
async def view(worker) -> View:
    """A view whose scan job is claimed."""
    put = await worker.put(spec_of())
    await worker.start()
    view: View = put.definition
    return view
