"""Restore marker: advances, so that a store restored from a copy is recognised."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "beacon", LeaseStore.POSTGRES, period_ms=5 * limits.SECOND_MS, timeout_ms=10 * limits.SECOND_MS
)
async def advance_marker(storage: Storage) -> None:
    """Advance the marker in the hot store, then in Postgres."""
    return await storage.maintenance.advance_marker()
