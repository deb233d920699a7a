"""Archive job on Spark: the ranges of a job, spread over tasks, copied into files.

A task does what `storage.archive.copy_task` does, with its own clients, and returns what it wrote. Only what is collected
here is committed: a task that runs twice leaves files that no row names, and never a duplicate.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import uvloop

from spark_worker.jobs.spark_tasks import run_tasks, task_count
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import JobContext
from spark_worker.settings import TaskSettings
from storage.copy_task_bootstrap import open_copy_task
from storage.domain.archive import CopyResult, LogRange
from storage.settings import StorageSettings

_ranges = msgspec.json.Decoder(LogRange)
_copied = msgspec.json.Decoder(CopyResult)


class ArchiveSpec(msgspec.Struct, frozen=True):
    """Scope of an archive job: what is due in a lane of its namespace, or all of a stream."""

    lane: int | None = None
    stream: str | None = None


def archive(work: JobContext) -> Mapping[str, Any]:
    """Copy the ranges that are due now into files, and commit them."""
    spec, planner = work.spec(ArchiveSpec), work.storage.archive_planner
    ranges = work.call(planner.due(work.job.namespace, lane=spec.lane, stream=spec.stream))
    tasks = task_count(len(ranges), sum(log.next - log.first for log in ranges))
    settings = TaskSettings(work.settings.storage, postgres=False)
    results = run_tasks(work, settings, ranges, _copy_ranges, tasks)
    copied = [_copied.decode(result) for result in results]
    fault("archive.copied")
    work.check()
    progress = work.call(work.storage.archive_committer.commit(work.claim, copied))
    fault("archive.committed")
    return progress


def _copy_ranges(settings: TaskSettings, items: Iterable[bytes]) -> list[bytes]:
    """Copy these ranges, in a Spark task."""
    copied = uvloop.run(_copy(settings.storage(), [_ranges.decode(item) for item in items]))
    fault("archive.in_task")
    return [msgspec.json.encode(result) for result in copied]


async def _copy(settings: StorageSettings, ranges: Sequence[LogRange]) -> list[CopyResult]:
    async with open_copy_task(settings) as copying:
        return await copying.copy(ranges)
