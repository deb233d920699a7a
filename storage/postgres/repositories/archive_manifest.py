"""The archive's manifest, as it is written: how far each shard is archived, and the files.

`archived` moves by compare-and-set in the transaction that inserts the files, so of two workers that archived
the same offsets one wins, and the files of the other are named nowhere.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, delete, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.archive import ArchivedFile, ArchiveState, LogRange, Span, hour_of
from storage.domain.errors import StorageUnavailable
from storage.domain.fault_points import fault
from storage.domain.jobs import Claim, Job, JobState, Outcome
from storage.domain.names import LogId
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.repositories.jobs import ended, let_go
from storage.postgres.tables import ArchiveFileRow, ArchiveShardRow, LogHoleRow

_FILE_FIELDS = ArchivedFile.__struct_fields__

ShardKey = tuple[LogId, int]
"""A stream's id and the number of a shard."""


class Mark(msgspec.Struct, frozen=True):
    """How far a shard is archived, and where what is kept of that begins."""

    start: int
    archived: int


class Advance(msgspec.Struct, frozen=True):
    """A shard is archived from `first` up to `next` now, with these files."""

    stream_id: LogId
    shard: int
    first: int
    next: int
    files: Sequence[ArchivedFile]


class CrowdedHour(msgspec.Struct, frozen=True):
    """An hour, in whole ones since the Unix epoch, of a shard, and its first file's offset."""

    namespace: str
    stream_id: LogId
    shard: int
    hour: int
    first_offset: int


