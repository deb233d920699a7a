"""Spark tasks over JSON items: spread a job's items, collect the results."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from spark_worker.runtime.job_context import JobContext
from spark_worker.settings import TaskSettings
from storage.domain import limits

if TYPE_CHECKING:
    from pyspark import SparkContext

Item = TypeVar("Item")

_RECORDS_PER_TASK = limits.ARCHIVE_RANGE_RECORDS
_ITEMS_PER_TASK = 50
_DYNAMIC = "spark.dynamicAllocation.enabled"


def task_count(items: int, records: int) -> int:
    """Return the number of tasks: one for each _RECORDS_PER_TASK records; small items share."""
    return max(1, min(items, -(-items // _ITEMS_PER_TASK) + records // _RECORDS_PER_TASK))


def slots(context: "SparkContext") -> int:
    """Return how many tasks Spark runs in parallel, with all executors it may request."""
    if context.getConf().get(_DYNAMIC, "false") == "true":
        return limits.REPLAY_TASKS_MAX
    return int(context.defaultParallelism)


def run_tasks(
    work: JobContext,
    settings: TaskSettings,
    items: Sequence[Item],
    task: Callable[[TaskSettings, Iterable[bytes]], list[bytes]],
    tasks: int,
) -> list[bytes]:
    """Run a task over all items on Spark, both as JSON; return the results, in any order.

    `settings` travel with the task's function: executors need no environment, and Spark shows functions by name only.
    """
    if not items:
        return []
    encoded = [msgspec.json.encode(item) for item in items]
    rows = work.spark.sparkContext.parallelize(encoded, tasks)
    return rows.mapPartitions(partial(task, settings)).collect()
