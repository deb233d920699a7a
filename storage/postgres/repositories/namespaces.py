"""Repository of namespaces.

Changes are announced on the catalog's channel, as "namespace:<name>".
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from sqlalchemy import ColumnElement, Row, select, true
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import NamespaceNotFound, QuotaReached
from storage.domain.quotas import Namespace, Quotas
from storage.postgres.definition_table import DefinitionTable, LockedDefinition, announce
from storage.postgres.queries import query
from storage.postgres.rows import struct_of
from storage.postgres.tables import NamespaceRow


class LockedNamespace(LockedDefinition[Namespace]):
    """A name locked against writes by others, and its present namespace, or None."""

    async def insert(self, definition: Namespace) -> None:
        """Store a new namespace. Raises QuotaReached if there are as many as a process can have."""
        count = int(await self.session.scalar(query("count_namespaces")) or 0)
        if count >= limits.NAMESPACES_MAX:
            raise QuotaReached(f"The limit of {limits.NAMESPACES_MAX} namespaces is reached.")
        await super().insert(definition)

    async def holds(self) -> Mapping[str, int]:
        """Return the contents that prevent its deletion, as counts by noun.

        From now on nothing can be added.
        """
        await self.session.execute(query("lock_namespace"), {"name": self._name})
        row = (await self.session.execute(query("namespace_holds"), {"name": self._name})).one()
        return {noun: count for noun, count in row._mapping.items() if count}

    async def delete(self, definition: Namespace, now_ms: int) -> None:
        """Delete it, with its remaining rows."""
        for statement in _DELETIONS:
            await self.session.execute(query(statement), {"name": definition.name})
        await self.announce()


class NamespaceRows(DefinitionTable[str, Namespace, LockedNamespace]):
    """Stored namespaces. Every method raises StorageUnavailable or StorageBusy."""

    kind = "namespace"
    table = NamespaceRow
    id = "name"

    def definition_of(self, row: Row[Any]) -> Namespace:
        return _namespace(row)

    def values(self, definition: Namespace) -> dict[str, Any]:
        return cast("dict[str, Any]", msgspec.to_builtins(definition))

    def changes(self, definition: Namespace) -> dict[str, Any]:
        return {
            "quotas": msgspec.to_builtins(definition.quotas),
            "version": definition.version,
            "changed_at_ms": definition.changed_at_ms,
            "stored_bytes": definition.stored_bytes,
            "over": definition.over_storage_quota,
        }

    def locked(self, session: AsyncSession, name: str, row: Row[Any] | None) -> LockedNamespace:
        return LockedNamespace(session, self, name, row)

    def _is_in(self, namespace: str) -> ColumnElement[bool]:
        return true()  # namespaces are in no namespace

    def _is_one_of(self, names: Sequence[str]) -> ColumnElement[bool]:
        return col(NamespaceRow.name).in_(names)

    async def all(self) -> list[Namespace]:
        """Return every namespace, by name."""
        return await self._read(self.select().order_by(col(NamespaceRow.name)))

    async def weigh(self, name: str, stored_bytes: int, over: bool) -> None:
        """Store its size; announced when it starts or ceases to exceed the limit."""
        values = {"name": name, "stored_bytes": stored_bytes, "over": over}
        async with self._database.writing() as session:
            changed = await session.scalar(query("weigh_namespace"), values)
            if changed:
                await announce(session, self.kind, name)


async def admit(session: AsyncSession, namespace: str, kind: str) -> None:
    """Check that one more queue or stream (`kind`) may be created, in the same transaction.

    Raises NamespaceNotFound, QuotaReached.
    """
    named = select(NamespaceRow).where(col(NamespaceRow.name) == namespace)
    row = await session.scalar(named)
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


_DELETIONS = (
    "delete_namespace_moves",
    "delete_namespace_jobs",
    "delete_namespace_settings",
    "delete_namespace_keys",
    "delete_namespace",
)


def _namespace(row: NamespaceRow | Row[Any]) -> Namespace:
    quotas = msgspec.convert(row.quotas, Quotas)
    return struct_of(Namespace, row, quotas=quotas, over_storage_quota=row.over)
