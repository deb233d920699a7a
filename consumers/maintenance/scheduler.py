"""Scheduler of maintenance tasks, each run by one process at a time.

That holds whatever the number of sweepers. No caller waits for these tasks: a receive moves what is due by itself. They
keep counts fresh, memory small, and the restore marker by which a store that was restored from a copy is detected.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from consumers.maintenance.task import MaintenanceTask
from consumers.maintenance.tasks import (
    archive,
    audit,
    groups,
    jobs,
    moves,
    namespaces,
    queues,
    replays,
    sources,
    store,
    streams,
    timeseries,
    webhooks,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import MillstreamError

logger = logging.getLogger(__name__)

_TASK_CONCURRENCY_MAX = (
    3  # tasks: each holds a connection to Postgres for its lock, and its work needs another
)

TASKS = (
    *store.TASKS,
    *queues.TASKS,
    *moves.TASKS,
    *groups.TASKS,
    *streams.TASKS,
    *archive.TASKS,
    *jobs.TASKS,
    *webhooks.TASKS,
    *timeseries.TASKS,
    *namespaces.TASKS,
    *audit.TASKS,
    *replays.TASKS,
    *sources.TASKS,
)


async def sweep(storage: Storage) -> None:
    """Run all maintenance tasks until cancelled."""
    turns = asyncio.Semaphore(_TASK_CONCURRENCY_MAX)
    async with asyncio.TaskGroup() as group:
        for task in TASKS:
            group.create_task(_repeat(task, storage, turns))


async def _repeat(task: MaintenanceTask, storage: Storage, turns: asyncio.Semaphore) -> None:
    async for _ in _every(task.every_ms):
        try:
            async with turns:
                await _run(task, storage)
        except MillstreamError as error:
            logger.warning(
                "maintenance_deferred", extra={"task": task.name, "reason": error.detail}
            )
        except Exception:  # a task that fails must not keep the others from running
            logger.exception("maintenance_failed", extra={"task": task.name})


async def _run(task: MaintenanceTask, storage: Storage) -> None:
    async with storage.maintenance.exclusive(task.name) as acquired:
        if acquired:
            await task.work(storage)


async def _every(interval_ms: int) -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(interval_ms / limits.SECOND_MS)
