"""Maintenance of the store: the restore marker, and tombstones of deleted logs."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _advance_marker(storage: Storage) -> None:
    await storage.maintenance.advance_marker()


async def _tombstone_deleted(storage: Storage) -> int:
    return await storage.maintenance.tombstone_deleted()


TASKS = (
    MaintenanceTask("beacon", 5 * limits.SECOND_MS, _advance_marker),
    MaintenanceTask("deleted", limits.MINUTE_MS, _tombstone_deleted),
)
