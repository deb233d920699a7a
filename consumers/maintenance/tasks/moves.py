"""Moves of messages: those whose process died are continued."""

from consumers.maintenance.task import maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "moves",
    LeaseStore.POSTGRES,
    period_ms=2 * limits.SECOND_MS,
    idle_ms=10 * limits.SECOND_MS,
    timeout_ms=30 * limits.SECOND_MS,
)
async def resume_moves(storage: Storage) -> int:
    """Continue open moves; return their number."""
    return await storage.moves.resume()
