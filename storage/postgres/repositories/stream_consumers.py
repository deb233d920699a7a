"""Repository of registered consumers."""

from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.names import LogId
from storage.domain.streams.consumers import RegisteredConsumer
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import RegisteredConsumerRow


class ConsumerRows(Repository):
    """Stored registrations of consumers.

    Every method raises StorageUnavailable; those that write, OutcomeUnknown.
    """

    async def insert(self, consumer: RegisteredConsumer, at_most: int) -> str | None:
        """Store a new consumer, or return the reason of the refusal.

        'exists', or 'too_many' where the stream has `at_most` already. The lock on the stream's id serializes registrations,
        so that the limit holds.
        """
        async with self._database.writing() as session:
            await _hold(session, consumer.stream_id)
            if await _find(session, consumer.stream_id, consumer.name) is not None:
                return "exists"
            if await _count(session, consumer.stream_id) >= at_most:
                return "too_many"
            await session.execute(insert(RegisteredConsumerRow), [msgspec.structs.asdict(consumer)])
            return None

    async def find(self, stream_id: LogId, name: str) -> RegisteredConsumer | None:
        """Return the consumer, or None."""
        async with self._database.reading() as session:
            return await _find(session, stream_id, name)

    async def page(self, stream_id: LogId, after: str, limit: int) -> list[RegisteredConsumer]:
        """Return consumers of a stream by name, strictly after `after`."""
        row = RegisteredConsumerRow
        statement = (
            rows_of(row)
            .where(col(row.stream_id) == stream_id, col(row.name) > after)
            .order_by(col(row.name))
            .limit(limit)
        )
        async with self._database.reading() as session:
            return [
                struct_of(RegisteredConsumer, record) for record in await session.execute(statement)
            ]

    async def count(self, stream_id: LogId) -> int:
        """Return how many consumers a stream has."""
        async with self._database.reading() as session:
            return await _count(session, stream_id)

    async def change(
        self,
        stream_id: LogId,
        name: str,
        change: Callable[[RegisteredConsumer], RegisteredConsumer],
    ) -> RegisteredConsumer | None:
        """Replace the consumer's tags and policy by the result of `change`, under a lock."""
        async with self._database.writing() as session:
            await _hold(session, stream_id)
            consumer = await _find(session, stream_id, name)
            if consumer is None:
                return None
            changed = change(consumer)
            await session.execute(
                update(RegisteredConsumerRow)
                .where(_is(stream_id, name))
                .values(tags=changed.tags, policy=changed.policy)
            )
            return changed

    async def delete(self, stream_id: LogId, name: str) -> bool:
        """Delete a consumer; return whether it existed."""
        async with self._database.writing() as session:
            deleted = await session.execute(
                delete(RegisteredConsumerRow).where(_is(stream_id, name))
            )
            return bool(deleted.rowcount)  # type: ignore[attr-defined]


async def _hold(session: AsyncSession, stream_id: LogId) -> None:
    await session.execute(query("hold_name"), {"name": f"consumers:{stream_id}"})


async def _find(session: AsyncSession, stream_id: LogId, name: str) -> RegisteredConsumer | None:
    statement = rows_of(RegisteredConsumerRow).where(_is(stream_id, name))
    row = (await session.execute(statement)).one_or_none()
    return None if row is None else struct_of(RegisteredConsumer, row)


async def _count(session: AsyncSession, stream_id: LogId) -> int:
    statement = select(func.count()).where(col(RegisteredConsumerRow.stream_id) == stream_id)
    return int(await session.scalar(statement) or 0)


def _is(stream_id: LogId, name: str) -> Any:
    return (col(RegisteredConsumerRow.stream_id) == stream_id) & (
        col(RegisteredConsumerRow.name) == name
    )
