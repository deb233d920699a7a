"""Resources to sample: names and ids alone, so that ten thousand are read in a moment."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import select
from sqlmodel import col

from storage.domain import limits
from storage.domain.names import LogId
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.tables import LogHoleRow, NamespaceRow


class MeasuredQueue(NamedTuple):
    """Name and log of a queue; `others`: the logs of its partitions beyond the first."""

    namespace: str
    name: str
    log_id: LogId
    others: Sequence[LogId] = ()


class MeasuredShard(msgspec.Struct, frozen=True, array_like=True):
    """A shard: its log, whether it is open, and the bounds of its archive, None without one."""

    index: int
    log_id: LogId
    is_open: bool
    archive_start: int | None
    archived: int | None


class MeasuredStream(NamedTuple):
    """A stream and its shards."""

    namespace: str
    name: str
    stream_id: LogId
    shards: tuple[MeasuredShard, ...]


class SampledPosition(msgspec.Struct, frozen=True, array_like=True):
    """A group's progress in a shard."""

    shard: int
    committed: int | None
    committed_at_ms: int | None
    finished: bool


class MeasuredGroup(NamedTuple):
    """A consumer group.

    `start_time_ms`: its start position while it has committed nothing; None for the oldest record.
    """

    namespace: str
    name: str
    group_id: str
    stream_id: LogId
    start_time_ms: int | None
    members: int
    positions: tuple[SampledPosition, ...]


Holes = dict[LogId, list[tuple[int, int]]]


class MeasuredRows(Repository):
    """Pages of the resources to sample. Every method raises StorageUnavailable or StorageBusy."""

    async def namespaces(self) -> list[str]:
        """Return all namespaces."""
        async with self._database.reading() as session:
            return list(await session.scalars(select(col(NamespaceRow.name))))

    async def queues(self) -> AsyncIterator[list[MeasuredQueue]]:
        """Yield all queues in pages, by namespace and name."""
        async for rows in self._pages("measured_queues"):
            yield [MeasuredQueue(*row) for row in rows]

    async def streams(self) -> AsyncIterator[list[MeasuredStream]]:
        """Yield all streams in pages, by namespace and name."""
        async for rows in self._pages("measured_streams"):
            yield [
                MeasuredStream(
                    row.namespace,
                    row.name,
                    row.stream_id,
                    msgspec.convert(row.shards or (), tuple[MeasuredShard, ...]),
                )
                for row in rows
            ]

    async def _pages(self, statement: str) -> AsyncIterator[Sequence[Any]]:
        bounds = {"after_namespace": "", "after_name": "", "limit": limits.SERIES_ROWS_PER_PAGE}
        while True:
            async with self._database.reading() as session:
                rows = (await session.execute(query(statement), bounds)).all()
            yield rows
            if len(rows) < limits.SERIES_ROWS_PER_PAGE:
                return
            bounds |= {"after_namespace": rows[-1][0], "after_name": rows[-1][1]}

    async def groups(self, stream_ids: Sequence[LogId]) -> list[MeasuredGroup]:
        """Return the groups of these streams."""
        async with self._database.reading() as session:
            rows = await session.execute(query("measured_groups"), {"stream_ids": list(stream_ids)})
            return [
                MeasuredGroup(
                    row.namespace,
                    row.name,
                    row.group_id,
                    row.stream_id,
                    row.start_time_ms,
                    row.members,
                    msgspec.convert(row.shards or (), tuple[SampledPosition, ...]),
                )
                for row in rows
            ]

    async def group_names(self) -> set[tuple[str, str]]:
        """Return (namespace, name) of all groups."""
        async with self._database.reading() as session:
            rows = await session.execute(query("measured_group_names"))
            return {(row.namespace, row.name) for row in rows}

    async def holes(self, log_ids: Sequence[LogId]) -> Holes:
        """Return the holes (first, next) of those of the logs that have any."""
        statement = select(
            col(LogHoleRow.log_id), col(LogHoleRow.first), col(LogHoleRow.next)
        ).where(col(LogHoleRow.log_id).in_(log_ids))
        holes_by_log: Holes = {}
        async with self._database.reading() as session:
            for log_id, first, next_ in await session.execute(statement):
                holes_by_log.setdefault(log_id, []).append((first, next_))
        return holes_by_log

    async def archived_since(self, places: Sequence[tuple[LogId, int, int]]) -> list[int | None]:
        """Return the first arrival of the archive file for each (stream id, shard, offset).

        It is the file that has the offset or, if none has, the next one.
        """
        parameters = {
            "nths": list(range(len(places))),
            "stream_ids": [stream_id for stream_id, _, _ in places],
            "shards": [shard for _, shard, _ in places],
            "places": [offset for _, _, offset in places],
        }
        async with self._database.reading() as session:
            rows = await session.execute(query("archived_since"), parameters)
            since_ms = {row.nth: row.since_ms for row in rows}
        return [since_ms.get(nth) for nth in range(len(places))]
