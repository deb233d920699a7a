"""Committed offsets of groups: copied to Postgres where a process ended before it did so."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task("group_offsets", LeaseStore.POSTGRES, period_ms=limits.GROUP_OFFSETS_SWEEP_MS)
async def copy_group_offsets(storage: Storage) -> int:
    """Copy what the rows of every group lack; return the number of groups."""
    return await storage.groups.copier.copy_every_group()
