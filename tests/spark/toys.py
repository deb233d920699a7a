"""Handlers that do nothing useful, and a worker process that has only them: `python -m tests.spark.toys`."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from api.cli.signals import until_told_to_stop
from api.logs import configure_logs
from spark_worker.faults import fault
from spark_worker.main import work
from spark_worker.work import Handler, Work
from storage.domain.jobs import JobKind, JobPart
from storage.domain.limits import Limits
from storage.settings import StorageSettings
from tests.spark.lending import worker_settings


class Toy(msgspec.Struct):
    """So many steps, each a Spark job of two tasks that take so long."""

    steps: int = 1
    task_s: float = 0.0


def resting(seconds: float) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: rest."""

    def rest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    return rest


def count(work: Work) -> Mapping[str, Any]:
    """Go on behind the step that was saved last."""
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


def once(work: Work) -> None:
    """Save a part, without Spark."""
    work.call(work.storage.jobs.save_parts(work.claim, [JobPart("once", 1, True, {})]))
    fault("toy.after_save")


TOYS: Mapping[JobKind, Handler] = {JobKind.ARCHIVE: count, JobKind.COMPACT: once}


def main() -> None:
    """Work on toys until told to stop; argv: storage settings and limits, as JSON."""
    configure_logs("info")
    storage = StorageSettings.model_validate_json(sys.argv[1])
    limits = msgspec.convert(json.loads(sys.argv[2]), Limits)
    asyncio.run(until_told_to_stop(work(worker_settings(storage), handlers=TOYS, limits=limits)))


if __name__ == "__main__":
    main()
