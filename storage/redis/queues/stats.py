"""Counts, maintenance and purges of a queue: typed wrappers of those scripts."""

from storage.domain.clock import ScriptTime
from storage.domain.errors import PurgeInProgress
from storage.domain.limits import Limits
from storage.domain.queues.queue import Queue, QueueStats
from storage.hot_store.queues.store import QueueStateStore, SweepResult
from storage.redis.queues.queue_scripts import QueueScripts
from storage.redis.queues.script_args import attempts_of, fifo_arg, history_arg
from storage.redis.transport.command import Argument


class RedisQueueStateStore(QueueScripts, QueueStateStore):
    """Counts, maintenance and purges as one script each."""

    async def sweep(self, queue: Queue, now: ScriptTime) -> SweepResult:
        reply = await self._write(
            "sweep_queue", queue, *upkeep_arguments(queue, self._limits, now), history_arg(queue)
        )
        return SweepResult(reply[1], reply[2], bool(reply[3]))

    async def is_idle(self, queue: Queue, idle_ms: int, now: ScriptTime) -> bool:
        return bool((await self._write("expire_queue", queue, now, idle_ms, "0"))[1])

    async def delete_idle(self, queue: Queue, idle_ms: int, now: ScriptTime) -> bool:
        return bool((await self._write("expire_queue", queue, now, idle_ms, "1"))[1])

    async def stats(self, queue: Queue, now: ScriptTime) -> QueueStats:
        reply = await self._write(
            "count_messages", queue, *upkeep_arguments(queue, self._limits, now)
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
            fenced=bool(reply[-1]),
        )

    async def purge(self, queue: Queue, at_most_every_ms: int, now: ScriptTime) -> int:
        reply = await self._write("purge_queue", queue, now, at_most_every_ms)
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
