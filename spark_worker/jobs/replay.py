"""Replay job: fixes the window, sends the parts, and retires the producers.

    prepare ──▶ wave after wave of parts ──▶ retire ──▶ done
                  │ halted: wait for the request to stop
                  │ no progress: give the place back, and continue later
                  └ failed: the attempt fails, and another continues where the parts are

The producers are retired only when every part is done and that is stored: another attempt then finds nothing to send.
The process that ends a cancelled replay retires them as well.

The parts of a wave are sent by tasks: of one Spark job, or of a small replay by one task in the worker's process, which
neither starts nor waits for Spark. Replays that may last, the large ones and those with pacing, share the worker's slots for
long jobs; small ones run beside them.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from spark_worker.jobs import spark_tasks
from spark_worker.jobs.replay_sender import SendParts, TaskEnd, send_parts
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import (
    JobContext,
    JobStopped,
    PermanentFailure,
    StopReason,
    TransientFailure,
)
from spark_worker.settings import TaskSettings
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.clock import SystemClock
from storage.domain.errors import MillstreamError
from storage.domain.jobs import RequestedState, WaitReason
from storage.domain.names import StreamName
from storage.domain.replays.pacing import ReplaySpeed
from storage.domain.replays.replay import (
    Order,
    PartProgress,
    ReplaySpec,
    progress_of,
    records_to_read,
    waves,
)
from storage.settings import StorageSettings

_TASK_CONNECTIONS = 2  # to Postgres: one saves, one looks
_WAIT_S = 0.2


def run(work: JobContext) -> Mapping[str, Any]:
    """Run a replay; return its progress at the end."""
    spec = work.spec(ReplaySpec)
    try:
        parts = work.call(work.storage.replays.prepare(work.claim, work.job, spec))
        fault("replay.prepared")
        work.call(_wait_for_readers(work, spec))
        work.check()
        is_small = records_to_read(parts, spec.request) < work.limits.replay_small_records
        if not is_small:
            work.require_spark()
        if not is_small or not spec.request.pacing.is_unlimited:
            work.acquire_long_slot()
        run_tasks = _in_process if is_small else _on_spark
        for wave in _waves(work, spec, parts):
            _send_all(work, spec, wave, run_tasks)
    except JobStopped:
        if work.stop_reason is StopReason.CANCEL:
            work.call(work.storage.replays.retire_producers(work.job, spec))
        raise
    fault("replay.before_forget")
    work.call(work.storage.replays.retire_producers(work.job, spec))
    fault("replay.after_forget")
    return progress_of(_parts(work))


def _waves(work: JobContext, spec: ReplaySpec, parts: Sequence[PartProgress]) -> list[list[str]]:
    name = StreamName(spec.request.stream, work.job.namespace)
    source = work.call(work.storage.catalog.stream(name))
    return waves(parts, source.shards, spec.request.order)


def _parts(work: JobContext) -> list[PartProgress]:
    return work.call(work.storage.replays.parts(work.job.job_id))


def _send_all(
    work: JobContext, spec: ReplaySpec, wave: Sequence[str], run_tasks: "RunTasks"
) -> None:
    """Send the parts of a wave until all are done.

    Raises JobStopped.
    """
    rhythm: ReplaySpeed | None = None
    while left := [part for part in _parts(work) if part.part in wave and not part.done]:
        rhythm = rhythm or _rhythm(work, spec, left)
        task = _task_of(work, spec, left, rhythm)
        with work.background(_yield_when_idle(work, spec, task.rhythm)):
            ends = run_tasks(work, task, has_one_writer=_has_one_writer(spec))
        work.check()
        for task_end in ends:
            if task_end.failure:
                raise (
                    TransientFailure(task_end.failure)
                    if task_end.retry
                    else PermanentFailure(task_end.failure)
                )
        if any(task_end.halted for task_end in ends):
            _wait_for_stop(work)
            rhythm = None


async def _wait_for_readers(work: JobContext, spec: ReplaySpec) -> None:
    """Give the place back if the target's readers have a backlog, before Spark is used."""
    if await work.storage.replays.is_lagging(work.job.namespace, spec):
        await work.yield_slot(WaitReason.READERS, work.limits.job_wait_ms)


async def _yield_when_idle(work: JobContext, spec: ReplaySpec, rhythm: ReplaySpeed | None) -> None:
    """Give the place back once the parts have waited for JOB_IDLE_MS, and none has moved.

    A replay with a rate limit keeps its place: the time that it has reserved would be lost.
    """
    loop = asyncio.get_running_loop()
    last, since = None, loop.time()
    while True:
        await asyncio.sleep(limits.REPLAY_SAVE_MS / limits.SECOND_MS)
        with suppress(MillstreamError):
            parts = await work.storage.replays.parts(work.job.job_id)
            positions = [part.position for part in parts]
            if positions != last or not any(_waits(part, work) for part in parts):
                last, since = positions, loop.time()
            elif loop.time() - since >= work.limits.job_idle_ms / limits.SECOND_MS:
                left = [part for part in parts if not part.done]
                if (wait := await _reason(work, spec, rhythm, left)) is not None:
                    await work.yield_slot(*wait)
                    return


