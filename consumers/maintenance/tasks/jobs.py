"""Maintenance of jobs: old ones are deleted."""

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits


async def _delete_old_jobs(storage: Storage) -> int:
    return await drain(storage.jobs.delete_old)


TASKS = (MaintenanceTask("jobs", limits.HOUR_MS, _delete_old_jobs),)
