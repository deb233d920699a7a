"""Base of the repositories of definitions: reads by name, pages, and writes under a lock.

A noun declares its table, and how a row and a definition become one another. `lock` gives one writer at a time the
right to change the definition of a name; a change is announced on `CHANNEL`, in the same transaction, as
"<kind>:<name>", such as "queue:<namespace>/<name>".
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Row, Select, and_, delete, func, insert, not_, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.definitions import StoredDefinition
from storage.postgres.database import CHANGES_CATALOG, Database
from storage.postgres.queries import query
from storage.postgres.rows import rows_of

logger = logging.getLogger(__name__)

CHANNEL = "millstream_catalog"

N = TypeVar("N")
D = TypeVar("D", bound=StoredDefinition)
L = TypeVar("L", bound="LockedDefinition[Any]")

_AFTER_EVERY_CHARACTER = "\x7f"  # names are printable ASCII
_NO_TAGS: Mapping[str, str] = {}


async def announce(session: AsyncSession, kind: str, name: object, *, is_new: bool = False) -> None:
    """Notify every process that a definition changed, once the transaction is committed.

    A new one takes nothing away, and does not raise the catalog's version.
    """
    if not is_new:
        session.info[CHANGES_CATALOG] = True
    announcement = {"channel": CHANNEL, "payload": f"{kind}:{name}"}
    await session.execute(query("notify"), announcement)


class LockedDefinition(Generic[D]):
    """A name locked against writes by others, and its present `definition`, or None.

    `session` is the transaction that holds the lock.
    """

    def __init__(
        self,
        session: AsyncSession,
        table: "DefinitionTable[Any, D, Any]",
        name: object,
        row: Row[Any] | None,
    ) -> None:
        self.session = session
        self.definition: D | None = None if row is None else table.definition_of(row)
        self._table = table
        self._name = name

    async def insert(self, definition: D) -> None:
        """Store the name's first definition."""
        values = self._table.values(definition)
        await self.session.execute(insert(self._table.table).values(**values))
        await self.announce(is_new=True)

    async def update(self, definition: D) -> None:
        """Store a later version."""
        await self._update(definition, **self._table.changes(definition))

    async def delete(self, definition: D, now_ms: int) -> None:
        """Free the name; `now_ms` is for a row that stays as a tombstone."""
        row = self._table.row_of(definition)
        await self.session.execute(delete(self._table.table).where(row))
        await self.announce()

    async def _update(self, definition: D, **values: Any) -> None:
        row = self._table.row_of(definition)
        await self.session.execute(update(self._table.table).where(row).values(**values))
        await self.announce()

    async def announce(self, *, is_new: bool = False) -> None:
        """Notify every process that the definition changed."""
        await announce(self.session, self._table.kind, self._name, is_new=is_new)


