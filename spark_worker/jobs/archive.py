"""Archive and compaction jobs on Spark: the ranges or files of a job, spread over tasks.

A task does what `storage.archive.copy_task` and `storage.archive.compact_task` do, with its own clients, and returns what
it wrote. Only what is collected here is committed: a task that runs twice leaves files that no row names, and never a
duplicate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import uvloop

from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import Work
from spark_worker.settings import storage_of_task
from storage.archive.compact_task import join
from storage.archive.copy_task import open_copying
from storage.domain import limits
from storage.domain.archive import ArchivedFile, Copied, LogRange
from storage.parquet.object_store import open_root
from storage.settings import StorageSettings

Item = TypeVar("Item")

_COLUMN = "told"  # JSON in, JSON out
_RECORDS_PER_TASK = limits.ARCHIVE_RANGE_RECORDS
_ITEMS_PER_TASK = 50

_ranges = msgspec.json.Decoder(LogRange)
_copied = msgspec.json.Decoder(Copied)
_runs = msgspec.json.Decoder(tuple[ArchivedFile, ...])
_joined = msgspec.json.Decoder(ArchivedFile)


class ArchiveSpec(msgspec.Struct, frozen=True):
    """Scope of an archive job: what is due in a lane of its namespace, or all of a stream."""

    lane: int | None = None
    stream: str | None = None


def archive(work: Work) -> Mapping[str, Any]:
    """Copy the ranges that are due now into files, and commit them."""
    spec, planner = work.spec(ArchiveSpec), work.storage.archive_planner
    ranges = work.call(planner.due(work.job.namespace, lane=spec.lane, stream=spec.stream))
    tasks = _tasks(len(ranges), sum(log.next - log.first for log in ranges))
    copied = [_copied.decode(progress) for progress in _spread(work, ranges, _copy_some, tasks)]
    fault("archive.copied")
    work.check()
    progress = work.call(work.storage.archive_committer.commit(work.claim, copied))
    fault("archive.committed")
    return progress


def compact(work: Work) -> Mapping[str, Any]:
    """Compact each run of small adjacent files into one, and commit them."""
    runs = work.call(work.storage.archive_planner.to_compact(work.job.namespace))
    tasks = _tasks(len(runs), sum(file.records for run in runs for file in run))
    joined = [_joined.decode(progress) for progress in _spread(work, runs, _join_some, tasks)]
    fault("compact.joined")
    work.check()
    by_place = {(file.stream_id, file.shard, file.first_offset): file for file in joined}
    swaps = [(run, by_place[run[0].stream_id, run[0].shard, run[0].first_offset]) for run in runs]
    progress = {"files_before": sum(map(len, runs)), "files": len(joined)}
    work.call(work.storage.archive_committer.commit_compaction(work.claim, swaps, progress))
    return progress


def _tasks(items: int, records: int) -> int:
    """Return the number of tasks: one for each _RECORDS_PER_TASK records; small items share."""
    return max(1, min(items, -(-items // _ITEMS_PER_TASK) + records // _RECORDS_PER_TASK))


def _spread(
    work: Work,
    items: Sequence[Item],
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    tasks: int,
) -> list[str]:
    """Run a task over all items on Spark; return the results, in any order."""
    if not items:
        return []
    rows = [(msgspec.json.encode(item).decode(),) for item in items]
    spark = work.spark
    table = spark.createDataFrame(rows, f"{_COLUMN} string").repartition(tasks)
    return [row[_COLUMN] for row in table.mapInArrow(task, f"{_COLUMN} string").collect()]


def _copy_some(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Copy these ranges, in a Spark task."""
    settings = storage_of_task()
    for items in _told(batches):
        copied = uvloop.run(_copy(settings, [_ranges.decode(one) for one in items]))
        fault("archive.in_task")
        yield _batch(copied)


async def _copy(settings: StorageSettings, ranges: Sequence[LogRange]) -> list[Copied]:
    async with open_copying(settings) as copying:
        return await copying.copy(ranges)


def _join_some(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join these runs of files, whose paths begin with their namespace, in a Spark task."""
    root = open_root(storage_of_task().archive_url or "")
    for items in _told(batches):
        runs = [_runs.decode(one) for one in items]
        yield _batch([join(root, run[0].path.split("/", 1)[0], run) for run in runs])


def _told(batches: Iterable[pa.RecordBatch]) -> Iterator[list[str]]:
    for batch in batches:
        if batch.num_rows:
            yield batch.column(0).to_pylist()


def _batch(said: Sequence[Copied] | Sequence[ArchivedFile]) -> pa.RecordBatch:
    words = [msgspec.json.encode(one).decode() for one in said]
    return pa.RecordBatch.from_arrays([pa.array(words, pa.string())], [_COLUMN])
