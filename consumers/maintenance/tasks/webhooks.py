"""Maintenance of webhooks: old entries of the delivery log are deleted."""

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits


async def _delete_old_deliveries(storage: Storage) -> int:
    return await drain(storage.deliveries.delete_old)


TASKS = (MaintenanceTask("deliveries", limits.MINUTE_MS, _delete_old_deliveries),)
