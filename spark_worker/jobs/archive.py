"""Archive job on Spark: the ranges of a job, spread over tasks, copied into files.

A task does what `storage.archive.copy_task` does, with its own clients, and returns what it wrote. Only what is collected
here is committed: a task that runs twice leaves files that no row names, and never a duplicate.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, starmap, takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

from spark_worker.jobs.spark_tasks import run_tasks, task_count
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import JobContext
from spark_worker.settings import TaskSettings
from storage.copy_task_bootstrap import open_copy_task
from storage.domain.archive import CopyResult, LogRange
from storage.settings import StorageSettings

if TYPE_CHECKING:  # tasks import this module, and do without the engines
    from storage.archive.commit import Committed

_TURNS = 4  # a slot that waits for the last task of a part loses less than a fourth of it
_SHORT_S = 10.0

_ranges = msgspec.json.Decoder(LogRange)
_copied = msgspec.json.Decoder(CopyResult)


class ArchiveSpec(msgspec.Struct, frozen=True):
    """Scope of an archive job: what is due in a lane of its namespace, or all of a stream."""

    lane: int | None = None
    stream: str | None = None


def archive(work: JobContext) -> Mapping[str, Any]:
    """Copy the ranges that are due now into files, and commit them part by part.

    A part is what keeps the slots of Spark busy for some turns; twice as much after a short one.
    """
    spec, planner = work.spec(ArchiveSpec), work.storage.archive_planner
    committer = work.storage.archive_committer
    ranges = work.call(planner.due(work.job.namespace, lane=spec.lane, stream=spec.stream))
    committed: Committed | None = None
    tasks_max = _TURNS * work.spark.sparkContext.defaultParallelism if ranges else 1
    while len(part := _first(ranges, tasks_max)) < len(ranges):
        began_s = monotonic()
        copied = _copy_part(work, part)
        committed = work.call(committer.commit_part(work.claim, copied, committed))
        work.report(committed.progress())
        fault("archive.part_committed")
        ranges = [log for log in ranges[len(part) :] if committed.may_continue(log)]
        if monotonic() - began_s < _SHORT_S:
            tasks_max *= 2
    progress = work.call(committer.commit(work.claim, _copy_part(work, ranges), committed))
    fault("archive.committed")
    return progress


def _first(ranges: Sequence[LogRange], tasks_max: int) -> Sequence[LogRange]:
    """Return the first ranges, as many as make at most that number of tasks."""
    records = accumulate(log.next - log.first for log in ranges)
    tasks = starmap(task_count, enumerate(records, 1))
    return ranges[: sum(1 for _ in takewhile(lambda count: count <= tasks_max, tasks))]


def _copy_part(work: JobContext, ranges: Sequence[LogRange]) -> list[CopyResult]:
    """Copy these ranges, in Spark tasks."""
    tasks = task_count(len(ranges), sum(log.next - log.first for log in ranges))
    settings = TaskSettings(work.settings.storage, postgres=False)
    results = run_tasks(work, settings, ranges, _copy_ranges, tasks)
    fault("archive.copied")
    work.check()
    return [_copied.decode(result) for result in results]


def _copy_ranges(settings: TaskSettings, items: Iterable[bytes]) -> list[bytes]:
    """Copy these ranges, in a Spark task."""
    copied = uvloop.run(_copy(settings.storage(), [_ranges.decode(item) for item in items]))
    fault("archive.in_task")
    return [msgspec.json.encode(result) for result in copied]


async def _copy(settings: StorageSettings, ranges: Sequence[LogRange]) -> list[CopyResult]:
    async with open_copy_task(settings) as copying:
        return await copying.copy(ranges)
