"""Scheduler of maintenance tasks, run by the leaders that the sweepers elect.

    sweeper ──lease in the hot store──▶ leads the tasks that need nothing else: they go on while Postgres is unreachable
       └──────lease in Postgres───────▶ leads the others

No caller waits for these tasks: a receive moves what is due by itself. They keep counts fresh, memory small, and the
restore marker by which a store that was restored from a copy is detected. ADR 0058 has the reason why each is safe when a
suspended leader runs it beside its successor.
"""

import asyncio
import logging
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Protocol

from consumers.maintenance.task import MaintenanceTask
from consumers.maintenance.tasks import (
    archive_expiry,
    archive_orphans,
    archive_plan,
    audit,
    compaction,
    deliveries,
    group_offsets,
    groups,
    idle_queues,
    jobs,
    moves,
    namespaces,
    queues,
    read_records,
    replays,
    reshards,
    restore_marker,
    retention,
    route_endpoints,
    sources,
    staged_writes,
    stream_loads,
    tiers,
    time_series,
    tombstones,
    views,
)
from storage.bootstrap import Storage
from storage.concurrency.leader_election import LeaderElection
from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.presence import LeaseStore

logger = logging.getLogger(__name__)

_TASK_CONCURRENCY_MAX = 3  # of one store: maintenance leaves connections to others

TASKS = (
    restore_marker.advance_marker,
    tombstones.write_tombstones,
    queues.sweep_due_queues,
    idle_queues.delete_idle_queues,
    moves.resume_moves,
    groups.rebalance_groups,
    group_offsets.copy_group_offsets,
    read_records.delete_read_records,
    reshards.finish_reshards,
    stream_loads.scale_streams,
    retention.trim_streams,
    tiers.trim_archived_streams,
    archive_plan.plan_archive,
    archive_expiry.expire_files,
    compaction.plan_compaction,
    staged_writes.finish_writes,
    archive_orphans.collect_orphans,
    jobs.delete_old_jobs,
    deliveries.delete_old_deliveries,
    time_series.sample_resources,
    namespaces.measure_namespaces,
    audit.close_abandoned_calls,
    replays.sweep_replays,
    sources.transfer_events,
    route_endpoints.delete_unused_endpoints,
    views.maintain_views,
)


class TaskOutcome(StrEnum):
    """Outcome of a round of a task."""

    COMPLETED = "completed"
    DEFERRED = "deferred"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


class MaintenanceMetrics(Protocol):
    """Metrics of a sweeper."""

    def ran(self, task: str, outcome: TaskOutcome, seconds: float, items: int) -> None:
        """Count a round of a task, and the amount of work there was."""

    def leads(self, store: LeaseStore, *, leads: bool) -> None:
        """Set whether this process leads the tasks of a store."""


class NoMetrics:
    """Metrics of a sweeper that nobody collects."""

    def ran(self, task: str, outcome: TaskOutcome, seconds: float, items: int) -> None:
        """Do nothing."""

    def leads(self, store: LeaseStore, *, leads: bool) -> None:
        """Do nothing."""


class Sweeper:
    """Candidate for the leadership of both stores; the leader of one runs its tasks."""

    def __init__(
        self,
        storage: Storage,
        holder: str,
        *,
        metrics: MaintenanceMetrics | None = None,
        tasks: Sequence[MaintenanceTask] = TASKS,
    ) -> None:
        self._storage = storage
        self._holder = holder
        self._metrics = metrics or NoMetrics()
        self._tasks = tasks
        self._elections = {
            store: storage.maintenance.election(store, holder) for store in LeaseStore
        }

    @property
    def leads(self) -> tuple[LeaseStore, ...]:
        """The stores whose tasks this process leads."""
        return tuple(store for store, election in self._elections.items() if election.is_leader)

    async def run(self) -> None:
        """Stand for election and run the tasks of each store that this process leads."""
        async with asyncio.TaskGroup() as group:
            for store, election in self._elections.items():
                group.create_task(self._stand(store, election))

    async def _stand(self, store: LeaseStore, election: LeaderElection) -> None:
        self._metrics.leads(store, leads=False)
        await election.run(partial(self._lead, store))

    async def _lead(self, store: LeaseStore, fence: int) -> None:
        """Run the tasks of a store until cancelled."""
        facts = {"store": store.value, "holder": self._holder, "fence": fence}
        logger.info("maintenance_leader_elected", extra=facts)
        self._metrics.leads(store, leads=True)
        turns = asyncio.Semaphore(_TASK_CONCURRENCY_MAX)
        try:
            async with asyncio.TaskGroup() as group:
                for task in self._tasks:
                    if task.store is store:
                        group.create_task(self._repeat(task, turns))
                await asyncio.Event().wait()  # also where a store has no tasks
        finally:
            self._metrics.leads(store, leads=False)
            logger.info("maintenance_leader_resigned", extra=facts)

    async def _repeat(self, task: MaintenanceTask, turns: asyncio.Semaphore) -> None:
        await periodic(
            task.period_ms / limits.SECOND_MS,
            partial(self._take_turn, task, turns),
            task.name,
            idle_s=task.idle_ms / limits.SECOND_MS,
        )

    async def _take_turn(self, task: MaintenanceTask, turns: asyncio.Semaphore) -> int:
        async with turns:
            return await self._round(task)

    async def _round(self, task: MaintenanceTask) -> int:
        """Run a task once, log and count its end; return the amount of work there was."""
        loop = asyncio.get_running_loop()
        began_s, count, outcome = loop.time(), None, TaskOutcome.COMPLETED
        timeout = asyncio.timeout(task.timeout_ms / limits.SECOND_MS)
        try:
            async with timeout:
                count = await task.work(self._storage)
        except MillstreamError as error:
            outcome = TaskOutcome.DEFERRED
            facts = {"task": task.name, "reason": error.detail}
            logger.warning("maintenance_deferred", extra=facts)
        except Exception as error:  # a task that fails must not keep the others from running
            if isinstance(error, TimeoutError) and timeout.expired():
                outcome = TaskOutcome.TIMED_OUT
                limit_s = task.timeout_ms / limits.SECOND_MS
                logger.error("maintenance_timed_out", extra={"task": task.name, "seconds": limit_s})
            else:
                outcome = TaskOutcome.FAILED
                logger.exception("maintenance_failed", extra={"task": task.name})
        self._metrics.ran(task.name, outcome, loop.time() - began_s, count or 0)
        return count or 0
