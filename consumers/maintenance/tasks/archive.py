"""Maintenance of the archive: planning, expired files, orphans and staged writes."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _plan_archive(storage: Storage) -> int:
    return await storage.archive_planner.plan() if storage.archive_admin.on else 0


async def _plan_compaction(storage: Storage) -> int:
    return await storage.archive_planner.plan_compaction() if storage.archive_admin.on else 0


async def _expire_files(storage: Storage) -> int:
    if storage.archive_garbage_collector is None:
        return 0
    return (
        await storage.archive_garbage_collector.retire()
        + await storage.archive_garbage_collector.collect()
    )


async def _finish_writes(storage: Storage) -> int:
    return await storage.staged_writes.finish() + await storage.staged_writes.delete_old()


async def _collect_orphans(storage: Storage) -> int:
    if storage.archive_garbage_collector is None:
        return 0
    return await storage.archive_garbage_collector.collect_orphans()


TASKS = (
    MaintenanceTask("archive", 5 * limits.SECOND_MS, _plan_archive),
    MaintenanceTask("archived", limits.MINUTE_MS, _expire_files),
    MaintenanceTask("compaction", 10 * limits.MINUTE_MS, _plan_compaction),
    MaintenanceTask("writes", limits.MINUTE_MS, _finish_writes),
    MaintenanceTask("orphans", limits.DAY_MS, _collect_orphans),
)
