"""Read side of the archive's manifest: files by offset or time, and the archive's extent."""

from typing import Any

import msgspec
from sqlalchemy import Select
from sqlmodel import col

from storage.domain import limits
from storage.domain.archive import ArchivedFile, ShardKey
from storage.domain.names import LogId
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import ArchiveFileRow

_LAST_ARRIVAL, _NEXT = col(ArchiveFileRow.last_arrival_ms), col(ArchiveFileRow.next_offset)


class ArchiveExtent(msgspec.Struct, frozen=True):
    """Archived part of a shard: the records with offsets from `start` to below `archived`.

    `start` is None when it has none.
    """

    start: int | None
    archived: int


class ManifestRows(Repository):
    """Reads `archive_shards` and `archive_files`. Every method raises StorageUnavailable."""

    async def extents(self, stream_id: LogId) -> dict[int, ArchiveExtent]:
        """Return the archive's extents of the stream's shards whose archiving has started."""
        async with self._database.reading() as session:
            rows = await session.execute(query("archive_extents"), {"stream_id": stream_id})
            return {row.shard: ArchiveExtent(row.start, row.archived) for row in rows}

    async def files_from(self, key: ShardKey, offset: int) -> list[ArchivedFile]:
        """Return the first files in use with offsets from this one on, in order.

        All of them if they are few.
        """
        statement = _in_use(key).where(offset < _NEXT).order_by(_NEXT)
        return await self._files(statement.limit(limits.ARCHIVE_PLAN_FILES))

    async def file_since(self, key: ShardKey, start: int, time_ms: int) -> ArchivedFile | None:
        """Return the first file in use with a record from `start` on that arrived since `time_ms`."""
        statement = _in_use(key).where(time_ms <= _LAST_ARRIVAL, start < _NEXT)
        files = await self._files(statement.order_by(_LAST_ARRIVAL, _NEXT).limit(1))
        return files[0] if files else None

    async def _files(self, statement: Select[Any]) -> list[ArchivedFile]:
        async with self._database.reading() as session:
            return [struct_of(ArchivedFile, row) for row in await session.execute(statement)]

    async def raise_start(self, key: ShardKey, before: int) -> bool:
        """Hide the offsets below `before` from readers.

        Returns whether archiving of the shard has started.
        """
        stream_id, shard = key
        parameters = {"stream_id": stream_id, "shard": shard, "before": before}
        async with self._database.autocommitting() as session:
            return await session.scalar(query("raise_archive_start"), parameters) is not None


def _in_use(key: ShardKey) -> Select[Any]:
    stream_id, shard = key
    return rows_of(ArchiveFileRow).where(
        col(ArchiveFileRow.stream_id) == stream_id,
        col(ArchiveFileRow.shard) == shard,
        col(ArchiveFileRow.superseded_at_ms).is_(None),
    )
