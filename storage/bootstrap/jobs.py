"""Assembly of the replays, the views and the queries, whose work is done by jobs."""

from typing import NamedTuple

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain.clock import Clock
from storage.domain.errors import ViewPlanPending, ViewSourcesPending
from storage.domain.jobs import JobKind
from storage.groups.engine import Groups
from storage.jobs import Jobs
from storage.operations.job_waits import JobWaiter
from storage.operations.presence import ProcessRegistry
from storage.postgres.database import Database
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.postgres.repositories.query_results import QueryResultRows
from storage.postgres.repositories.view_batches import ViewBatchRows
from storage.postgres.repositories.view_output_rows import ViewOutputRows
from storage.postgres.repositories.view_sinks import ViewSinkRows
from storage.postgres.repositories.views import ViewRows
from storage.queries.engine import Queries
from storage.queues.engine import Queues
from storage.redis.counters.shared_rate import RedisPaceStore
from storage.redis.transport.pipeline import Pipeline
from storage.replays.engine import Replays
from storage.replays.planner import ReplayPlanner
from storage.replays.window import WindowResolver
from storage.streams.arrow_reader import ArrowReader
from storage.streams.engine import Streams
from storage.streams.read import RecordReader
from storage.views.back_tests import ViewBackTests
from storage.views.engine import Views
from storage.views.progress_waiters import ProgressWaiters
from storage.views.query_planner import ViewQueryPlanner
from storage.views.rows import ViewRowReader
from storage.views.scan_jobs import ScanJobs
from storage.views.scans import ViewScans
from storage.views.sinks import ViewSinks
from storage.views.sources import ViewSourceReader
from storage.views.worker_results import WorkerResults


class ViewEngines(NamedTuple):
    """Views, the batches and deliveries of their worker, and reads of rows and their sources."""

    views: Views
    sinks: ViewSinks
    scan_jobs: ScanJobs
    scans: ViewScans
    rows: ViewRowReader
    sources: ViewSourceReader
    back_tests: ViewBackTests


def build_replays(
    *,
    pipeline: Pipeline,
    archive_rows: ArchiveRows,
    catalog: Catalog,
    queues: Queues,
    streams: Streams,
    reader: RecordReader,
    column_reader: ArrowReader,
    groups: Groups,
    jobs: Jobs,
    isolation: Isolation,
    clock: Clock,
) -> Replays:
    """Build the replays of streams into streams and queues."""
    windows = WindowResolver(reader, groups, catalog)
    return Replays(
        windows=windows,
        planning=ReplayPlanner(reader, windows, archive_rows),
        streams=streams,
        reader=reader,
        column_reader=column_reader,
        queues=queues,
        groups=groups,
        jobs=jobs,
        shared_rate=RedisPaceStore(pipeline),
        clock=clock,
        isolation=isolation,
    )


def build_views(
    *,
    database: Database,
    waiters: ProgressWaiters,
    catalog: Catalog,
    queues: Queues,
    streams: Streams,
    record_reader: RecordReader,
    jobs: Jobs,
    registry: ProcessRegistry,
    clock: Clock,
) -> ViewEngines:
    """Build the views."""
    rows = ViewRows(database)
    waiter = JobWaiter(jobs, registry)
    planner = ViewQueryPlanner(
        rows, WorkerResults(jobs, waiter, JobKind.VIEW_PLAN, ViewPlanPending, "planned")
    )
    searches = WorkerResults(jobs, waiter, JobKind.VIEW_SEARCH, ViewSourcesPending, "searched")
    row_reader = ViewRowReader(rows, ViewOutputRows(database), waiters)
    sinks = ViewSinks(rows=ViewSinkRows(database), catalog=catalog, queues=queues, streams=streams)
    scan_jobs = ScanJobs(rows, jobs)
    views = Views(
        rows=rows, catalog=catalog, planner=planner, sinks=sinks, scan_jobs=scan_jobs, clock=clock
    )
    return ViewEngines(
        views=views,
        sinks=sinks,
        scan_jobs=scan_jobs,
        scans=ViewScans(rows, ViewBatchRows(database), clock),
        rows=row_reader,
        sources=ViewSourceReader(row_reader, searches, record_reader),
        back_tests=ViewBackTests(views, jobs),
    )


def build_queries(
    *,
    database: Database,
    catalog: Catalog,
    reader: RecordReader,
    jobs: Jobs,
    registry: ProcessRegistry,
) -> Queries:
    """Build the queries."""
    return Queries(
        catalog=catalog,
        reader=reader,
        views=ViewRows(database),
        rows=QueryResultRows(database),
        jobs=jobs,
        waiter=JobWaiter(jobs, registry),
    )
