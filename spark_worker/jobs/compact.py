"""Compaction job on Spark: runs of small adjacent archive files, each compacted into one.

A task does what `storage.archive.compact_task` does, with its own clients, and returns what it wrote. Only what is collected
here is committed: a task that runs twice leaves files that no row names, and never a duplicate.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from spark_worker.jobs.spark_tasks import run_tasks, task_count
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import JobContext
from spark_worker.settings import TaskSettings
from storage.archive.compact_task import compact_files
from storage.domain.archive import ArchivedFile
from storage.parquet.object_store import open_root

_runs = msgspec.json.Decoder(tuple[ArchivedFile, ...])
_joined = msgspec.json.Decoder(ArchivedFile)


def compact(work: JobContext) -> Mapping[str, Any]:
    """Compact each run of small adjacent files into one, and commit them."""
    runs = work.call(work.storage.archive_planner.to_compact(work.job.namespace))
    tasks = task_count(len(runs), sum(file.records for run in runs for file in run))
    settings = TaskSettings(work.settings.storage, redis=False, postgres=False)
    results = run_tasks(work, settings, runs, _compact_runs, tasks)
    joined = [_joined.decode(result) for result in results]
    fault("compact.joined")
    work.check()
    by_place = {(file.stream_id, file.shard, file.first_offset): file for file in joined}
    swaps = [(run, by_place[run[0].stream_id, run[0].shard, run[0].first_offset]) for run in runs]
    progress = {"files_before": sum(map(len, runs)), "files": len(joined)}
    work.call(work.storage.archive_committer.commit_compaction(work.claim, swaps, progress))
    return progress


def _compact_runs(settings: TaskSettings, items: Iterable[bytes]) -> list[bytes]:
    """Join these runs of files, whose paths begin with their namespace, in a Spark task."""
    root = open_root(settings.storage().archive_url or "")
    runs = [_runs.decode(item) for item in items]
    joined = [compact_files(root, run[0].path.split("/", 1)[0], run) for run in runs]
    return [msgspec.json.encode(file) for file in joined]
