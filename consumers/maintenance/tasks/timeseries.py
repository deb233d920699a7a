"""Sampling of resources."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _sample(storage: Storage) -> int:
    return await storage.time_series.sample()


TASKS = (
    # five times as often as its slots of ten seconds, so that none is left out
    MaintenanceTask("series", 2 * limits.SECOND_MS, _sample),
)
