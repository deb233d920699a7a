"""Maintenance of namespaces: their storage usage is measured against their quotas."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _measure_namespaces(storage: Storage) -> int:
    return await storage.usage.measure_all()


TASKS = (MaintenanceTask("weights", 5 * limits.SECOND_MS, _measure_namespaces),)
