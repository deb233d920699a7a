"""The worker: which handler does which kind of job, and a process that does them until it is told to stop.

A handler is imported with its first job, so that a worker with nothing to do holds neither Spark nor Arrow.
"""

import os
import secrets
import socket
from collections.abc import Mapping
from functools import partial
from typing import Any

from spark_worker.runtime import fault_points
from spark_worker.runtime.java import find_java
from spark_worker.runtime.job_context import Handler, Work
from spark_worker.runtime.runner import OnEnd, Runner
from spark_worker.runtime.session_pool import SharedSpark
from spark_worker.runtime.spark_session import open_session, tidy_scratch
from spark_worker.settings import WorkerSettings
from storage.bootstrap import open_storage
from storage.domain.jobs import JobKind
from storage.domain.limits import Limits
from storage.domain.presence import ProcessRole
from storage.operations.presence import present


def _archive(work: Work) -> Mapping[str, Any] | None:
    from spark_worker.jobs.archive import archive

    return archive(work)


def _compact(work: Work) -> Mapping[str, Any] | None:
    from spark_worker.jobs.archive import compact

    return compact(work)


def _replay(work: Work) -> Mapping[str, Any] | None:
    from spark_worker.jobs.replay import run

    return run(work)


HANDLERS: Mapping[JobKind, Handler] = {
    JobKind.ARCHIVE: _archive,
    JobKind.COMPACT: _compact,
    JobKind.REPLAY: _replay,
}
"""A worker claims jobs of these kinds."""

_NO_LIMITS = Limits()


def _nobody(*_: object) -> None:
    """The default of who is told that an attempt ended."""


async def work(
    settings: WorkerSettings,
    *,
    handlers: Mapping[JobKind, Handler] = HANDLERS,
    limits: Limits = _NO_LIMITS,
    on_end: OnEnd = _nobody,
) -> None:
    """Do jobs until cancelled; while Postgres is away, wait for it. Raises JavaMissing at once."""
    fault_points.fault("worker.start")
    find_java()
    tidy_scratch(settings.scratch)
    sparks = SharedSpark(partial(open_session, settings), settings.jobs_per_session)
    async with open_storage(settings.storage, limits=limits) as storage:
        runner = Runner(worker_name(), storage, settings, handlers, sparks, limits, on_end)
        async with present(storage.presence, ProcessRole.WORKER):
            await runner.run()


def worker_name() -> str:
    """A name for this process that no other has, or had."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
