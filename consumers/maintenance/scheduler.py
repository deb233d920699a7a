"""Scheduler of maintenance tasks, each run by one process at a time.

That holds whatever the number of sweepers. No caller waits for these tasks: a receive moves what is due by itself. They
keep counts fresh, memory small, and the restore marker by which a store that was restored from a copy is detected.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice

import msgspec

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import MillstreamError, QueueNotFound, StreamBusy, StreamNotFound
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import Queue
from storage.domain.streams.stream import StreamMode

logger = logging.getLogger(__name__)

_ROUNDS_PER_VISIT = 20  # so that a busy queue does not delay the others
_ENTRIES_PER_TRIM = 10_000
_SHARES = (
    6  # of the idle queues: with a round every five seconds, each is visited within half a minute
)
_VISITS_AT_ONCE = 50
_AT_ONCE = 3  # tasks: each holds a connection to Postgres for its lock, and its work needs another


class MaintenanceTask(msgspec.Struct, frozen=True):
    """A periodic task, with its minimum interval."""

    name: str
    every_ms: int
    work: Callable[[Storage], Awaitable[object]]


async def tidy_queues(storage: Storage) -> int:
    """Visit every queue: move due messages, drop expired ones, remove stragglers from the log."""
    queues = [queue async for queue in storage.catalog.every_queue()]
    return sum(await _visited(queues, partial(_tidy, storage)))


class QueueVisits:
    """Visits to the queues that may have work.

    Those that had some at the last visit, those that are new or were changed, and a share of the others, so that each is
    visited within half a minute. Ten thousand idle queues would keep a processor busy if all were visited each time. When
    another process takes the task over, the busy queues are unknown there, and wait for their turn.
    """

    def __init__(self) -> None:
        self._round = 0
        self._busy: set[QueueName] = set()

    async def __call__(self, storage: Storage) -> int:
        """Run one round; return the number of items of work done."""
        nth, self._round = self._round % _SHARES, self._round + 1
        queues = {queue.name: queue async for queue in storage.catalog.queues_in_turn(nth, _SHARES)}
        for name in self._busy - queues.keys():
            with suppress(QueueNotFound):
                queues[name] = await storage.catalog.queue(name)
        self._busy.clear()
        done = await _visited(queues.values(), partial(_tidy, storage))
        self._busy = {name for name, found in zip(queues, done, strict=True) if found}
        return sum(done)


async def _tidy(storage: Storage, queue: Queue) -> int:
    return await _until_idle(partial(storage.queues.tidy, queue.name, queue))


async def _visited(
    queues: Iterable[Queue], visit: Callable[[Queue], Coroutine[None, None, int]]
) -> list[int]:
    """Visit queues in batches, whose calls of the store share its flushes; return the results."""
    waiting = iter(queues)
    done: list[int] = []
    while batch := list(islice(waiting, _VISITS_AT_ONCE)):
        done += await asyncio.gather(*map(visit, batch))
    return done


async def trim_streams(storage: Storage) -> int:
    """Visit every stream: delete records that its retention no longer covers."""
    done = 0
    async for stream in storage.catalog.every_stream():
        done += await _until_idle(
            lambda name=stream.name: storage.streams.trim(name, _ENTRIES_PER_TRIM)  # type: ignore[misc]
        )
        if stream.spec.key_index:
            done += await _until_idle(lambda name=stream.name: storage.streams.tidy_keys(name))  # type: ignore[misc]
        if len(stream.open_shards) < len(stream.shards):
            done += await _until_idle(lambda name=stream.name: storage.streams.expire_shards(name))  # type: ignore[misc]
    return done


async def finish_reshards(storage: Storage) -> int:
    """Visit every stream: finish a reshard whose process died before its end."""
    done = 0
    async for stream in storage.catalog.every_stream():
        if stream.opening or stream.shards_target is not None:
            done += await _finish_reshard(storage, stream.name)
    return done


async def scale_streams(storage: Storage) -> int:
    """Visit every on-demand stream: adjust its shards to its load."""
    done = 0
    async for stream in storage.catalog.every_stream():
        if stream.spec.mode is StreamMode.ON_DEMAND:
            done += await _scale(storage, stream.name)
    return done


async def _scale(storage: Storage, name: StreamName) -> int:
    try:
        return await storage.streams.scale(name)
    except (StreamNotFound, StreamBusy):
        return 0


async def _finish_reshard(storage: Storage, name: StreamName) -> bool:
    try:
        return await storage.streams.finish_reshard(name)
    except (StreamNotFound, StreamBusy):
        return False  # deleted since it was listed, or another process works on it


async def _until_idle(visit: Callable[[], Awaitable[int]]) -> int:
    """Repeat a bounded visit while it finds work, a bounded number of times."""
    done = 0
    for _ in range(_ROUNDS_PER_VISIT):
        try:
            count = await visit()
        except (QueueNotFound, StreamNotFound):
            break  # deleted since it was listed
        done += count
        if not count:
            break
    return done


async def _beat(storage: Storage) -> None:
    await storage.upkeep.beat()


async def _resume_moves(storage: Storage) -> int:
    return await storage.moves.resume()


async def settle_groups(storage: Storage) -> int:
    """Rebalance every consumer group: silent members leave, and others get their shards."""
    return await storage.groups.settle_all()


async def drop_read(storage: Storage) -> None:
    """Visit every stream whose records are deleted once all its groups have read them."""
    async for stream in storage.catalog.every_stream():
        if stream.spec.drop_when_read:
            try:
                await storage.groups.drop_read(stream)
            except StreamNotFound:
                continue  # deleted since it was listed


async def _bury_deleted(storage: Storage) -> int:
    return await storage.upkeep.bury_deleted()


async def _forget_jobs(storage: Storage) -> int:
    return await _until_idle(storage.jobs.forget_old)


async def _plan_archive(storage: Storage) -> int:
    return await storage.archive_planner.plan() if storage.archives.on else 0


async def _plan_compaction(storage: Storage) -> int:
    return await storage.archive_planner.plan_compaction() if storage.archives.on else 0


async def _tidy_archive(storage: Storage) -> int:
    if storage.archive_upkeep is None:
        return 0
    return await storage.archive_upkeep.retire() + await storage.archive_upkeep.collect()


async def _finish_writes(storage: Storage) -> int:
    return await storage.writing.finish() + await storage.writing.forget_old()


async def _collect_orphans(storage: Storage) -> int:
    if storage.archive_upkeep is None:
        return 0
    return await storage.archive_upkeep.collect_orphans()


async def _forget_deliveries(storage: Storage) -> int:
    return await _until_idle(storage.deliveries.forget_old)


async def _measure(storage: Storage) -> int:
    return await storage.series.sample()


async def _weigh_namespaces(storage: Storage) -> int:
    return await storage.weighing.weigh_all()


async def _tidy_replays(storage: Storage) -> int:
    return await storage.replays.tidy()


async def _close_audit(storage: Storage) -> int:
    return await _until_idle(storage.audit.close_abandoned)


DUTIES = (
    MaintenanceTask("beacon", 5 * limits.SECOND_MS, _beat),
    MaintenanceTask("queues", 5 * limits.SECOND_MS, QueueVisits()),
    MaintenanceTask("moves", 2 * limits.SECOND_MS, _resume_moves),
    MaintenanceTask("groups", 1 * limits.SECOND_MS, settle_groups),
    MaintenanceTask("read", 10 * limits.SECOND_MS, drop_read),
    MaintenanceTask("reshards", 10 * limits.SECOND_MS, finish_reshards),
    MaintenanceTask("loads", 20 * limits.SECOND_MS, scale_streams),
    MaintenanceTask("streams", 30 * limits.SECOND_MS, trim_streams),
    MaintenanceTask("deleted", limits.MINUTE_MS, _bury_deleted),
    MaintenanceTask("archive", 5 * limits.SECOND_MS, _plan_archive),
    MaintenanceTask("archived", limits.MINUTE_MS, _tidy_archive),
    MaintenanceTask("compaction", 10 * limits.MINUTE_MS, _plan_compaction),
    MaintenanceTask("writes", limits.MINUTE_MS, _finish_writes),
    MaintenanceTask("orphans", limits.DAY_MS, _collect_orphans),
    MaintenanceTask("jobs", limits.HOUR_MS, _forget_jobs),
    MaintenanceTask("deliveries", limits.MINUTE_MS, _forget_deliveries),
    # five times as often as its slots of ten seconds, so that none is left out
    MaintenanceTask("series", 2 * limits.SECOND_MS, _measure),
    MaintenanceTask("weights", 5 * limits.SECOND_MS, _weigh_namespaces),
    MaintenanceTask("audit", limits.MINUTE_MS, _close_audit),
    MaintenanceTask("replays", 10 * limits.MINUTE_MS, _tidy_replays),
)


async def sweep(storage: Storage) -> None:
    """Run all maintenance tasks until cancelled."""
    turns = asyncio.Semaphore(_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for duty in DUTIES:
            group.create_task(_repeat(duty, storage, turns))


async def _repeat(duty: MaintenanceTask, storage: Storage, turns: asyncio.Semaphore) -> None:
    async for _ in _every(duty.every_ms):
        try:
            async with turns:
                await _do(duty, storage)
        except MillstreamError as error:
            logger.warning(
                "maintenance_deferred", extra={"task": duty.name, "reason": error.detail}
            )
        except Exception:  # a task that fails must not keep the others from running
            logger.exception("maintenance_failed", extra={"task": duty.name})


async def _do(duty: MaintenanceTask, storage: Storage) -> None:
    async with storage.upkeep.alone(duty.name) as mine:
        if mine:
            await duty.work(storage)


async def _every(interval_ms: int) -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(interval_ms / limits.SECOND_MS)
