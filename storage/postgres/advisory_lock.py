"""Advisory locks for maintenance tasks: of all processes that could run one, one does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy import text

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.postgres.database import Database


@asynccontextmanager
async def try_advisory_lock(database: Database, name: str) -> AsyncGenerator[bool]:
    """Try to acquire a task's advisory lock until the block ends; yield whether it succeeded.

    A process that dies, or whose connection does, loses the lock with its transaction. Raises
    StorageUnavailable, also when the block takes longer than MAINTENANCE_TASK_MS_MAX.
    """
    async with database.writing(
        unknown=StorageUnavailable, limit_ms=limits.MAINTENANCE_TASK_MS_MAX
    ) as session:
        acquired = await session.scalar(
            text("select pg_try_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name}
        )
        yield bool(acquired)