class ArchiveRows:
    """The rows of `archive_shards` and `archive_files`. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # How far

    async def marks(self, stream_ids: Sequence[LogId]) -> dict[ShardKey, Mark]:
        """How far the shards of these streams are archived, of those that are."""
        wanted = select(
            col(ArchiveShardRow.stream_id),
            col(ArchiveShardRow.shard),
            col(ArchiveShardRow.start),
            col(ArchiveShardRow.archived),
        ).where(col(ArchiveShardRow.stream_id).in_(stream_ids))
        async with self._database.reading() as session:
            rows = await session.execute(wanted)
            return {(row.stream_id, row.shard): Mark(row.start, row.archived) for row in rows}

    async def begin(self, logs: Iterable[LogRange], now_ms: int) -> None:
        """Begin to archive these logs, each from its `first` on; nothing for those that have begun."""
        rows = [
            {
                "stream_id": log.stream_id,
                "shard": log.shard,
                "namespace": log.namespace,
                "log_id": log.log_id,
                "start": log.first,
                "archived": log.first,
                "archived_at_ms": now_ms,
            }
            for log in logs
        ]
        if rows:
            async with self._writing() as session:
                await session.execute(insert(ArchiveShardRow).on_conflict_do_nothing(), rows)

    async def skip(self, key: ShardKey, first: int, next_offset: int, now_ms: int) -> bool:
        """Offsets [first, next_offset) will never be archived: no record is there, or not any more. Whether the
        shard was archived up to `first`."""
        async with self._writing() as session:
            return await _advance(session, Advance(*key, first, next_offset, ()), now_ms)

    async def commit(
        self,
        claim: Claim,
        advances: Sequence[Advance],
        progress: dict[str, Any],
        now_ms: int,
        decide: Callable[[Job, Sequence[Advance]], Outcome],
    ) -> list[Advance]:
        """The attempt ends as `decide` says, and its files are in the archive. Gives the advances that another worker
        was ahead of, whose files are not; `decide` is told of these.

        Said again after an unanswered commit, it changes nothing. Raises LeaseLost, and then nothing happened.
        """
        async with self._writing() as session:
            if await ended(session, claim) is not None:
                return []
            late = [one for one in advances if not await _advance(session, one, now_ms)]
            await let_go(session, claim, progress, lambda job: decide(job, late))
            fault("archive.before_commit")
            return late

    async def holes(self, log_ids: Sequence[LogId]) -> dict[LogId, list[Span]]:
        """The holes of these logs that are known, in order and apart."""
        wanted = (
            select(col(LogHoleRow.log_id), col(LogHoleRow.first), col(LogHoleRow.next))
            .where(col(LogHoleRow.log_id).in_(log_ids))
            .order_by(col(LogHoleRow.first))
        )
        found: dict[LogId, list[Span]] = {}
        async with self._database.reading() as session:
            for log_id, first, next_offset in await session.execute(wanted):
                found.setdefault(log_id, []).append((first, next_offset))
        return found

    # Files

    async def states(self, stream_id: LogId) -> list[ArchiveState]:
        """How far each shard of a stream is archived, and what its files add up to."""
        async with self._database.reading() as session:
            rows = await session.execute(query("archive_states"), {"stream_id": stream_id})
            return [ArchiveState(**row._mapping) for row in rows]

    async def files(
        self,
        stream_id: LogId,
        shard: int,
        *,
        after: int = -1,
        limit: int = limits.PAGE_ITEMS_MAX,
    ) -> list[ArchivedFile]:
        """A shard's files in use that begin beyond an offset, by offset."""
        wanted = (
            select(ArchiveFileRow.__table__)  # type: ignore[attr-defined]
            .where(
                col(ArchiveFileRow.stream_id) == stream_id,
                col(ArchiveFileRow.shard) == shard,
                col(ArchiveFileRow.first_offset) > after,
                col(ArchiveFileRow.superseded_at_ms).is_(None),
            )
            .order_by(col(ArchiveFileRow.first_offset))
            .limit(limit)
        )
        async with self._database.reading() as session:
            return [_file(row) for row in await session.execute(wanted)]

    async def every_file(self, key: ShardKey) -> list[ArchivedFile]:
        """All of a shard's files in use, by offset."""
        found: list[ArchivedFile] = []
        while page := await self.files(*key, after=found[-1].first_offset if found else -1):
            found += page
        return found

    async def crowded_hours(self, now_ms: int, namespace: str | None = None) -> list[CrowdedHour]:
        """Hours that are over in which a shard has several small files; a bounded number."""
        found = {
            "namespace": namespace,
            "hour_ms": limits.HOUR_MS,
            "before_hour": hour_of(now_ms - limits.COMPACT_AFTER_MS),
            "small_bytes": limits.COMPACT_BELOW_BYTES,
            "files_min": limits.COMPACT_FILES_MIN,
            "limit": limits.PAGE_ITEMS_DEFAULT,
        }
        async with self._database.reading() as session:
            rows = await session.execute(query("crowded_hours"), found)
            return [CrowdedHour(**row._mapping) for row in rows]

    async def in_hour(self, hour: CrowdedHour) -> list[ArchivedFile]:
        """The files in use of one shard and hour, by offset."""
        files = await self.files(hour.stream_id, hour.shard, after=hour.first_offset - 1)
        return [file for file in files if hour_of(file.first_arrival_ms) == hour.hour]

    async def replace(
        self,
        claim: Claim,
        swaps: Sequence[tuple[Sequence[ArchivedFile], ArchivedFile]],
        progress: dict[str, Any],
        now_ms: int,
    ) -> None:
        """The job is done: one file stands for several, of each swap. A swap of files that are not all in use any
        more is left out. Raises LeaseLost, and then nothing happened."""
        async with self._writing() as session:
            if await ended(session, claim) is not None:
                return
            for before, after in swaps:
                if await _retire(session, before, now_ms, all_or_none=True):
                    await session.execute(insert(ArchiveFileRow), [_values(after, now_ms)])
            await let_go(session, claim, progress, _done)

    async def retire(self, key: ShardKey, gone: Sequence[ArchivedFile], now_ms: int) -> None:
        """These files, the shard's oldest, are kept no longer; it begins behind them."""
        start = gone[-1].next_offset
        async with self._writing() as session:
            await session.execute(
                update(ArchiveShardRow)
                .where(*_is(key))
                .values(start=func.greatest(col(ArchiveShardRow.start), start))
            )
            await _retire(session, gone, now_ms)

    # What is to be deleted

    async def to_delete(self, retired_before_ms: int, limit: int) -> list[tuple[str, str]]:
        """(file id, path) of files that nobody reads any more: retired by then, or of a stream that is gone."""
        found = {"retired_before_ms": retired_before_ms, "limit": limit}
        async with self._database.reading() as session:
            rows = await session.execute(query("archive_files_to_delete"), found)
            return [(row.file_id, row.path) for row in rows]

    async def forget(self, file_ids: Sequence[str]) -> None:
        """These files are deleted."""
        async with self._writing() as session:
            await session.execute(
                delete(ArchiveFileRow).where(col(ArchiveFileRow.file_id).in_(file_ids))
            )

    async def forget_gone(self) -> None:
        """Shards of streams that are gone, once their last file is deleted."""
        async with self._writing() as session:
            await session.execute(query("forget_gone_archives"))

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        """Those of the paths that a row names."""
        wanted = select(col(ArchiveFileRow.path)).where(col(ArchiveFileRow.path).in_(paths))
        async with self._database.reading() as session:
            return set(await session.scalars(wanted))

    async def every_shard(self) -> AsyncIterator[tuple[str, ShardKey, LogId]]:
        """(namespace, key, log id) of every shard that has begun, by key."""
        after: ShardKey = ("", -1)
        columns = (
            col(ArchiveShardRow.stream_id),
            col(ArchiveShardRow.shard),
            col(ArchiveShardRow.namespace),
            col(ArchiveShardRow.log_id),
        )
        while True:
            page = (
                select(*columns)
                .where(tuple_(columns[0], columns[1]) > after)
                .order_by(columns[0], columns[1])
                .limit(limits.PAGE_ITEMS_MAX)
            )
            async with self._database.reading() as session:
                rows = (await session.execute(page)).all()
            for stream_id, shard, namespace, log_id in rows:
                after = (stream_id, shard)
                yield namespace, after, log_id
            if not rows:
                return

    def _writing(self) -> Any:
        return self._database.writing(unknown=StorageUnavailable)


