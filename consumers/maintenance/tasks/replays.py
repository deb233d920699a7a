"""Replays: what ended ones left behind is deleted."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _sweep_replays(storage: Storage) -> int:
    """Delete what is left behind; return the number of replays."""
    return await storage.replays.sweep()


TASK = MaintenanceTask(
    "replays",
    _sweep_replays,
    store=LeaseStore.POSTGRES,
    period_ms=10 * limits.MINUTE_MS,
    timeout_ms=limits.MINUTE_MS,
)
