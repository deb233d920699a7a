"""Maintenance of replays: what ended replays left behind."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _sweep_replays(storage: Storage) -> int:
    return await storage.replays.sweep()


TASKS = (MaintenanceTask("replays", 10 * limits.MINUTE_MS, _sweep_replays),)
