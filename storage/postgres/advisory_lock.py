"""Periodic duties: of all processes that could do one, one does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy import text

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.postgres.database import Database


@asynccontextmanager
async def alone(database: Database, duty: str) -> AsyncGenerator[bool]:
    """Whether this process has the duty, by an advisory lock that ends with the block.

    A process that dies, or whose connection does, loses the lock with its transaction. Raises
    StorageUnavailable, also when the block takes longer than DUTY_MS_MAX.
    """
    async with database.writing(unknown=StorageUnavailable, limit_ms=limits.DUTY_MS_MAX) as session:
        mine = await session.scalar(
            text("select pg_try_advisory_xact_lock(hashtextextended(:duty, 0))"), {"duty": duty}
        )
        yield bool(mine)
