"""Toy job handlers."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import Handler, JobContext
from storage.domain.jobs import JobKind, JobPart


class Toy(msgspec.Struct):
    """A number of steps, each a Spark job of two tasks of this duration."""

    steps: int = 1
    task_s: float = 0.0


def resting(seconds: float) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a task function that sleeps."""

    def rest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    return rest


def count(work: JobContext) -> Mapping[str, Any]:
    """Count, continuing after the last saved step."""
    spec = work.spec(Toy)
    spark = work.spark
    before = work.call(work.storage.jobs.parts(work.job.job_id)).get("steps")
    first = 0 if before is None else before.position
    frame = spark.range(0, 10, 1, 2).mapInArrow(resting(spec.task_s), "id long")
    for step in range(first, spec.steps):
        work.check()
        counted = sum(row.id for row in frame.collect())
        part = JobPart("steps", step + 1, step + 1 == spec.steps, {"sum": counted})
        work.call(work.storage.jobs.save_parts(work.claim, [part]))
        work.report({"steps": step + 1})
    return {"steps": spec.steps, "attempt": work.job.attempt}


def once(work: JobContext) -> None:
    """Save a part, without Spark."""
    work.call(work.storage.jobs.save_parts(work.claim, [JobPart("once", 1, True, {})]))
    fault("toy.after_save")


TOYS: Mapping[JobKind, Handler] = {JobKind.ARCHIVE: count, JobKind.COMPACT: once}