def _done(_: Job) -> Outcome:
    return Outcome(state=JobState.DONE)


def _is(key: ShardKey) -> tuple[Any, Any]:
    stream_id, shard = key
    return col(ArchiveShardRow.stream_id) == stream_id, col(ArchiveShardRow.shard) == shard


async def _advance(session: AsyncSession, advance: Advance, now_ms: int) -> bool:
    moved = await session.execute(
        update(ArchiveShardRow)
        .where(
            *_is((advance.stream_id, advance.shard)), col(ArchiveShardRow.archived) == advance.first
        )
        .values(archived=advance.next, archived_at_ms=now_ms)
    )
    if not moved.rowcount:  # type: ignore[attr-defined]
        return False
    if advance.files:
        rows = [_values(file, now_ms) for file in advance.files]
        await session.execute(insert(ArchiveFileRow), rows)
    return True


async def _retire(
    session: AsyncSession, files: Sequence[ArchivedFile], now_ms: int, *, all_or_none: bool = False
) -> bool:
    in_use = (
        col(ArchiveFileRow.file_id).in_([file.file_id for file in files]),
        col(ArchiveFileRow.superseded_at_ms).is_(None),
    )
    if all_or_none:
        locked = await session.scalars(
            select(col(ArchiveFileRow.file_id)).where(*in_use).with_for_update()
        )
        if len(locked.all()) != len(files):
            return False
    await session.execute(update(ArchiveFileRow).where(*in_use).values(superseded_at_ms=now_ms))
    return True


def _values(file: ArchivedFile, now_ms: int) -> dict[str, Any]:
    return {**{name: getattr(file, name) for name in _FILE_FIELDS}, "created_at_ms": now_ms}


def _file(row: Row[Any]) -> ArchivedFile:
    return ArchivedFile(**{name: getattr(row, name) for name in _FILE_FIELDS})
