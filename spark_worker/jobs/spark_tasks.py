"""Spark tasks over JSON items: spread a job's items, collect the results."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
import pyarrow as pa

from spark_worker.runtime.job_context import JobContext
from storage.domain import limits
from storage.domain.archive import ArchivedFile, CopyResult

Item = TypeVar("Item")

_COLUMN = "item"  # JSON in, JSON out
_RECORDS_PER_TASK = limits.ARCHIVE_RANGE_RECORDS
_ITEMS_PER_TASK = 50


def task_count(items: int, records: int) -> int:
    """Return the number of tasks: one for each _RECORDS_PER_TASK records; small items share."""
    return max(1, min(items, -(-items // _ITEMS_PER_TASK) + records // _RECORDS_PER_TASK))


def run_tasks(
    work: JobContext,
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


def items_of(batches: Iterable[pa.RecordBatch]) -> Iterator[list[str]]:
    for batch in batches:
        if batch.num_rows:
            yield batch.column(0).to_pylist()


def batch_of(results: Sequence[CopyResult] | Sequence[ArchivedFile]) -> pa.RecordBatch:
    encoded = [msgspec.json.encode(one).decode() for one in results]
    return pa.RecordBatch.from_arrays([pa.array(encoded, pa.string())], [_COLUMN])
