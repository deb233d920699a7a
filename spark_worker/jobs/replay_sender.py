"""Sender of a replay's parts: the work of one Spark task, or of a test without Spark.

    read ──▶ select ──▶ wait: pace, live traffic, lag ──▶ send, again until answered ──▶ position

A part's position moves when everything below it is in the target, and is stored every second, under the job's
claim. So an attempt that is lost costs a second of duplicates, which the target detects. The same look at
the store returns the owner's request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from spark_worker.jobs.replay_reader import Batch, Lane, Taken
from spark_worker.runtime.fault_points import fault
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import ErrorCode, MillstreamError
from storage.domain.jobs import Claim, Job, LeaseLost, Wish
from storage.domain.log.record_batch import CONTENT_TYPE, Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.replays.pacing import AdaptiveThrottle, ReplaySpeed
from storage.domain.replays.replay import (
    OWN_OF_REPLAYS,
    Order,
    Replaying,
    ReplaySpec,
    ShardMode,
    group_for,
    origin,
    own_headers,
    producer_of,
)
from storage.domain.streams.idempotence import AppendCounts, SequencedBatch
from storage.domain.streams.record_filter import selects
from storage.domain.streams.stream import LogRecord
from storage.replays.engine import spec_of

T = TypeVar("T")

_CLOCK = SystemClock()
_LOOK_S = 0.2  # between checks whether a target's readers have caught up

_PRESSURE = frozenset({ErrorCode.QUEUE_FULL, ErrorCode.ARCHIVE_BEHIND, ErrorCode.STORAGE_BUSY})
"""The target has no capacity now: a replay waits for it indefinitely."""


class SendParts(msgspec.Struct, frozen=True):
    """The parts of a replay that a task sends.

    `records_max`: how many records it may select; then the parts are sent one after another.
    """

    claim: Claim
    parts: tuple[str, ...]
    rhythm: ReplaySpeed | None = None
    records_max: int | None = None


class TaskEnd(msgspec.Struct, frozen=True):
    """The end of a task: all its parts are done, it was `halted`, or it failed.

    `retry`: another attempt may succeed.
    """

    halted: bool = False
    failure: str = ""
    retry: bool = True


class _Halted(Exception):
    """The owner requested that the job stops, or another attempt has it."""


async def send_parts(storage: Storage, task: SendParts, clock: Clock = _CLOCK) -> TaskEnd:
    """Send the remaining records of some parts of a replay."""
    try:
        job = await storage.jobs.get(task.claim.job_id)
        parts = await storage.replays.parts(job.job_id)
        mine = [part for part in parts if part.part in task.parts and not part.done]
        sender = await _sender_for(storage, job, task, clock)
    except MillstreamError as error:
        return TaskEnd(failure=error.detail, retry=error.code.retryable)
    return await sender.run(mine)


async def _sender_for(storage: Storage, job: Job, task: SendParts, clock: Clock) -> "_Sender":
    spec = spec_of(job)
    target = spec.request.target
    if target.queue is not None:
        queue = await storage.catalog.queue(QueueName(target.queue, job.namespace))
        is_fifo = queue.spec.type is QueueType.FIFO
        return _Sender(storage, job, spec, task, _ToQueue(storage, job, spec, is_fifo), clock)
    places: dict[int, int] = {}
    if target.shard_mode is ShardMode.KEEP:
        source = await storage.catalog.stream(StreamName(spec.request.stream, job.namespace))
        places = {shard.index: shard.first_hash_key for shard in source.shards}
    return _Sender(storage, job, spec, task, _ToStream(storage, job, spec, places), clock)


class _Sender:
    """Sender of lanes, which stores the progress of the job's parts as it goes."""

    def __init__(
        self,
        storage: Storage,
        job: Job,
        spec: ReplaySpec,
        task: SendParts,
        put: "_ToStream | _ToQueue",
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._job = job
        self._spec = spec
        self._task = task
        self._put = put
        self._clock = clock
        self._courtesy = AdaptiveThrottle()
        self._halt = asyncio.Event()
        self._lagging = False
        self._unsaved: dict[str, Replaying] = {}
        self._is_meant = selects(spec.request.filter)
        self._source = StreamName(spec.request.stream, job.namespace)

    async def run(self, parts: Sequence[Replaying]) -> TaskEnd:
        """Send all lanes."""
        saving = asyncio.create_task(self._keep_saving())
        try:
            await self._patiently(self._look)
            await self._all(parts)
            ended = TaskEnd()
        except _Halted:
            ended = TaskEnd(halted=True)
        except MillstreamError as error:
            ended = TaskEnd(failure=error.detail, retry=error.code.retryable)
        finally:
            await end(saving)
        return await self._last_word(ended)

    async def _last_word(self, ended: TaskEnd) -> TaskEnd:
        """Store the final progress: a part is done only when that is stored."""
        try:
            await self._save()
        except LeaseLost:
            return TaskEnd(halted=True)
        except MillstreamError as error:
            return ended if ended.failure else TaskEnd(failure=error.detail)
        return ended

    async def _all(self, parts: Sequence[Replaying]) -> None:
        left = self._task.records_max
        if self._spec.request.order is Order.TIME:
            await self._lane(parts, left)
        elif left is not None:
            for part in parts:
                left -= await self._lane([part], left)
        else:
            await self._at_once(parts)

    async def _at_once(self, parts: Sequence[Replaying]) -> None:
        """Send parts concurrently, a limited number; all of them if each record has its time."""
        most = len(parts) if self._task.rhythm else limits.REPLAY_PARTS_AT_ONCE
        turns = asyncio.Semaphore(max(1, most))

        async def one(part: Replaying) -> None:
            async with turns:
                await self._lane([part], None)

        lanes = [asyncio.create_task(one(part)) for part in parts]
        try:
            await asyncio.gather(*lanes)
        except (_Halted, MillstreamError):
            self._halt.set()
            await asyncio.wait(
                lanes
            )  # each ends by itself, and the batch that it has just sent is counted
            raise
        finally:
            await end(*lanes)

    async def _lane(self, parts: Sequence[Replaying], left: int | None) -> int:
        """Send one lane; return how many records were selected."""
        if not parts:
            return 0
        selected, pacing = 0, self._spec.request.pacing
        lane = Lane(self._storage.streams, self._source, parts, self._is_meant, left)
        while await self._patiently(lane.fill):
            await self._when_welcome()
            batch = lane.take(pacing.batch_records_max, pacing.batch_bytes_max, self._is_due)
            if batch.records:
                after = await self._send(batch)
                selected += len(batch.records)
            else:
                after = batch.after
            if not after:
                await self._until_due(lane)
            lane.done(after)
            self._unsaved |= {part.part: part for part in after}
        return selected

    # Timing

    def _is_due(self, record: LogRecord) -> bool:
        rhythm = self._task.rhythm
        return rhythm is None or rhythm.due_ms(record.arrival_ms) <= self._clock.now_ms()

    async def _until_due(self, lane: Lane) -> None:
        following, rhythm = lane.peek(), self._task.rhythm
        if following is not None and rhythm is not None:
            wait_ms = rhythm.due_ms(following.arrival_ms) - self._clock.now_ms()
            await self._rest(max(1, wait_ms))

    async def _when_welcome(self) -> None:
        """Wait while the target's readers have too large a backlog."""
        if self._halt.is_set():
            raise _Halted
        while self._lagging:
            await self._rest(_LOOK_S * limits.SECOND_MS)

    async def _rest(self, ms: float) -> None:
        """Wait, but not longer than until the task is to stop.

        Raises _Halted.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(ms / limits.SECOND_MS):
                await self._halt.wait()
        if self._halt.is_set():
            raise _Halted

    # Sending

    async def _send(self, batch: Batch) -> Sequence[Replaying]:
        """Send a batch, retrying until it is answered; return the progress of its parts."""
        pacing = self._spec.request.pacing
        if pacing.records_per_second is not None or pacing.bytes_per_second is not None:
            wait_ms = await self._patiently(
                lambda: self._storage.replays.reserve(
                    self._job, self._spec, len(batch.records), batch.size_bytes
                )
            )
            await self._rest(wait_ms)
        fault("replay.before_send")
        risen = await self._patiently(lambda: self._timed(batch))
        fault("replay.after_send")
        if self._courtesy.pause_ms:
            await self._settle(self._courtesy.pause_ms)
        return _counted(batch, risen)

    async def _timed(self, batch: Batch) -> AppendCounts:
        await self._storage.replays.check_target(self._job.namespace, self._spec)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        risen = await self._put(batch.records)
        self._courtesy.note((loop.time() - begun) * limits.SECOND_MS)
        return risen

    async def _settle(self, ms: float) -> None:
        """Pause after a batch, which is counted even if the task is to stop."""
        with suppress(_Halted):
            await self._rest(ms)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry `work` until it succeeds.

        Raises immediately errors that another attempt would not cure, and others after many tries; _Halted.
        """
        wait_ms: float = limits.REPLAY_RETRY_MS_MIN
        tries = 0
        while True:
            try:
                return await work()
            except MillstreamError as error:
                tries += error.code not in _PRESSURE
                if not error.code.retryable or tries > limits.REPLAY_RETRIES_MAX:
                    raise
            await self._rest(wait_ms)
            wait_ms = min(2 * wait_ms, limits.REPLAY_RETRY_MS_MAX)

    # Progress, and whether to continue

    async def _keep_saving(self) -> None:
        while True:
            await asyncio.sleep(limits.REPLAY_SAVE_MS / limits.SECOND_MS)
            try:
                await self._save()
                await self._look()
            except LeaseLost:
                self._halt.set()
            except MillstreamError:
                continue  # repeated in a second; the target detects duplicates of what is sent in between

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

    async def _look(self) -> None:
        """Read the owner's request, and whether the target's readers keep up."""
        job = await self._storage.jobs.get(self._job.job_id)
        if job.wish is not Wish.NONE or job.claim != self._task.claim:
            self._halt.set()
        self._lagging = await self._storage.replays.is_lagging(self._job.namespace, self._spec)


class _ToStream:
    """Sender to a stream.

    `places`: the first hash key of each source shard, for a target that keeps shards.
    """

    def __init__(
        self, storage: Storage, job: Job, spec: ReplaySpec, places: dict[int, int]
    ) -> None:
        assert spec.request.target.stream is not None
        self._streams = storage.streams
        self._name = StreamName(spec.request.target.stream, job.namespace)
        self._job_id = job.job_id
        self._spec = spec
        self._places = places

    async def __call__(self, records: Sequence[Taken]) -> AppendCounts:
        rise = _rise_of(self._job_id, records)
        sent = [self._record(one) for one in records]
        return await self._streams.append_rising_together(
            self._name, rise, sent, own=OWN_OF_REPLAYS
        )

    def _record(self, item: Taken) -> Record:
        record = item.at.record
        own, content_type = own_headers(record.headers)
        if content_type:
            own.append((CONTENT_TYPE, "", content_type.encode()))
        came_from = origin(self._spec.replay_id, self._spec.request.stream, item.shard, item.at)
        return Record(
            record.data,
            record.key,
            (*own, *came_from),
            record.event_time_ms,
            self._places.get(item.shard),
        )


class _ToQueue:
    """Sender to a queue."""

    def __init__(self, storage: Storage, job: Job, spec: ReplaySpec, is_fifo: bool) -> None:
        assert spec.request.target.queue is not None
        self._queues = storage.queues
        self._name = QueueName(spec.request.target.queue, job.namespace)
        self._job_id = job.job_id
        self._spec = spec
        self._is_fifo = is_fifo

    async def __call__(self, records: Sequence[Taken]) -> AppendCounts:
        rise = _rise_of(self._job_id, records)
        return await self._queues.send_rising_together(
            self._name, rise, [self._message(one) for one in records]
        )

    def _message(self, item: Taken) -> NewMessage:
        record, producer = item.at.record, producer_of(self._job_id, item.part)
        own, content_type = own_headers(record.headers)
        return NewMessage(
            record.data,
            tuple(own),
            content_type,
            group_for(record.key, item.shard, fifo=self._is_fifo),
            f"{producer}:{item.at.offset}" if self._is_fifo else "",
            system=origin(self._spec.replay_id, self._spec.request.stream, item.shard, item.at),
        )


def _rise_of(job_id: str, records: Sequence[Taken]) -> SequencedBatch:
    names = {part: producer_of(job_id, part) for part in {one.part for one in records}}
    return SequencedBatch([names[one.part] for one in records], [one.at.offset for one in records])


def _counted(batch: Batch, risen: AppendCounts) -> list[Replaying]:
    """Return the parts with the counts of a sent batch added.

    The duplicates of a batch are taken to be its beginning.
    """
    sent: dict[str, list[int]] = {part.part: [0, 0, 0] for part in batch.after}
    for nth, item in enumerate(batch.records):
        tally = sent[item.part]
        tally[nth < risen.duplicates] += 1
        tally[2] += item.at.record.size_bytes
    return [
        msgspec.structs.replace(
            part,
            sent=part.sent + sent[part.part][0],
            duplicates=part.duplicates + sent[part.part][1],
            bytes=part.bytes + sent[part.part][2],
        )
        for part in batch.after
    ]
