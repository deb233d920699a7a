"""Maintenance of moves: those whose process died are continued."""

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits


async def _resume_moves(storage: Storage) -> int:
    return await storage.moves.resume()


TASKS = (MaintenanceTask("moves", 2 * limits.SECOND_MS, _resume_moves),)
