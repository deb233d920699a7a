"""The rows of registered consumers and of account settings."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.names import LogId
from storage.domain.streams.consumers import AccountSettings, RegisteredConsumer
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import AccountSettingsRow, RegisteredConsumerRow


class RegistrationRows:
    """Registrations as they are stored. Every method raises StorageUnavailable; those that write, OutcomeUnknown."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, consumer: RegisteredConsumer, at_most: int) -> str | None:
        """Store a new consumer; else why not: 'exists', or 'too_many' where the stream has that many already.

        The lock on the stream's id makes registrations take turns, so that the limit holds.
        """
        async with self._database.writing() as session:
            await _hold(session, consumer.stream_id)
            if await _find(session, consumer.stream_id, consumer.name) is not None:
                return "exists"
            if await _count(session, consumer.stream_id) >= at_most:
                return "too_many"
            await session.execute(insert(RegisteredConsumerRow), [_values(consumer)])
            return None

    async def find(self, stream_id: LogId, name: str) -> RegisteredConsumer | None:
        """The consumer, or None."""
        async with self._database.reading() as session:
            return await _find(session, stream_id, name)

    async def page(self, stream_id: LogId, after: str, limit: int) -> list[RegisteredConsumer]:
        """Consumers of a stream by name, strictly after `after`."""
        row = RegisteredConsumerRow
        wanted = (
            select(row.__table__)  # type: ignore[attr-defined]
            .where(col(row.stream_id) == stream_id, col(row.name) > after)
            .order_by(col(row.name))
            .limit(limit)
        )
        async with self._database.reading() as session:
            return [_consumer(found) for found in await session.execute(wanted)]

    async def count(self, stream_id: LogId) -> int:
        """How many a stream has."""
        async with self._database.reading() as session:
            return await _count(session, stream_id)

    async def change(
        self,
        stream_id: LogId,
        name: str,
        change: Callable[[RegisteredConsumer], RegisteredConsumer],
    ) -> RegisteredConsumer | None:
        """Replace the consumer's tags and policy by what `change` makes of it, with nobody in between."""
        async with self._database.writing() as session:
            await _hold(session, stream_id)
            found = await _find(session, stream_id, name)
            if found is None:
                return None
            changed = change(found)
            await session.execute(
                update(RegisteredConsumerRow)
                .where(_is(stream_id, name))
                .values(tags=changed.tags, policy=changed.policy)
            )
            return changed

    async def delete(self, stream_id: LogId, name: str) -> bool:
        """Whether there was such a consumer; there is none now."""
        async with self._database.writing() as session:
            gone = await session.execute(delete(RegisteredConsumerRow).where(_is(stream_id, name)))
            return bool(gone.rowcount)  # type: ignore[attr-defined]

    async def settings(self, namespace: str) -> AccountSettings:
        """What the namespace has set."""
        wanted = select(col(AccountSettingsRow.settings)).where(
            col(AccountSettingsRow.namespace) == namespace
        )
        async with self._database.reading() as session:
            return await session.scalar(wanted) or {}

    async def put_setting(self, namespace: str, name: str, value: Any) -> None:
        """Set one thing; the others stay."""
        made = upsert(AccountSettingsRow).values(namespace=namespace, settings={name: value})
        merged = col(AccountSettingsRow.settings).op("||")(made.excluded.settings)
        async with self._database.writing() as session:
            await session.execute(
                made.on_conflict_do_update(index_elements=["namespace"], set_={"settings": merged})
            )


async def _hold(session: AsyncSession, stream_id: LogId) -> None:
    await session.execute(query("hold_name"), {"name": f"consumers:{stream_id}"})


async def _find(session: AsyncSession, stream_id: LogId, name: str) -> RegisteredConsumer | None:
    wanted = select(RegisteredConsumerRow.__table__).where(_is(stream_id, name))  # type: ignore[attr-defined]
    found = (await session.execute(wanted)).one_or_none()
    return None if found is None else _consumer(found)


async def _count(session: AsyncSession, stream_id: LogId) -> int:
    wanted = select(func.count()).where(col(RegisteredConsumerRow.stream_id) == stream_id)
    return int(await session.scalar(wanted) or 0)


def _is(stream_id: LogId, name: str) -> Any:
    return (col(RegisteredConsumerRow.stream_id) == stream_id) & (
        col(RegisteredConsumerRow.name) == name
    )


def _values(consumer: RegisteredConsumer) -> dict[str, Any]:
    return {
        "stream_id": consumer.stream_id,
        "name": consumer.name,
        "registered_at_ms": consumer.registered_at_ms,
        "tags": consumer.tags,
        "policy": consumer.policy,
    }


def _consumer(row: Row[Any]) -> RegisteredConsumer:
    return RegisteredConsumer(
        stream_id=row.stream_id,
        name=row.name,
        registered_at_ms=row.registered_at_ms,
        tags=row.tags,
        policy=row.policy,
    )