class DefinitionTable(ABC, Generic[N, D, L]):
    """Stored definitions of one noun. Every method raises StorageUnavailable or StorageBusy."""

    kind: ClassVar[str]
    """The noun, as in announcements and messages."""
    table: ClassVar[type[Any]]
    id: ClassVar[str]
    """Name of the column, and of the definition's field, that identifies a row."""
    is_row_locked: ClassVar[bool] = False
    """True if others write to the row without the lock on the name."""
    apart_prefix: ClassVar[str] = ""
    """Prefix of names that are listed by it alone, such as those of topics."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unreadable = BoundedCache[str, int](limits.ISOLATED_FAILURES_MAX)

    # Declared by each noun

    def select(self) -> Select[Any]:
        """Select the definitions that exist, as rows that `definition_of` accepts."""
        return rows_of(self.table)

    @abstractmethod
    def definition_of(self, row: Row[Any]) -> D:
        """Return the definition of a selected row."""

    def row_of(self, definition: D) -> ColumnElement[bool]:
        """Return the condition that selects its row."""
        row_id: ColumnElement[bool] = getattr(self.table, self.id) == getattr(definition, self.id)
        return row_id

    def values(self, definition: D) -> dict[str, Any]:
        """Return the columns of a new row."""
        return self.changes(definition) | {
            self.id: getattr(definition, self.id),
            "namespace": definition.name.namespace,
            "name": definition.name.name,
            "created_at_ms": definition.created_at_ms,
        }

    def changes(self, definition: D) -> dict[str, Any]:
        """Return the columns that a later version changes."""
        return {
            "spec": msgspec.to_builtins(definition.spec),
            "version": definition.version,
            "changed_at_ms": definition.changed_at_ms,
        }

    def is_listed(self, prefix: str) -> ColumnElement[bool]:
        """Return the condition of the definitions that are listed by a prefix of their names."""
        apart = self.apart_prefix
        if not apart or prefix.startswith(apart):
            return self._begins_with(prefix)
        return and_(self._begins_with(prefix), not_(self._begins_with(apart)))

    def _begins_with(self, prefix: str) -> ColumnElement[bool]:
        name = col(self.table.name)
        return and_(name >= prefix, name < prefix + _AFTER_EVERY_CHARACTER)

    @abstractmethod
    def locked(self, session: AsyncSession, name: N, row: Row[Any] | None) -> L:
        """Return the locked name."""

    # Reads

    async def find(self, name: N) -> D | None:
        """Return the definition, or None."""
        return (await self.find_many([name])).get(name)

    async def find_many(self, names: Sequence[N]) -> dict[N, D]:
        """Return those of the named definitions that exist, read by one statement."""
        definitions = await self._read(self.select().where(self._is_one_of(names)))
        return {definition.name: definition for definition in definitions}

    async def page(self, namespace: str, prefix: str, after: str, limit: int) -> list[D]:
        """Return the first `limit` definitions of a namespace with that prefix.

        By name, strictly after `after`.
        """
        name = col(self.table.name)
        statement = self.select().where(
            self._is_in(namespace), name > after, self.is_listed(prefix)
        )
        return await self._read(statement.order_by(name).limit(limit))

    async def names(
        self,
        namespace: str,
        part: str,
        names_max: int,
        tags: Mapping[str, str] = _NO_TAGS,
        prefix: str = "",
    ) -> list[str]:
        """Return names of a namespace with `part` after their prefix, and with all those tags.

        By name. The case of `part` is ignored.
        """
        name = col(self.table.name)
        statement = self.select().where(
            self._is_in(namespace),
            self.is_listed(prefix),
            func.strpos(func.lower(func.substr(name, len(prefix) + 1)), part.lower()) > 0,
        )
        if tags:
            statement = statement.where(col(self.table.spec).contains({"tags": dict(tags)}))
        statement = statement.with_only_columns(name).order_by(name).limit(names_max)
        async with self._database.reading() as session:
            return list((await session.execute(statement)).scalars())

    async def with_names(self, namespace: str, names: Sequence[str]) -> list[D]:
        """Return the definitions of a namespace that have one of these names, by name."""
        name = col(self.table.name)
        statement = self.select().where(self._is_in(namespace), name.in_(names))
        return await self._read(statement.order_by(name))

    async def every(self, *conditions: ColumnElement[bool]) -> AsyncIterator[D]:
        """Yield the definitions of every namespace that meet the conditions, read page by page.

        By namespace and name. One that cannot be decoded, such as that of a later version, is left out, and logged once.
        """
        order = (col(self.table.namespace), col(self.table.name))
        statement = self.select().where(*conditions).order_by(*order).limit(limits.PAGE_ITEMS_MAX)
        page = statement
        while True:
            async with self._database.reading() as session:
                rows = (await session.execute(page)).all()
            for row in rows:
                try:
                    definition = self.definition_of(row)
                except msgspec.ValidationError as error:
                    self._note_unreadable(row, error)
                else:
                    yield definition
            if len(rows) < limits.PAGE_ITEMS_MAX:
                return
            page = statement.where(tuple_(*order) > tuple_(rows[-1].namespace, rows[-1].name))

    def _note_unreadable(self, row: Row[Any], error: msgspec.ValidationError) -> None:
        name = f"{row.namespace}/{row.name}"
        if self._unreadable.get(name) != row.version:
            self._unreadable[name] = row.version
            facts = {"kind": self.kind, "object": name, "reason": str(error)}
            logger.warning("definition_unreadable", extra=facts)

    async def _read(self, statement: Select[Any]) -> list[D]:
        async with self._database.reading() as session:
            return [self.definition_of(row) for row in await session.execute(statement)]

    def _is_in(self, namespace: str) -> ColumnElement[bool]:
        return col(self.table.namespace) == namespace

    def _is_one_of(self, names: Sequence[Any]) -> ColumnElement[bool]:
        position = tuple_(col(self.table.namespace), col(self.table.name))
        return position.in_([(name.namespace, name.name) for name in names])

    # Writes

    @asynccontextmanager
    async def lock(self, name: N, *, dry_run: bool = False) -> AsyncGenerator[L]:
        """Lock the name; the block commits at its end, unless it raises or is a dry run.

        Raises OutcomeUnknown when the commit was not answered.
        """
        async with self._database.writing(dry_run=dry_run) as session:
            yield await self.lock_in(session, name)

    async def lock_in(self, session: AsyncSession, name: N) -> L:
        """Lock the name until the end of a transaction."""
        statement = self.select().where(self._is_one_of([name]))
        if self.is_row_locked:
            statement = statement.with_for_update()
        await session.execute(query("hold_name"), {"name": f"{self.kind}:{name}"})
        row = (await session.execute(statement)).one_or_none()
        return self.locked(session, name, row)
