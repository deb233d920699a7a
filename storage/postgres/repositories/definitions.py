"""Repository of the definitions of queues and streams, as domain values.

`Definitions` reads them, and `lock` gives one writer at a time the right to change the definition of a name. Changes
are announced on `CHANNEL`, in the same transaction, as "queue:<namespace>/<name>".
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec
from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.names import LogId, QueueName, StreamName
from storage.domain.queues.queue import Queue, QueueSpec
from storage.domain.streams.stream import Shard, Stream, StreamSpec
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.repositories.namespaces import CHANNEL, admit
from storage.postgres.tables import LogRow, QueueRow, ShardRow, StreamRow

N = TypeVar("N", bound=QueueName | StreamName)
D = TypeVar("D", bound=Queue | Stream)

_AFTER_EVERY_CHARACTER = "\x7f"  # names are printable ASCII
_POSITIVE = 0x7FFF_FFFF  # a hash of Postgres has a sign


class Rows(Protocol[D]):
    """Differences between the two kinds of definition."""

    @property
    def kind(self) -> str:
        """Prefix of announcements."""

    @property
    def table(self) -> type[QueueRow] | type[StreamRow]: ...

    def select(self) -> Select[Any]:
        """Select the definitions that are not deleted, as rows that `definition` accepts."""

    def definition(self, row: Row[Any]) -> D: ...

    def row_of(self, definition: D) -> ColumnElement[bool]:
        """Return the condition that selects its row."""

    def logs(self, definition: D) -> list[LogId]: ...

    async def insert(self, session: AsyncSession, definition: D) -> None: ...


class QueueRows:
    """Queues: each is one row, with a single log."""

    kind = "queue"
    table = QueueRow

    def select(self) -> Select[Any]:
        return select(QueueRow).where(col(QueueRow.deleted_at_ms).is_(None))

    def definition(self, row: Row[Any]) -> Queue:
        record: QueueRow = row.QueueRow
        return Queue(
            name=QueueName(record.name, record.namespace),
            log_id=record.log_id,
            spec=msgspec.convert(record.spec, QueueSpec),
            version=record.version,
            created_at_ms=record.created_at_ms,
            changed_at_ms=record.changed_at_ms,
        )

    def row_of(self, definition: Queue) -> ColumnElement[bool]:
        return col(QueueRow.log_id) == definition.log_id

    def logs(self, definition: Queue) -> list[LogId]:
        return [definition.log_id]

    async def insert(self, session: AsyncSession, definition: Queue) -> None:
        await session.execute(
            insert(QueueRow).values(log_id=definition.log_id, **_values(definition))
        )


_SHARDS = (
    select(
        func.jsonb_agg(
            func.jsonb_build_array(
                col(ShardRow.index),
                col(ShardRow.log_id),
                col(ShardRow.first_hash_key),
                col(ShardRow.last_hash_key),
                col(ShardRow.opened_at_ms),
                col(ShardRow.closed_at_ms),
                col(ShardRow.parents),
            )
        )
    )
    .where(
        col(ShardRow.stream_id) == col(StreamRow.stream_id),
        col(ShardRow.expired_at_ms).is_(None),
    )
    .correlate(StreamRow)
    .scalar_subquery()
    .label("shards")
)


class StreamRows:
    """Streams: a row and those of its shards, read together by one statement.

    So they are always consistent.
    """

    kind = "stream"
    table = StreamRow

    def select(self) -> Select[Any]:
        return select(StreamRow, _SHARDS).where(col(StreamRow.deleted_at_ms).is_(None))

    def definition(self, row: Row[Any]) -> Stream:
        record: StreamRow = row.StreamRow
        shards, opening = _apart(row.shards)
        return Stream(
            name=StreamName(record.name, record.namespace),
            stream_id=record.stream_id,
            spec=msgspec.convert(record.spec, StreamSpec),
            shards=shards,
            opening=opening,
            shards_target=record.shards_target,
            version=record.version,
            created_at_ms=record.created_at_ms,
            changed_at_ms=record.changed_at_ms,
        )

    def row_of(self, definition: Stream) -> ColumnElement[bool]:
        return col(StreamRow.stream_id) == definition.stream_id

    def logs(self, definition: Stream) -> list[LogId]:
        return [shard.log_id for shard in (*definition.shards, *definition.opening)]

    async def insert(self, session: AsyncSession, definition: Stream) -> None:
        await session.execute(
            insert(StreamRow).values(stream_id=definition.stream_id, **_values(definition))
        )
        await session.execute(insert(ShardRow), shard_values(definition, definition.shards))


def _apart(rows: Sequence[Any]) -> tuple[tuple[Shard, ...], tuple[Shard, ...]]:
    """Return the shards of the stream by index, and those whose parents are being closed."""
    shards = sorted((_shard(*row) for row in rows), key=lambda shard: shard.index)
    still_open = {shard.index for shard in shards if shard.is_open}
    opening = tuple(shard for shard in shards if not still_open.isdisjoint(shard.parents))
    return tuple(shard for shard in shards if shard not in opening), opening


def _shard(  # noqa: PLR0917 - the columns of a row
    index: int,
    log_id: LogId,
    first_hash_key: int,
    last_hash_key: int,
    opened_at_ms: int,
    closed_at_ms: int | None,
    parents: list[int],
) -> Shard:
    """Build a shard from an item of `_SHARDS`."""
    return Shard(
        index, log_id, first_hash_key, last_hash_key, opened_at_ms, closed_at_ms, tuple(parents)
    )


def _values(definition: Queue | Stream) -> dict[str, Any]:
    return {
        "namespace": definition.name.namespace,
        "name": definition.name.name,
        "spec": msgspec.to_builtins(definition.spec),
        "version": definition.version,
        "created_at_ms": definition.created_at_ms,
        "changed_at_ms": definition.changed_at_ms,
    }


def shard_values(stream: Stream, shards: Iterable[Shard]) -> list[dict[str, Any]]:
    """Return rows of the table `shards`."""
    return [
        {
            **msgspec.structs.asdict(shard),
            "stream_id": stream.stream_id,
            "parents": list(shard.parents),
        }
        for shard in shards
    ]


class LockedDefinition(Generic[D]):
    """A name locked against writes by others, and its present `definition`, or None.

    `session` is the transaction that holds the lock.
    """

    def __init__(
        self, session: AsyncSession, rows: Rows[D], name: QueueName | StreamName, now: D | None
    ) -> None:
        self.session = session
        self._rows = rows
        self._name = name
        self.definition = now

    async def insert(self, definition: D) -> None:
        """Store the name's first definition, and the rows of its logs.

        Raises NamespaceNotFound; QuotaReached where the namespace has its maximum.
        """
        await admit(self.session, self._name.namespace, self._rows.kind)
        await self._rows.insert(self.session, definition)
        logs = [
            {"log_id": log_id, "namespace": self._name.namespace}
            for log_id in self._rows.logs(definition)
        ]
        await self.session.execute(insert(LogRow), logs)
        await self.announce()

    async def update(self, definition: D) -> None:
        """Store a later version; its logs stay the same."""
        await self._change(
            definition,
            spec=msgspec.to_builtins(definition.spec),
            version=definition.version,
            changed_at_ms=definition.changed_at_ms,
        )

    async def delete(self, definition: D, now_ms: int) -> None:
        """Free the name. The logs cannot be opened any longer; the row stays for the sweeper."""
        logs = self._rows.logs(definition)
        await self.session.execute(delete(LogRow).where(col(LogRow.log_id).in_(logs)))
        await self._change(definition, deleted_at_ms=now_ms)

    async def _change(self, definition: D, **values: Any) -> None:
        row = self._rows.row_of(definition)
        await self.session.execute(update(self._rows.table).where(row).values(**values))
        await self.announce()

    async def announce(self) -> None:
        """Notify every process that the definition changed, once this transaction is committed."""
        payload = f"{self._rows.kind}:{self._name}"
        await self.session.execute(query("notify"), {"channel": CHANNEL, "payload": payload})


class Which(NamedTuple):
    """Filter of definitions for a maintenance task, so that Postgres sends no others.

    `share`: (nth, of) of disjoint shares that together are all; recently changed ones are in each. `archived`: those with
    archiving enabled, for a kind whose definitions mention it only then.
    """

    share: tuple[int, int] | None = None
    or_changed_at_ms: int = 0
    archived: bool = False


EVERY_ONE = Which()


class Definitions(Generic[N, D]):
    """Definitions of one kind."""

    def __init__(self, database: Database, rows: Rows[D]) -> None:
        self._database = database
        self._rows = rows

    @property
    def kind(self) -> str:
        """`queue` or `stream`, as in announcements."""
        return self._rows.kind

    async def find_many(self, names: Sequence[N]) -> dict[N, D]:
        """Return those of the named definitions that exist, read by one statement."""
        table = self._rows.table
        position = tuple_(col(table.namespace), col(table.name))
        pairs = [(name.namespace, name.name) for name in names]
        definitions = await self._read(self._rows.select().where(position.in_(pairs)))
        return {cast("N", definition.name): definition for definition in definitions}

    async def _find(self, session: AsyncSession, name: N) -> D | None:
        table = self._rows.table
        statement = self._rows.select().where(
            col(table.namespace) == name.namespace, col(table.name) == name.name
        )
        row = (await session.execute(statement)).one_or_none()
        return None if row is None else self._rows.definition(row)

    async def page(self, namespace: str, prefix: str, after: str, limit: int) -> list[D]:
        """Return the first `limit` definitions of a namespace with that prefix.

        By name, strictly after `after`.
        """
        name = col(self._rows.table.name)
        statement = self._rows.select().where(
            col(self._rows.table.namespace) == namespace,
            name > after,
            name >= prefix,
            name < prefix + _AFTER_EVERY_CHARACTER,
        )
        return await self._read(statement.order_by(name).limit(limit))

    async def page_of_dead_letter_sources(
        self, target: QueueName, after: str, limit: int
    ) -> list[D]:
        """Return queues that name `target` as their dead-letter queue, by name, after `after`."""
        statement = self._rows.select().where(
            col(QueueRow.namespace) == target.namespace,
            col(QueueRow.name) > after,
            col(QueueRow.spec)["dead_letters"]["queue"].astext == target.name,
        )
        return await self._read(statement.order_by(col(QueueRow.name)).limit(limit))

    async def dead_letter_targets(self, namespace: str, names: Sequence[str]) -> frozenset[str]:
        """Return those of the names that queues of the namespace have as dead-letter queue."""
        target = col(QueueRow.spec)["dead_letters"]["queue"].astext
        statement = select(target).where(
            col(QueueRow.deleted_at_ms).is_(None),
            col(QueueRow.namespace) == namespace,
            target.in_(names),
        )
        async with self._database.reading() as session:
            return frozenset((await session.execute(statement.distinct())).scalars())

    async def names(
        self, namespace: str, part: str, tags: Mapping[str, str], names_max: int
    ) -> list[str]:
        """Return names of a namespace that contain `part` and have all those tags, by name.

        The case of `part` is ignored.
        """
        table = self._rows.table
        statement = select(col(table.name)).where(
            col(table.deleted_at_ms).is_(None),
            col(table.namespace) == namespace,
            func.strpos(func.lower(col(table.name)), part.lower()) > 0,
        )
        if tags:
            statement = statement.where(col(table.spec).contains({"tags": dict(tags)}))
        async with self._database.reading() as session:
            rows = await session.execute(statement.order_by(col(table.name)).limit(names_max))
            return list(rows.scalars())

    async def named(self, namespace: str, names: Sequence[str]) -> list[D]:
        """Return the definitions of a namespace that have one of these names, by name."""
        table = self._rows.table
        statement = self._rows.select().where(
            col(table.namespace) == namespace, col(table.name).in_(names)
        )
        return await self._read(statement.order_by(col(table.name)))

    async def page_of_all(self, after: N | None, which: Which = EVERY_ONE) -> list[D]:
        """Return a page over all namespaces, by namespace and name, strictly after `after`."""
        table = self._rows.table
        position = tuple_(col(table.namespace), col(table.name))
        statement = self._rows.select().order_by(col(table.namespace), col(table.name))
        if after is not None:
            statement = statement.where(position > tuple_(after.namespace, after.name))
        if which.share is not None:
            nth, of = which.share
            in_share = func.hashtext(col(table.name)).op("&")(_POSITIVE) % of == nth
            statement = statement.where(
                or_(in_share, col(table.changed_at_ms) >= which.or_changed_at_ms)
            )
        if which.archived:
            statement = statement.where(col(table.spec)["archive"].as_boolean().is_(True))
        return await self._read(statement.limit(limits.PAGE_ITEMS_MAX))

    async def _read(self, statement: Select[Any]) -> list[D]:
        async with self._database.reading() as session:
            return [self._rows.definition(row) for row in await session.execute(statement)]

    @asynccontextmanager
    async def lock(self, name: N, *, dry_run: bool = False) -> AsyncGenerator[LockedDefinition[D]]:
        """Lock the name; the block commits at its end, unless it raises or is a dry run.

        Raises OutcomeUnknown when the commit was not answered.
        """
        async with self._database.writing(dry_run=dry_run) as session:
            await session.execute(query("hold_name"), {"name": f"{self.kind}:{name}"})
            yield LockedDefinition(session, self._rows, name, await self._find(session, name))


class DeletedDefinitions:
    """Rows of deleted queues and streams, kept until the hot store has been swept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def logs(
        self, deleted_before_ms: int, after: LogId, limit: int
    ) -> list[tuple[str, LogId]]:
        """Return (namespace, log id) of logs deleted by then, by log id, strictly after `after`."""
        bounds = {"deleted_before_ms": deleted_before_ms, "after": after, "limit": limit}
        async with self._database.reading() as session:
            rows = await session.execute(query("deleted_logs"), bounds)
            return [(row.namespace, row.log_id) for row in rows]

    async def last_queue(self, name: QueueName) -> int | None:
        """Return when the last queue of that name was deleted, in ms; None when no longer known."""
        statement = select(func.max(col(QueueRow.deleted_at_ms))).where(
            col(QueueRow.namespace) == name.namespace, col(QueueRow.name) == name.name
        )
        async with self._database.reading() as session:
            return await session.scalar(statement)

    async def delete(self, log_ids: Sequence[LogId]) -> None:
        """Remove the rows of these logs' queues and shards, if deleted, and of streams left empty."""
        parameters = {"log_ids": list(log_ids)}
        async with self._database.writing() as session:
            await session.execute(
                delete(QueueRow).where(
                    col(QueueRow.log_id).in_(log_ids), col(QueueRow.deleted_at_ms).is_not(None)
                )
            )
            await session.execute(query("forget_deleted_shards"), parameters)
            await session.execute(query("forget_empty_streams"))
