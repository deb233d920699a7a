"""Repository of the definitions of queues and streams, as domain values."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import lru_cache
from sys import intern
from typing import Any, Generic, TypeVar, cast

import msgspec
from sqlalchemy import Row, Select, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.names import ROUTE_PREFIX, TOPIC_PREFIX, LogId, QueueName, StreamName
from storage.domain.queues.partitions import PartitionLog, with_partitions
from storage.domain.queues.policies import Overflow, QueueCaps
from storage.domain.queues.queue import PartitionSet, Queue, QueueSpec
from storage.domain.streams.stream import Shard, Stream, StreamSpec
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.queries import query
from storage.postgres.repositories.namespaces import admit
from storage.postgres.repository import Repository
from storage.postgres.rows import struct_of
from storage.postgres.tables import LogRow, QueuePartitionRow, QueueRow, ShardRow, StreamRow

N = TypeVar("N", bound=QueueName | StreamName)
D = TypeVar("D", bound=Queue | Stream)
S = TypeVar("S", bound=msgspec.Struct)

_SPECS_CACHED_MAX = 1_000  # most definitions of a deployment have one of a few specifications


class LockedLogs(LockedDefinition[D]):
    """A locked name of a queue or stream, whose logs are opened and closed with it."""

    def __init__(
        self,
        session: AsyncSession,
        table: "LogDefinitions[Any, D]",
        name: QueueName | StreamName,
        row: Row[Any] | None,
    ) -> None:
        super().__init__(session, table, name, row)
        self._logs_of = table.logs
        self._namespace = name.namespace

    async def insert(self, definition: D) -> None:
        """Store the name's first definition, and the rows of its logs.

        Raises NamespaceNotFound; QuotaReached where the namespace has its maximum. The queue of a route counts as the route.
        """
        if not isinstance(definition, Queue) or definition.name.route is None:
            await admit(self.session, self._namespace, self._table.kind)
        await super().insert(definition)
        logs = [
            {"log_id": log_id, "namespace": self._namespace} for log_id in self._logs_of(definition)
        ]
        await self.session.execute(insert(LogRow), logs)
        if isinstance(definition, Stream):
            await self.session.execute(
                insert(ShardRow), shard_values(definition, definition.shards)
            )
        elif definition.partitions:
            await self.session.execute(
                insert(QueuePartitionRow), _partition_values(definition, definition.partitions[1:])
            )

    async def update(self, definition: D) -> None:
        """Store a later version, and the rows of a queue's new partitions."""
        if isinstance(definition, Queue) and isinstance(self.definition, Queue):
            added = definition.partitions[len(self.definition.logs) :]
            if added:
                logs = [{"log_id": one.log_id, "namespace": self._namespace} for one in added]
                await self.session.execute(insert(LogRow), logs)
                await self.session.execute(
                    insert(QueuePartitionRow), _partition_values(definition, added)
                )
        await super().update(definition)

    async def delete(self, definition: D, now_ms: int) -> None:
        """Free the name. The logs cannot be opened any longer; the row stays for the sweeper."""
        logs = self._logs_of(definition)
        await self.session.execute(delete(LogRow).where(col(LogRow.log_id).in_(logs)))
        await self._update(definition, deleted_at_ms=now_ms)


class LogDefinitions(DefinitionTable[N, D, LockedLogs[D]], Generic[N, D]):
    """Definitions with logs; deleted ones stay until the hot store has been swept."""

    def select(self) -> Select[Any]:
        return super().select().where(col(self.table.deleted_at_ms).is_(None))

    @abstractmethod
    def logs(self, definition: D) -> list[LogId]:
        """Return the logs of a definition."""

    def locked(self, session: AsyncSession, name: N, row: Row[Any] | None) -> LockedLogs[D]:
        return LockedLogs(session, self, name, row)


_PARTITIONS = (
    select(
        func.jsonb_agg(
            func.jsonb_build_array(
                col(QueuePartitionRow.number),
                col(QueuePartitionRow.log_id),
                col(QueuePartitionRow.opened_at_ms),
            )
        )
    )
    .where(col(QueuePartitionRow.queue_id) == col(QueueRow.log_id))
    .correlate(QueueRow)
    .scalar_subquery()
    .label("partitions")
)


