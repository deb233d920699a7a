"""Worker process: runs jobs with the handler of their kind until it is stopped.

A handler is imported with its first job, so that an idle worker has neither Spark nor Arrow in memory.
"""

import os
import secrets
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from spark_worker.runtime import fault_points
from spark_worker.runtime.imports import IMPORTS
from spark_worker.runtime.java import find_java
from spark_worker.runtime.job_context import Handler, JobContext
from spark_worker.runtime.requirements import SparkRequirement
from spark_worker.runtime.runner import OnEnd, Runner
from spark_worker.runtime.session_pool import SessionPool
from spark_worker.runtime.spark_session import open_session, sweep_scratch
from spark_worker.settings import WorkerSettings
from storage.bootstrap import open_storage
from storage.domain.jobs import JobKind
from storage.domain.limits import Limits
from storage.domain.names import ViewName
from storage.domain.presence import ProcessRole
from storage.domain.replication.replica_set import PrimaryChange
from storage.domain.views.progress import ViewBatch
from storage.operations.presence import registered
from storage.views.sinks import OnSent

OnViewBatch = Callable[[ViewName, ViewBatch], object]
"""Called with each committed batch of a view."""


def _ignore(*_: object) -> None:
    """Ignore an event: the default of observers."""


def _archive(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.jobs.archive import archive
    return archive(work)


def _compact(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.jobs.compact import compact
    return compact(work)


def _replay(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.jobs.replay import run
    return run(work)


def _back_test(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.jobs.back_test import run
    return run(work)


def _view_plan(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.views.plan_job import plan
    return plan(work)


def _view_search(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.views.search_job import search
    return search(work)


def _view_back_test(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.views.back_test_job import run
    return run(work)


def _query(work: JobContext) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.queries.job import run
    return run(work)


def _view_scan(
    on_batch: OnViewBatch, on_sent: OnSent, work: JobContext
) -> Mapping[str, Any] | None:
    with IMPORTS:
        from spark_worker.views.scan import scan
    return scan(work, on_batch, on_sent)


HANDLERS: Mapping[JobKind, Handler] = {
    JobKind.ARCHIVE: _archive,
    JobKind.COMPACT: _compact,
    JobKind.REPLAY: _replay,
    JobKind.BACK_TEST: _back_test,
    JobKind.VIEW_PLAN: _view_plan,
    JobKind.VIEW_SEARCH: _view_search,
    JobKind.VIEW_SCAN: partial(_view_scan, _ignore, _ignore),
    JobKind.VIEW_BACK_TEST: _view_back_test,
    JobKind.QUERY: _query,
}
"""Handlers of the kinds of jobs that a worker claims."""

_NO_LIMITS = Limits()


def with_observers(on_batch: OnViewBatch, on_sent: OnSent) -> Mapping[JobKind, Handler]:
    """Return the handlers with observers of the batches of views, and of what their sinks get."""
    return {**HANDLERS, JobKind.VIEW_SCAN: partial(_view_scan, on_batch, on_sent)}


async def work(
    settings: WorkerSettings,
    *,
    handlers: Mapping[JobKind, Handler] = HANDLERS,
    limits: Limits = _NO_LIMITS,
    on_end: OnEnd = _ignore,
    on_primary_change: Callable[[PrimaryChange], object] = lambda kind: None,
) -> None:
    """Run jobs until cancelled; while Postgres is unreachable, wait for it.

    Raises JavaMissing immediately, unless Spark is awaited.
    """
    fault_points.fault("worker.start")
    if not settings.awaits_spark:
        find_java()
    sweep_scratch(settings.scratch)
    sparks = SessionPool(partial(open_session, settings), settings.jobs_per_session)
    worker = worker_name()
    async with open_storage(
        settings.storage, limits=limits, on_primary_change=on_primary_change, worker=worker
    ) as storage:
        runner = Runner(
            worker=worker,
            storage=storage,
            settings=settings,
            handlers=handlers,
            session_pool=sparks,
            limits=limits,
            on_end=on_end,
            spark=SparkRequirement(awaited=settings.awaits_spark),
        )
        async with registered(storage.presence, ProcessRole.WORKER):
            await runner.run()


def worker_name() -> str:
    """Return a unique name for this process, never used before."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
