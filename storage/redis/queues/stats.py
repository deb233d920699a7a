"""Counts, maintenance and purges of a queue: typed wrappers of those scripts."""

from storage.domain.clock import ScriptTime
from storage.domain.errors import PurgeInProgress
from storage.domain.limits import Limits
from storage.domain.queues.queue import Queue, QueueStats
from storage.hot_store.queue_store import QueueStateStore, SweepResult
from storage.redis.queues.script_args import attempts_of, fifo_arg, history_arg, queue_keys_of
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked


class RedisQueueStateStore(QueueStateStore):
    """Counts, maintenance and purges as one script each."""

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self._pipeline = pipeline
        self._limits = limits

    async def sweep(self, queue: Queue, now: ScriptTime) -> SweepResult:
        reply = checked(
            await self._pipeline.write(
                "sweep_queue",
                queue_keys_of(queue),
                *upkeep_arguments(queue, self._limits, now),
                history_arg(queue),
            )
        )
        return SweepResult(reply[1], reply[2], bool(reply[3]))

    async def stats(self, queue: Queue, now: ScriptTime) -> QueueStats:
        reply = checked(
            await self._pipeline.write(
                "count_messages", queue_keys_of(queue), *upkeep_arguments(queue, self._limits, now)
            )
        )
        names = (
            "ready",
            "delayed",
            "in_flight",
            "dead_lettered",
            "sent",
            "deduplicated",
            "acknowledged",
        )
        totals = ("expired", "purged", "receive_count", "bytes_sent")
        rest = ("moving", "moved_in", "moved_out", "parked", "dropped", "bytes_held")
        oldest = None if reply[12] < 0 else reply[12]
        return QueueStats(
            **dict(zip((*names, *totals), reply[1:12], strict=True)),
            **dict(zip(rest, reply[13:19], strict=True)),
            oldest_ready_at_ms=oldest,
        )

    async def purge(self, queue: Queue, at_most_every_ms: int, now: ScriptTime) -> int:
        reply = checked(
            await self._pipeline.write("purge_queue", queue_keys_of(queue), now, at_most_every_ms)
        )
        if reply[1] < 0:
            raise PurgeInProgress
        return int(reply[1])


def upkeep_arguments(queue: Queue, limits: Limits, now: ScriptTime) -> tuple[Argument, ...]:
    """Return the arguments of every script that first brings a queue up to date."""
    spec = queue.spec
    return (
        now,
        attempts_of(queue),
        spec.retention_ms,
        spec.dead_letter_retention_ms,
        limits.due_moves_per_call,
        limits.expired_per_call,
        fifo_arg(queue),
    )