class QueueRows(LogDefinitions[QueueName, Queue]):
    """Queues: a row, and one for each partition beyond the first."""

    kind = "queue"
    table = QueueRow
    id = "log_id"
    apart_prefix = ROUTE_PREFIX

    def select(self) -> Select[Any]:
        return super().select().add_columns(_PARTITIONS)

    def archived(self) -> AsyncIterator[Queue]:
        """Yield the queues whose stream view is archived; others do not mention it."""
        return self.every(col(QueueRow.spec)["archive"].as_boolean().is_(True))

    def definition_of(self, row: Row[Any]) -> Queue:
        name, spec = QueueName(row.name, intern(row.namespace)), _spec_of(QueueSpec, row.spec)
        sets = msgspec.convert(row.partition_sets or (), tuple[PartitionSet, ...])
        queue = struct_of(
            Queue, row, name=name, spec=spec, partitions=(), partition=0, partition_sets=sets
        )
        return with_partitions(queue, [PartitionLog(*one) for one in row.partitions or ()])

    def changes(self, definition: Queue) -> dict[str, Any]:
        sets = msgspec.to_builtins(definition.partition_sets)
        return super().changes(definition) | {"partition_sets": sets or None}

    def logs(self, definition: Queue) -> list[LogId]:
        return [log.log_id for log in definition.logs]

    async def page_of_dead_letter_sources(
        self, target: QueueName, after: str, limit: int
    ) -> list[Queue]:
        """Return queues that name `target` as their dead-letter queue, by name, after `after`."""
        statement = self.select().where(
            self._is_in(target.namespace),
            col(QueueRow.name) > after,
            col(QueueRow.spec)["dead_letters"]["queue"].astext == target.name,
        )
        return await self._read(statement.order_by(col(QueueRow.name)).limit(limit))

    async def dead_letter_targets(self, namespace: str, names: Sequence[str]) -> frozenset[str]:
        """Return those of the names that queues of the namespace have as dead-letter queue."""
        target = col(QueueRow.spec)["dead_letters"]["queue"].astext
        statement = self.select().where(self._is_in(namespace), target.in_(names))
        async with self._database.reading() as session:
            targets = await session.execute(statement.with_only_columns(target).distinct())
            return frozenset(targets.scalars())

    async def caps(self, namespace: str) -> dict[str, QueueCaps]:
        """Return the caps of queues that reject messages beyond them, of LISTED_NAMES_MAX at most."""
        spec = col(QueueRow.spec)
        messages, size = (spec[name].as_integer() for name in ("messages_max", "bytes_max"))
        is_capped = messages.is_not(None) | size.is_not(None)
        rejects = func.coalesce(spec["overflow"].astext, Overflow.REJECT) == Overflow.REJECT
        statement = self.select().where(self._is_in(namespace), is_capped, rejects)
        columns = statement.with_only_columns(col(QueueRow.name), messages, size)
        async with self._database.reading() as session:
            rows = await session.execute(columns.limit(limits.LISTED_NAMES_MAX))
            return {name: QueueCaps(*caps) for name, *caps in rows}


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


class StreamRows(LogDefinitions[StreamName, Stream]):
    """Streams: a row and those of its shards, read together by one statement.

    So they are always consistent.
    """

    kind = "stream"
    table = StreamRow
    id = "stream_id"
    apart_prefix = TOPIC_PREFIX

    def select(self) -> Select[Any]:
        return super().select().add_columns(_SHARDS)

    def definition_of(self, row: Row[Any]) -> Stream:
        shards, opening = _apart(row.shards)
        name, spec = StreamName(row.name, intern(row.namespace)), _spec_of(StreamSpec, row.spec)
        return struct_of(
            Stream, row, name=name, spec=spec, shards=shards, opening=opening, is_view=False
        )

    def logs(self, definition: Stream) -> list[LogId]:
        return [shard.log_id for shard in (*definition.shards, *definition.opening)]


def _partition_values(queue: Queue, partitions: Sequence[Queue]) -> list[dict[str, Any]]:
    """Return rows of the table `queue_partitions`."""
    return [
        {
            "queue_id": queue.log_id,
            "number": one.partition,
            "log_id": one.log_id,
            "opened_at_ms": one.created_at_ms,
        }
        for one in partitions
    ]


def _spec_of(kind: type[S], stored: Any) -> S:
    """Return a stored specification, as one object for all definitions that have it."""
    return cast("S", _decode_spec(kind, msgspec.json.encode(stored)))


@lru_cache(_SPECS_CACHED_MAX)
def _decode_spec(kind: type[msgspec.Struct], encoded: bytes) -> msgspec.Struct:
    return msgspec.json.decode(encoded, type=kind)


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


class DeletedDefinitions(Repository):
    """Rows of deleted queues and streams, kept until the hot store has been swept."""

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
            await session.execute(query("forget_deleted_partitions"), parameters)
            await session.execute(query("forget_deleted_queues"), parameters)
            await session.execute(query("forget_deleted_shards"), parameters)
            await session.execute(query("forget_empty_streams"))
