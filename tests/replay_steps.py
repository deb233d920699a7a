"""Replays without Spark: the handler's steps, with each task in this process."""

from collections.abc import Iterable
from typing import Any

from spark_worker.jobs.replay_sender import SendParts, TaskEnd, send_parts
from storage.bootstrap import Storage
from storage.domain.jobs import Job, JobKind
from storage.domain.limits import HOUR_MS
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.replays.replay import PartProgress, ReplayRequest, ReplaySpec, Target, waves
from storage.domain.streams.stream import LogRecord, StreamSpec
from storage.replays.engine import spec_of

SOURCE, TARGET, WORK = StreamName("source"), StreamName("target"), QueueName("work")
KEYS = ["", *(f"key {number}" for number in range(12))]
KEEP = StreamSpec(retention_ms=1_000 * HOUR_MS, shards=2)

StartedReplay = tuple[Job, ReplaySpec, list[PartProgress]]


async def create_source_and_targets(storage: Storage) -> None:
    """Create the source stream, the target stream and the target queue."""
    await storage.catalog.put_stream(SOURCE, KEEP)
    await storage.catalog.put_stream(TARGET, KEEP)
    await storage.catalog.put_queue(WORK, QueueSpec())


async def fill(storage: Storage, count: int, first: int = 0) -> list[Record]:
    """Append JSON records with rotating keys to `source`."""
    records = [
        Record(b'{"n": %d, "odd": %s}' % (n, b"true" if n % 2 else b"false"), KEYS[n % len(KEYS)])
        for n in range(first, first + count)
    ]
    for nth in range(0, count, 100):
        await storage.streams.append(SOURCE, records[nth : nth + 100])
    return records


def bodies(records: Iterable[LogRecord]) -> list[bytes]:
    return [record.record.data for record in records]


def replay_request(**fields: Any) -> ReplayRequest:
    """A replay of `source`, by default to the stream `target`."""
    defaults: dict[str, Any] = {"stream": "source", "target": Target(stream="target")}
    return ReplayRequest(**(defaults | fields))


async def start_replay(storage: Storage, worker: str = "w") -> StartedReplay:
    """Claim the due replay, and fix its window."""
    job = await storage.jobs.claim(worker, [JobKind.REPLAY])
    assert job is not None
    spec = spec_of(job)
    return job, spec, await storage.replays.prepare(job.claim, job, spec)


async def send_parts_in_waves(storage: Storage, job: Job, spec: ReplaySpec, **more) -> TaskEnd:
    """Send the remaining parts in waves, until one halts or fails."""
    source = await storage.catalog.stream(SOURCE)
    parts = await storage.replays.parts(job.job_id)
    for wave in waves(parts, source.shards, spec.request.order):
        left = spec.request.max_records
        if left is not None:
            left -= sum(part.selected for part in await storage.replays.parts(job.job_id))
        task = SendParts(job.claim, tuple(wave), records_max=left, **more)
        task_end = await send_parts(storage, task)
        if task_end != TaskEnd():
            return task_end
    return TaskEnd()


async def replay(
    storage: Storage, request: ReplayRequest, replay_id: str | None = None
) -> list[PartProgress]:
    """Run a replay from submission to completion, and return its parts."""
    asked = await storage.replays.submit("default", request, replay_id)
    job, spec, _ = await start_replay(storage)
    assert job.job_id == asked.job.job_id
    task_end = await send_parts_in_waves(storage, job, spec)
    assert task_end == TaskEnd(), task_end.failure
    await storage.replays.retire_producers(job, spec)
    await storage.jobs.finish(job.claim)
    return await storage.replays.parts(job.job_id)


async def everything(storage: Storage, name: StreamName = TARGET) -> list[LogRecord]:
    """Read all records of a stream, children after parents."""
    records: list[LogRecord] = []
    positions: dict[int, int] = {}
    while True:
        read = await storage.record_reader.read(name, positions)
        records += [record for shard in read.shards for record in shard.records]
        if read.positions == positions:
            return records
        positions = read.positions
