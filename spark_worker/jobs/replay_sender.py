"""Sender of a replay's parts: the work of one task, on Spark or in the worker's process.

    read ──▶ select ──▶ wait: pace, live traffic, lag ──▶ send, again until answered ──▶ position

A part's position moves when everything below it is in the target, and is stored every second, under the job's
claim. So an attempt that is lost costs a second of duplicates, which the target detects. The same look at
the store returns the owner's request.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from spark_worker.jobs.replay_reader import OrderedReader, Run, SendBatch
from spark_worker.jobs.replay_targets import Append, QueueTarget, StreamTarget
from spark_worker.jobs.replay_throttle import ReplayHalted, ReplayThrottle
from spark_worker.runtime.fault_points import fault
from storage.bootstrap import Storage
from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end, in_background
from storage.domain import limits
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobLease, LeaseLost, RequestedState
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueType
from storage.domain.replays.pacing import ReplaySpeed
from storage.domain.replays.replay import (
    Order,
    PartProgress,
    ReplaySpec,
    ShardMode,
)
from storage.domain.streams.idempotence import AppendCounts
from storage.replays.engine import spec_of

_CLOCK = SystemClock()


class SendParts(msgspec.Struct, frozen=True):
    """The parts of a replay that a task sends.

    `records_max`: how many records it may select; then the parts are sent one after another. `turn_ms`: for how long the task
    may keep its slot.
    """

    claim: JobLease
    parts: tuple[str, ...]
    rhythm: ReplaySpeed | None = None
    records_max: int | None = None
    turn_ms: int | None = None


class TaskEnd(msgspec.Struct, frozen=True):
    """The end of a task: all its parts are done, it was `halted`, or it failed.

    `retry`: another attempt may succeed.
    """

    halted: bool = False
    failure: str = ""
    retry: bool = True


async def _never() -> None:
    await asyncio.Event().wait()


async def send_parts(
    storage: Storage,
    task: SendParts,
    clock: Clock = _CLOCK,
    *,
    stop: Callable[[], Coroutine[Any, Any, None]] = _never,
) -> TaskEnd:
    """Send the remaining records of some parts of a replay.

    The task halts when `stop` returns.
    """
    try:
        job = await storage.jobs.get(task.claim.job_id)
        parts = await storage.replays.parts(job.job_id)
        mine = [part for part in parts if part.part in task.parts and not part.done]
        spec = spec_of(job)
        target = await _target_for(storage, job, spec)
    except MillstreamError as error:
        return TaskEnd(failure=error.detail, retry=error.code.retryable)
    sender = _ReplaySender(
        storage=storage, job=job, spec=spec, task=task, target=target, clock=clock
    )
    async with in_background(sender.halt_after(stop()), "replay stop"):
        return await sender.run(mine)


async def _target_for(storage: Storage, job: Job, spec: ReplaySpec) -> QueueTarget | StreamTarget:
    target = spec.request.target
    if target.queue is not None:
        queue = await storage.catalog.queue(QueueName(target.queue, job.namespace))
        return QueueTarget(storage, job, spec, queue.spec.type is QueueType.FIFO)
    hash_keys: dict[int, int] = {}
    if target.shard_mode is ShardMode.KEEP:
        source = await storage.catalog.stream(StreamName(spec.request.stream, job.namespace))
        hash_keys = {shard.index: shard.first_hash_key for shard in source.shards}
    return StreamTarget(storage, job, spec, hash_keys)


class _ReplaySender:
    """Sender of lanes, which stores the progress of the job's parts as it goes."""

    def __init__(
        self,
        *,
        storage: Storage,
        job: Job,
        spec: ReplaySpec,
        task: SendParts,
        target: StreamTarget | QueueTarget,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._job = job
        self._spec = spec
        self._task = task
        self._target = target
        self._throttle = ReplayThrottle(task.rhythm, clock)
        self._unsaved: dict[str, PartProgress] = {}
        self._latest: dict[str, PartProgress] = {}
        self._source = storage.replays.column_source(job.namespace, spec)

    async def halt_after(self, stop: Coroutine[Any, Any, None]) -> None:
        """Halt once a coroutine has ended."""
        await stop
        self._throttle.halt()

    async def run(self, parts: Sequence[PartProgress]) -> TaskEnd:
        """Send all lanes."""
        self._latest = {part.part: part for part in parts}
        saving = asyncio.create_task(self._keep_saving())
        try:
            await self._throttle.retry(self._refresh)
            await self._all(parts)
            ended = TaskEnd()
        except ReplayHalted:
            ended = TaskEnd(halted=True)
        except MillstreamError as error:
            ended = TaskEnd(failure=error.detail, retry=error.code.retryable)
        finally:
            await end(saving)
        return await self._save_final(ended)

    async def _save_final(self, ended: TaskEnd) -> TaskEnd:
        """Store the final progress: a part is done only when that is stored."""
        try:
            await self._save()
        except LeaseLost:
            return TaskEnd(halted=True)
        except MillstreamError as error:
            return ended if ended.failure else TaskEnd(failure=error.detail)
        return ended

    async def _all(self, parts: Sequence[PartProgress]) -> None:
        left = self._task.records_max
        if self._spec.request.order is Order.TIME:
            await self._lane(parts, left)
        elif left is not None:
            for part in parts:
                left -= await self._lane([part], left)
        else:
            await self._concurrently(parts)

    async def _concurrently(self, parts: Sequence[PartProgress]) -> None:
        """Send parts concurrently, a limited number; all of them if each record has its time."""
        most = len(parts) if self._task.rhythm else limits.REPLAY_PART_CONCURRENCY_MAX
        turns = asyncio.Semaphore(max(1, most))

        async def one(part: PartProgress) -> None:
            async with turns:
                await self._lane([part], None)

        lanes = [asyncio.create_task(one(part)) for part in parts]
        try:
            await asyncio.gather(*lanes)
        except (ReplayHalted, MillstreamError):
            self._throttle.halt()
            # Each ends by itself, and the batch that it has just sent is counted.
            await asyncio.wait(lanes)
            raise
        finally:
            await end(*lanes)

    async def _lane(self, parts: Sequence[PartProgress], left: int | None) -> int:
        """Send one lane; return how many records were selected."""
        if not parts:
            return 0
        selected = 0
        lane = OrderedReader(self._source, parts, records_max=left)
        ahead = asyncio.create_task(self._next(lane))
        try:
            while (prepared := await ahead) is not None:
                ahead = asyncio.create_task(self._next(lane))
                selected += len(prepared.batch)
                self._note(await self._send(prepared))
        except Exception as error:
            error.add_note(", ".join(f"part {part.part} at {part.position}" for part in parts))
            raise
        finally:
            await end(ahead)
            if not ahead.cancelled():
                ahead.exception()  # retrieved: what ended the lane is raised already
        return selected

    async def _next(self, lane: OrderedReader) -> "_Prepared | None":
        """Return the lane's next batch once it is due, or progress without records.

        None at the lane's end. Reads and encodes while the batch before it is sent.
        """
        pacing = self._spec.request.pacing
        while await self._throttle.retry(lane.prefetch):
            await self._throttle.wait_for_readers()
            batch = lane.take(
                min(pacing.batch_records_max, self._target.records_max),
                pacing.batch_bytes_max,
                self._throttle.is_due,
            )
            if batch.after:
                return _Prepared(batch, self._target.prepare(batch.runs))
            await self._throttle.wait_until_due(lane.next_arrival_ms())
        return None

    def _note(self, parts: Sequence[PartProgress]) -> None:
        """Keep the progress of parts until it is stored."""
        moved = {part.part: part for part in parts}
        self._unsaved |= moved
        self._latest |= moved

    async def _send(self, prepared: "_Prepared") -> Sequence[PartProgress]:
        """Send a batch, retrying until it is answered; return the progress of its parts."""
        batch, pacing = prepared.batch, self._spec.request.pacing
        if not batch.runs:
            return _counted(batch, AppendCounts(0, 0), self._latest)
        if pacing.records_per_second is not None or pacing.bytes_per_second is not None:
            wait_ms = await self._throttle.retry(
                lambda: self._storage.replays.reserve(
                    self._job, self._spec, len(batch), batch.size_bytes
                )
            )
            await self._throttle.wait(wait_ms)
        fault("replay.before_send")
        counts = AppendCounts(0, 0)
        try:
            while counts.total < len(batch):
                counts = await self._throttle.retry(lambda: self._append(prepared.append))
        except (ReplayHalted, MillstreamError):
            if counts.total:
                self._note(_counted_in_part(batch, counts, self._latest))
            raise
        fault("replay.after_send")
        await self._throttle.pause()
        return _counted(batch, counts, self._latest)

    async def _append(self, append: Append) -> AppendCounts:
        await self._storage.replays.check_target(self._job.namespace, self._spec)
        return await self._throttle.measure(append())

    # Progress, and whether to continue

    async def _keep_saving(self) -> None:
        interval_s = limits.REPLAY_SAVE_MS / limits.SECOND_MS
        await periodic(interval_s, self._save_or_halt, "replay progress", delay_first=True)

    async def _save_or_halt(self) -> None:
        """Save the progress; until a failed save is repeated, the target detects duplicates."""
        self._note_wait()
        try:
            await self._save()
            await self._refresh()
        except LeaseLost:
            self._throttle.halt()

    def _note_wait(self) -> None:
        """Mark the parts as waiting, once until they move, so that the job can yield."""
        attempt = self._task.claim.attempt
        if self._throttle.waits:
            self._unsaved |= {
                name: msgspec.structs.replace(part, waiting_attempt=attempt)
                for name, part in self._latest.items()
                if not part.done and part.waiting_attempt != attempt
            }
            self._latest |= self._unsaved

    async def _save(self) -> None:
        """Store unsaved progress; what cannot be stored, also as the task ends, stays unsaved."""
        unsaved, self._unsaved = self._unsaved, {}
        try:
            if unsaved:
                fault("replay.before_save")
                await self._storage.replays.save(self._task.claim, [*unsaved.values()])
                unsaved = {}
        finally:
            self._unsaved = unsaved | self._unsaved

    async def _refresh(self) -> None:
        """Read the owner's request, and whether the target's readers keep up."""
        job = await self._storage.jobs.get(self._job.job_id)
        if job.requested_state is not RequestedState.NONE or job.claim != self._task.claim:
            self._throttle.halt()
        self._throttle.is_lagging = await self._storage.replays.is_lagging(
            self._job.namespace, self._spec
        )


class _Prepared(msgspec.Struct, frozen=True):
    """A batch, and the call that appends it."""

    batch: SendBatch
    append: Append


def _counted_in_part(
    batch: SendBatch, counts: AppendCounts, before: Mapping[str, PartProgress]
) -> list[PartProgress]:
    """Return the progress of parts of whose batch the target has taken the beginning.

    Their positions stay: the next attempt sends the batch again.
    """
    records_left, runs = counts.total, list[Run]()
    for run in batch.runs:
        count = min(records_left, len(run.columns))
        records_left -= count
        runs.append(msgspec.structs.replace(run, columns=run.columns.between(0, count)))
    after = [before[part] for part in {run.part for run in runs}]
    return _counted(SendBatch(runs, 0, after), counts, before)


def _counted(
    batch: SendBatch, counts: AppendCounts, before: Mapping[str, PartProgress]
) -> list[PartProgress]:
    """Return the progress of parts after a batch, with the counts of what was sent.

    `before`: their progress before it. The duplicates of a batch are taken to be its beginning.
    """
    after = {
        part.part: msgspec.structs.replace(
            part, sent=was.sent, duplicates=was.duplicates, bytes=was.bytes
        )
        for part in batch.after
        for was in (before[part.part],)
    }
    duplicates_left = counts.duplicates
    for run in batch.runs:
        part, count = after[run.part], len(run.columns)
        duplicates = min(duplicates_left, count)
        duplicates_left -= duplicates
        after[run.part] = msgspec.structs.replace(
            part,
            sent=part.sent + count - duplicates,
            duplicates=part.duplicates + duplicates,
            bytes=part.bytes + sum(run.columns.content.sizes()),
        )
    return [*after.values()]
