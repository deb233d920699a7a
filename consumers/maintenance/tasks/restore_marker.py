"""Restore marker: advances, so that a store restored from a copy is recognised."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


async def _advance_marker(storage: Storage) -> None:
    """Advance the marker in the hot store, then in Postgres."""
    return await storage.maintenance.advance_marker()


TASK = MaintenanceTask(
    "beacon",
    _advance_marker,
    store=LeaseStore.POSTGRES,
    period_ms=5 * limits.SECOND_MS,
    timeout_ms=10 * limits.SECOND_MS,
)
