"""Maintenance of the audit log: abandoned calls are recorded as unknown."""

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits


async def _close_abandoned(storage: Storage) -> int:
    return await drain(storage.audit_log.close_abandoned)


TASKS = (MaintenanceTask("audit", limits.MINUTE_MS, _close_abandoned),)
