"""Worker of views and queries for a deployment of the tests, without Spark.

It plans one shape of query, and computes its rows:

    select <column>, count(*) as <column> from <relation> group by <column>

A join of two streams reads the first one alone. A query may end with `order by <count> desc`, and a limit that is ignored; its relation is a stream.
"""

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import msgspec

from spark_worker.views.inputs.reads import capped
from storage.bootstrap import Storage, open_storage
from storage.concurrency.tasks import end
from storage.domain.errors import StreamNotFound, StreamRecreated
from storage.domain.jobs import Job, JobKind, LeaseLost
from storage.domain.limits import HOUR_MS
from storage.domain.names import StreamName
from storage.domain.presence import ProcessRole
from storage.domain.queries.query import REFUSED_AT, QuerySpec
from storage.domain.queries.result import QueryResult, RelationRead
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import LogRecord, StreamRead
from storage.domain.views.plan import (
    KeyColumn,
    PlanResult,
    SqlRefusal,
    ViewBackTestSpec,
    ViewColumn,
    ViewPlan,
)
from storage.domain.views.progress import (
    RevisionState,
    RowChange,
    ViewBatch,
    ViewCounts,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.row_key import encode_key
from storage.domain.views.source_search import RecordLocation, SearchResult, SearchSpec
from storage.domain.views.sources import SourceMode, SourceRange, merge_sources
from storage.domain.views.view import ViewQuery
from storage.domain.views.watermark import StreamMarks, advance_marks, watermark_of
from storage.operations.presence import registered
from storage.postgres.repositories.view_batches import StoredState
from storage.settings import StorageSettings
from storage.streams.record_source import RecordSource
from storage.views.scans import ScanRevision, ViewConflict

_KINDS = (
    JobKind.VIEW_PLAN,
    JobKind.VIEW_SEARCH,
    JobKind.VIEW_SCAN,
    JobKind.VIEW_BACK_TEST,
    JobKind.QUERY,
)
_SELECT = r"select (\w+), count\(\*\) as (\w+) from (\w+) group by \1"
_QUERY = re.compile(_SELECT)
_ORDERED = re.compile(rf"{_SELECT}(?: order by \2 desc)?(?: limit \d+)?")
_REFUSAL = "Line 1, column 8: Not the query of the tests"
_IDLE_S = 0.02
_WORKER = "views-without-spark"
_READY = b"ready\n"


def plan_of(query: ViewQuery) -> PlanResult:
    """Plan a query, or refuse one of another shape."""
    match = _QUERY.fullmatch(query.sql)
    if match is None:
        return PlanResult(refusal=SqlRefusal("Not the query of the tests", "Write that", 1, 8))
    column, count, _ = match.groups()
    return PlanResult(
        plan=ViewPlan(
            columns=(ViewColumn(column, "string"), ViewColumn(count, "bigint")),
            key=(KeyColumn(column, "string"),),
            aggregates=("count(1)",),
            join_waits_ms=dict.fromkeys(query.inputs, HOUR_MS) if query.is_join else {},
        )
    )


def batch_of(
    revision: ViewRevision, read: StreamRead, stored: dict[bytes, StoredState]
) -> ViewBatch:
    """Return the batch of the records that were read."""
    before, plan = revision.progress, revision.plan
    records = [(shard.shard, at) for shard in read.shards for at in shard.records]
    column, count = (each.name for each in plan.columns)
    values = [_value(at.record.data, column) for _, at in records]
    counted = Counter(values)
    changes = []
    for value, number in counted.items():
        key = encode_key([value], plan.key)
        present = stored.get(key, StoredState("0", {}, None))
        total = int(present.state) + number
        row = msgspec.json.encode({column: value, count: total}).decode()
        added = [
            {shard: SourceRange(at.offset, at.offset, 1)}
            for (shard, at), own in zip(records, values, strict=True)
            if own == value
        ]
        sources = merge_sources([present.sources, *added])
        tracks = revision.query.sources is SourceMode.RANGE
        changes.append(
            RowChange(key=key, row=row, state=str(total), sources=sources if tracks else None)
        )
    times = {shard: at.arrival_ms for shard, at in records}
    marks = advance_marks(before.marks, times)
    after = ViewProgress(
        positions=read.positions,
        marks=marks,
        watermark_ms=watermark_of(
            [StreamMarks(marks, revision.query.input.watermark_ms)], before.watermark_ms
        ),
        batch=before.batch + 1,
        counts=before.counts + ViewCounts(records=len(records), bad=values.count(None)),
    )
    return ViewBatch(before=before, after=after, changes=tuple(changes), milliseconds=1)


def _value(data: bytes, column: str) -> str | None:
    """Return the column of a record; None if it cannot be read."""
    try:
        value = msgspec.json.decode(data, type=dict[str, Any]).get(column)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if value is None else str(value)


def stream_of(job: Job) -> StreamName:
    """Return the stream of a scan."""
    return StreamName(job.spec["stream"], job.namespace)


class _Worker:
    """Claims planning and scan jobs, and serves all of them in turn."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._scans: dict[str, Job] = {}

    async def run(self) -> None:
        """Serve jobs until cancelled, and then give them back."""
        try:
            while True:
                claimed = await self._claim()
                advanced = [await self._serve(job) for job in [*self._scans.values()]]
                if not (claimed or any(advanced)):
                    await asyncio.sleep(_IDLE_S)
        finally:
            for job in self._scans.values():
                with suppress(LeaseLost):
                    await self._storage.jobs.release(job.claim)

    async def _claim(self) -> bool:
        job = await self._storage.jobs.claim(_WORKER, _KINDS)
        if job is None:
            return False
        if job.kind is JobKind.VIEW_SCAN:
            self._scans[job.job_id] = job
        elif job.kind is JobKind.VIEW_SEARCH:
            result = await self._search(job)
            progress = {"result": msgspec.to_builtins(result)}
            await self._storage.jobs.finish(job.claim, progress=progress)
        elif job.kind is JobKind.QUERY:
            await self._answer(job, msgspec.convert(job.spec, QuerySpec))
        elif job.kind is JobKind.VIEW_BACK_TEST:
            await self._back_test(job, msgspec.convert(job.spec, ViewBackTestSpec))
        else:
            query = msgspec.convert(job.spec["query"], ViewQuery)
            result = msgspec.to_builtins(plan_of(query))
            await self._storage.jobs.finish(job.claim, progress={"result": result})
        return True

    async def _search(self, job: Job) -> SearchResult:
        """Find the records of a row, and one more for the next page."""
        spec = msgspec.convert(job.spec, SearchSpec)
        column, key = spec.revision.plan.columns[0].name, spec.revision.plan.key
        stream = StreamName(spec.revision.query.input.stream, job.namespace)
        source = RecordSource(self._storage.record_reader, stream, spec.revision.stream_id)
        matches = []
        for within in spec.ranges:
            async for read in source.reads(within):
                matches += [
                    RecordLocation(within.shard, at.offset)
                    for at in read.records
                    if at.offset < within.end
                    and encode_key([_value(at.record.data, column)], key) == spec.key
                ]
        following = matches[spec.limit] if len(matches) > spec.limit else None
        return SearchResult(matches[: spec.limit], next=following)

    async def _back_test(self, job: Job, test: ViewBackTestSpec) -> None:
        """Evaluate a configuration over the records of a view that one read returns."""
        storage, scans = self._storage, self._storage.view_scans
        stream = StreamName(test.spec.query.input.stream, job.namespace)
        revision, snapshot = await scans.begin_back_test(job.job_id, test)
        read = await storage.record_reader.read(stream, {}, stream_id=revision.stream_id)
        caps = snapshot.progress.positions
        read = capped(read, {}, caps, await storage.catalog.stream(stream))
        committed = await scans.commit_back_test(job.claim, test.spec, batch_of(revision, read, {}))
        report = await scans.compare_back_test(job.claim, snapshot, is_exact=True)
        progress = {
            "records": committed.counts.records,
            "records_total": snapshot.progress.counts.records,
            "result": msgspec.to_builtins(report),
        }
        await storage.jobs.finish(job.claim, progress=progress)

    async def _answer(self, job: Job, spec: QuerySpec) -> None:
        """Answer a query, or refuse one of another shape."""
        jobs, match = self._storage.jobs, _ORDERED.fullmatch(spec.query.sql)
        if match is None or match[3] not in spec.query.streams:
            await jobs.fail(job.claim, _REFUSAL, retry=False, progress={REFUSED_AT: "/sql"})
            return
        column, count, relation = match.groups()
        read, name = spec.reads[relation], spec.query.streams[relation].stream
        counted = Counter(
            [
                _value(each.record.data, column)
                for within in read.ranges
                if within.first < within.end
                for each in await self._records(StreamName(name, job.namespace), within)
            ]
        )
        rows = [{column: value, count: number} for value, number in counted.most_common()]
        result = QueryResult(
            columns=(ViewColumn(column, "string"), ViewColumn(count, "bigint")),
            rows=msgspec.Raw(msgspec.json.encode(rows[: spec.query.rows_max])),
            truncated=len(rows) > spec.query.rows_max,
            read={relation: RelationRead(positions=read.positions, records=read.records)},
            milliseconds=1,
        )
        await self._storage.queries.save(job.claim, result)
        await jobs.finish(job.claim)

    async def _records(self, name: StreamName, within: OffsetRange) -> list[LogRecord]:
        reads = RecordSource(self._storage.record_reader, name, None).reads(within)
        return [each async for read in reads for each in read.records if each.offset < within.end]

    async def _serve(self, job: Job) -> bool:
        """Run the next batch of each view over a stream; return whether there was one."""
        try:
            await self._storage.jobs.heartbeat(job.claim)
            scanned = await self._storage.view_scans.revisions(job.namespace, stream_of(job).name)
            if not scanned:
                del self._scans[job.job_id]
                await self._storage.view_scan_jobs.end(job.claim, {})
                return True
            advanced = any([await self._advance(job, one) for one in scanned])
            await self._storage.view_sinks.deliver([one.view for one in scanned])
            return advanced
        except LeaseLost:
            self._scans.pop(job.job_id, None)
            return False

    async def _advance(self, job: Job, one: ScanRevision) -> bool:
        stream, revision = stream_of(job), one.revision
        scans = self._storage.view_scans
        try:
            read = await self._storage.record_reader.read(
                stream, revision.progress.positions, stream_id=revision.stream_id
            )
        except (StreamNotFound, StreamRecreated):
            failure = "The stream was deleted."
            await scans.fail(job.claim, revision.revision_id, failure, stop=True)
            return False
        if not any(shard.records for shard in read.shards):
            if revision.state is RevisionState.BUILDING:
                await scans.promote(job.claim, one.view, revision.revision_id)
            return False
        keys = [change.key for change in batch_of(revision, read, {}).changes]
        stored = await scans.states(revision.revision_id, keys)
        with suppress(ViewConflict):
            batch = batch_of(revision, read, stored)
            await scans.commit(job.claim, one.view, revision.revision_id, batch)
        return True


@asynccontextmanager
async def view_worker(settings: StorageSettings) -> AsyncIterator[None]:
    """Plan and compute views for the length of the block."""
    async with (
        open_storage(settings) as storage,
        registered(storage.presence, ProcessRole.WORKER),
    ):
        task = asyncio.create_task(_Worker(storage).run())
        try:
            yield
        finally:
            await end(task)


@contextmanager
def view_worker_process(settings: StorageSettings) -> Iterator[None]:
    """Run the worker in a process for the length of the block.

    A thread would use `random` while Hypothesis draws in another one, which it reports as an error.
    """
    command = [sys.executable, "-m", "tests.view_worker", settings.model_dump_json()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == _READY
        try:
            yield
        finally:
            process.communicate()  # it ends with its standard input


async def _serve_until_end_of_input(settings: StorageSettings) -> None:
    async with view_worker(settings):
        sys.stdout.buffer.write(_READY)
        sys.stdout.buffer.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve_until_end_of_input(StorageSettings.model_validate_json(sys.argv[1])))
