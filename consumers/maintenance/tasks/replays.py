"""Replays: what ended ones left behind is deleted."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "replays", LeaseStore.POSTGRES, period_ms=10 * limits.MINUTE_MS, timeout_ms=limits.MINUTE_MS
)
async def sweep_replays(storage: Storage) -> int:
    """Delete what is left behind; return the number of replays."""
    return await storage.replays.sweep()
