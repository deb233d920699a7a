"""Repository of namespaces.

Changes are announced on the catalog's channel, as "namespace:<name>".
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy import Select, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.errors import NamespaceNotFound, QuotaReached
from storage.domain.quotas import Namespace, Quotas
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import NamespaceRow

CHANNEL = "millstream_catalog"
KIND = "namespace"


class LockedNamespace:
    """A name locked against writes by others, and its present namespace, or None."""

    def __init__(self, session: AsyncSession, name: str, now: Namespace | None) -> None:
        self._session = session
        self._name = name
        self.namespace = now

    async def insert(self, namespace: Namespace, namespaces_max: int) -> bool:
        """Store a new namespace; False when there are `namespaces_max` already."""
        if int(await self._session.scalar(query("count_namespaces")) or 0) >= namespaces_max:
            return False
        await self._session.execute(insert(NamespaceRow).values(**msgspec.to_builtins(namespace)))
        await announce(self._session, self._name)
        return True

    async def update(self, namespace: Namespace) -> None:
        """Store a later version of its quotas."""
        values = {
            "quotas": msgspec.to_builtins(namespace.quotas),
            "version": namespace.version,
            "changed_at_ms": namespace.changed_at_ms,
            "stored_bytes": namespace.stored_bytes,
            "over": namespace.over_storage_quota,
        }
        row = col(NamespaceRow.name) == self._name
        await self._session.execute(update(NamespaceRow).where(row).values(**values))
        await announce(self._session, self._name)

    async def holds(self) -> Mapping[str, int]:
        """Return the contents that prevent its deletion, as counts by noun.

        From now on nothing can be added.
        """
        await self._session.execute(query("lock_namespace"), {"name": self._name})
        row = (await self._session.execute(query("namespace_holds"), {"name": self._name})).one()
        return {noun: count for noun, count in row._mapping.items() if count}

    async def delete(self) -> None:
        """Delete it, with its remaining rows."""
        for statement in _DELETIONS:
            await self._session.execute(query(statement), {"name": self._name})
        await announce(self._session, self._name)


class NamespaceRows:
    """Stored namespaces. Every method raises StorageUnavailable or StorageBusy."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Namespace]:
        """Return every namespace, by name."""
        return await self._read(_ALL.order_by(col(NamespaceRow.name)))

    async def page(self, prefix: str, after: str, limit: int) -> list[Namespace]:
        """Return the first `limit` with that prefix, by name, strictly after `after`."""
        name = col(NamespaceRow.name)
        statement = _ALL.where(name > after, name >= prefix, name < prefix + "\x7f")
        return await self._read(statement.order_by(name).limit(limit))

    async def _read(self, statement: Select[Any]) -> list[Namespace]:
        async with self._database.reading() as session:
            return [_namespace(row) for row in await session.scalars(statement)]

    @asynccontextmanager
    async def lock(self, name: str, *, dry_run: bool = False) -> AsyncGenerator[LockedNamespace]:
        """Lock the name; the block commits at its end, unless it raises or is a dry run.

        Raises OutcomeUnknown.
        """
        async with self._database.writing(dry_run=dry_run) as session:
            await session.execute(query("hold_name"), {"name": f"{KIND}:{name}"})
            row = await session.scalar(_ALL.where(col(NamespaceRow.name) == name))
            yield LockedNamespace(session, name, None if row is None else _namespace(row))

    async def weigh(self, name: str, stored_bytes: int, over: bool) -> None:
        """Store its size; announced when it starts or ceases to exceed the limit."""
        values = {"name": name, "stored_bytes": stored_bytes, "over": over}
        async with self._database.writing() as session:
            changed = await session.scalar(query("weigh_namespace"), values)
            if changed:
                await announce(session, name)


async def admit(session: AsyncSession, namespace: str, kind: str) -> None:
    """Check that one more queue or stream (`kind`) may be created, in the same transaction.

    Raises NamespaceNotFound, QuotaReached.
    """
    row = await session.scalar(_ALL.where(col(NamespaceRow.name) == namespace))
    if row is None:
        raise NamespaceNotFound(f"Namespace '{namespace}' does not exist.", namespace=namespace)
    quotas = _namespace(row).quotas
    limit = quotas.queues_max if kind == "queue" else quotas.streams_max
    if limit is None:
        return
    await session.execute(query("take_turns"), {"name": namespace})
    counted = query("count_queues" if kind == "queue" else "count_streams")
    if int(await session.scalar(counted, {"name": namespace}) or 0) >= limit:
        raise QuotaReached(
            f"The namespace has reached its limit of {limit} {kind}s.",
            policy=f"{kind}s_max",
            limit=limit,
        )


async def announce(session: AsyncSession, name: str) -> None:
    """Notify every process, once this transaction is committed."""
    payload = f"{KIND}:{name}"
    await session.execute(query("notify"), {"channel": CHANNEL, "payload": payload})


_ALL: Select[Any] = select(NamespaceRow)

_DELETIONS = (
    "delete_namespace_moves",
    "delete_namespace_jobs",
    "delete_namespace_settings",
    "delete_namespace_keys",
    "delete_namespace",
)


def _namespace(row: NamespaceRow) -> Namespace:
    return Namespace(
        name=row.name,
        account_id=row.account_id,
        quotas=msgspec.convert(row.quotas, Quotas),
        version=row.version,
        created_at_ms=row.created_at_ms,
        changed_at_ms=row.changed_at_ms,
        stored_bytes=row.stored_bytes,
        over_storage_quota=row.over,
    )
