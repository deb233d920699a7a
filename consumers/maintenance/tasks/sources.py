"""Maintenance of sources: events whose process died on the way to their target."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _transfer_events(storage: Storage) -> int:
    return await storage.source_transfer.sweep()


TASKS = (MaintenanceTask("sources", 10 * limits.SECOND_MS, _transfer_events),)