def _waits(part: PartProgress, work: JobContext) -> bool:
    return not part.done and part.waiting_attempt == work.claim.attempt


async def _reason(
    work: JobContext, spec: ReplaySpec, rhythm: ReplaySpeed | None, left: Sequence[PartProgress]
) -> tuple[WaitReason, int] | None:
    """Return what a replay without progress waits for, and for how many ms it need not try."""
    namespace, pacing = work.job.namespace, spec.request.pacing
    if await work.storage.replays.is_lagging(namespace, spec):
        return WaitReason.READERS, work.limits.job_wait_ms
    if pacing.records_per_second is not None or pacing.bytes_per_second is not None:
        return None
    if rhythm is None:
        return WaitReason.TARGET, work.limits.job_wait_ms
    arrival_ms = await work.storage.replays.oldest_arrival(namespace, spec, left)
    due_in_ms = 0 if arrival_ms is None else rhythm.due_ms(arrival_ms) - SystemClock().now_ms()
    return (WaitReason.PACE, due_in_ms) if due_in_ms > work.limits.job_wait_ms else None


def _task_of(
    work: JobContext, spec: ReplaySpec, left: Sequence[PartProgress], rhythm: ReplaySpeed | None
) -> SendParts:
    """Return the task of sending what is left."""
    most = spec.request.max_records
    if most is not None:
        most -= sum(part.selected for part in _parts(work))
    return SendParts(work.claim, tuple(part.part for part in left), rhythm, most)


def _has_one_writer(spec: ReplaySpec) -> bool:
    """Return whether all parts are sent by one task, in one order."""
    return spec.request.max_records is not None or spec.request.order is Order.TIME


def _rhythm(work: JobContext, spec: ReplaySpec, left: Sequence[PartProgress]) -> ReplaySpeed | None:
    """Return the replay speed from now on, beginning with the oldest record that is left."""
    speed = spec.request.pacing.speed
    if speed is None:
        return None
    arrived = work.call(work.storage.replays.oldest_arrival(work.job.namespace, spec, left))
    return None if arrived is None else ReplaySpeed(arrived, SystemClock().now_ms(), speed)


class RunTasks(Protocol):
    """Run the task of a wave to its end, in one piece or several."""

    def __call__(
        self, work: JobContext, task: SendParts, *, has_one_writer: bool
    ) -> Sequence[TaskEnd]: ...


def _in_process(work: JobContext, task: SendParts, *, has_one_writer: bool) -> Sequence[TaskEnd]:
    """Send in the worker's event loop, with its clients."""
    return [work.call(send_parts(work.storage, task, stop=work.wait_for_stop))]


def _on_spark(work: JobContext, task: SendParts, *, has_one_writer: bool) -> Sequence[TaskEnd]:
    """Send in Spark tasks, as many as Spark runs in parallel.

    On a cluster a task gives its slot back after a while, since others may wait for it. Locally there are slots for all.
    """
    context, parts = work.spark.sparkContext, task.parts
    if work.settings.has_cluster:
        task = msgspec.structs.replace(task, turn_ms=limits.REPLAY_TURN_MS)
    hands = 1 if has_one_writer else min(len(parts), spark_tasks.slots(context))
    tasks = [msgspec.structs.replace(task, parts=tuple(parts[nth::hands])) for nth in range(hands)]
    settings = TaskSettings(work.settings.storage)
    try:
        ended = spark_tasks.run_tasks(work, settings, tasks, _send_in_task, hands)
    except Exception:
        work.check()  # raises Stopped if the tasks failed because they were stopped
        raise
    return [msgspec.json.decode(one, type=TaskEnd) for one in ended]


def _send_in_task(settings: TaskSettings, items: Iterable[bytes]) -> list[bytes]:
    """Send parts in a Spark process, with its own event loop and clients."""
    storage = settings.storage().model_copy(update={"postgres_connections_max": _TASK_CONNECTIONS})
    tasks = [msgspec.json.decode(item, type=SendParts) for item in items]
    return [msgspec.json.encode(asyncio.run(_send(storage, task))) for task in tasks]


async def _send(settings: StorageSettings, task: SendParts) -> TaskEnd:
    try:
        async with open_storage(settings) as storage:
            return await _take_turn(storage, task)
    except MillstreamError as error:
        return TaskEnd(failure=error.detail, retry=error.code.retryable)


async def _take_turn(storage: Storage, task: SendParts) -> TaskEnd:
    """Send until the task's turn is over, which is no request to stop."""
    is_over = False

    async def end_of_turn() -> None:
        nonlocal is_over
        await asyncio.sleep((task.turn_ms or limits.DAY_MS) / limits.SECOND_MS)
        is_over = True

    ended = await send_parts(storage, task, stop=end_of_turn)
    return msgspec.structs.replace(ended, halted=ended.halted and not is_over)


def _wait_for_stop(work: JobContext) -> None:
    """Wait for the request to stop, or the lost lease, that a task saw before this process.

    Raises JobStopped, unless the request was withdrawn.
    """
    while True:
        work.sleep(_WAIT_S)
        job = work.call(work.storage.jobs.get(work.job.job_id))
        if job.claim == work.claim and job.requested_state is RequestedState.NONE:
            return
