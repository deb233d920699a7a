"""Write side of the archive's manifest: archive progress of each shard, and the files.

`archived` moves by compare-and-set in the transaction that inserts the files, so of two workers that archived
the same offsets one wins, and the files of the other are not referenced anywhere.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, delete, exists, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.archive import ArchivedFile, ArchiveState, LogRange, ShardKey, Span, hour_of
from storage.domain.errors import StorageUnavailable
from storage.domain.fault_points import fault
from storage.domain.jobs import Job, JobLease, JobState, Outcome
from storage.domain.names import LogId
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.repositories.jobs import attempt_outcome, continue_attempt, end_attempt
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import ArchiveFileRow, ArchiveShardRow, LogHoleRow

_FILE_FIELDS = ArchivedFile.__struct_fields__


class Mark(msgspec.Struct, frozen=True):
    """Archive progress of a shard, and the start of what is kept of it."""

    start: int
    archived: int


class Advance(msgspec.Struct, frozen=True):
    """Progress of a shard: it is archived from `first` up to `next` now, with these files."""

    stream_id: LogId
    shard: int
    first: int
    next: int
    files: Sequence[ArchivedFile]


class CrowdedHour(msgspec.Struct, frozen=True):
    """An hour of a shard, in whole hours since the Unix epoch, and its first file's offset."""

    namespace: str
    stream_id: LogId
    shard: int
    hour: int
    first_offset: int


class ArchiveRows:
    """Rows of `archive_shards` and `archive_files`. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._marks = Batcher[LogId, dict[int, Mark]](self._marks_of_many)

    # Progress

    async def marks(self, stream_ids: Sequence[LogId]) -> dict[ShardKey, Mark]:
        """Return the archive progress of these streams' shards that have any."""
        statement = select(
            col(ArchiveShardRow.stream_id),
            col(ArchiveShardRow.shard),
            col(ArchiveShardRow.start),
            col(ArchiveShardRow.archived),
        ).where(col(ArchiveShardRow.stream_id).in_(stream_ids))
        async with self._database.reading() as session:
            rows = await session.execute(statement)
            return {(row.stream_id, row.shard): Mark(row.start, row.archived) for row in rows}

    async def marks_of(self, stream_id: LogId) -> dict[int, Mark]:
        """Return the archive progress of a stream's shards; concurrent callers share a statement."""
        return await self._marks.submit(stream_id)

    async def _marks_of_many(self, stream_ids: Sequence[LogId]) -> list[dict[int, Mark]]:
        marks: dict[LogId, dict[int, Mark]] = {stream_id: {} for stream_id in stream_ids}
        for (stream_id, shard), mark in (await self.marks(stream_ids)).items():
            marks[stream_id][shard] = mark
        return [marks[stream_id] for stream_id in stream_ids]

    async def shards_with_files(self, stream_ids: Sequence[LogId]) -> dict[LogId, set[int]]:
        """Return the shards of these streams that have files in use."""
        has_files = exists().where(
            col(ArchiveFileRow.stream_id) == col(ArchiveShardRow.stream_id),
            col(ArchiveFileRow.shard) == col(ArchiveShardRow.shard),
            col(ArchiveFileRow.superseded_at_ms).is_(None),
        )
        statement = select(col(ArchiveShardRow.stream_id), col(ArchiveShardRow.shard)).where(
            col(ArchiveShardRow.stream_id).in_(stream_ids), has_files
        )
        shards: dict[LogId, set[int]] = {}
        async with self._database.reading() as session:
            for row in await session.execute(statement):
                shards.setdefault(row.stream_id, set()).add(row.shard)
        return shards

    async def begin(self, logs: Iterable[LogRange], now_ms: int) -> None:
        """Start archiving these logs, each from its `first` on; no effect for those started."""
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
        """Mark [first, next_offset) as never to be archived: no record exists there any longer.

        Perhaps none ever did. Returns whether the shard was archived up to `first`.
        """
        async with self._writing() as session:
            return await _advance(session, Advance(*key, first, next_offset, ()), now_ms)

    async def commit(
        self,
        claim: JobLease,
        advances: Sequence[Advance],
        progress: dict[str, Any],
        now_ms: int,
        decide: Callable[[Job, Sequence[Advance]], Outcome] | None,
    ) -> list[Advance]:
        """Add an attempt's files to the archive, and end the attempt as `decide` returns.

        Without `decide` the attempt continues. Returns the advances that another worker was ahead of, whose files are not added; `decide` is given these. A repetition
        after an unanswered commit changes nothing. Raises LeaseLost, and then nothing happened.
        """
        async with self._writing() as session:
            if await attempt_outcome(session, claim) is not None:
                return []
            late = [advance for advance in advances if not await _advance(session, advance, now_ms)]
            if decide is None:
                advanced = len(late) < len(advances)
                await continue_attempt(session, claim, progress, advanced=advanced)
            else:
                await end_attempt(session, claim, progress, lambda job: decide(job, late))
            fault("archive.before_commit")
            return late

    async def holes(self, log_ids: Sequence[LogId]) -> dict[LogId, list[Span]]:
        """Return the known holes of these logs, in order and disjoint."""
        statement = (
            select(col(LogHoleRow.log_id), col(LogHoleRow.first), col(LogHoleRow.next))
            .where(col(LogHoleRow.log_id).in_(log_ids))
            .order_by(col(LogHoleRow.first))
        )
        holes_by_log: dict[LogId, list[Span]] = {}
        async with self._database.reading() as session:
            for log_id, first, next_offset in await session.execute(statement):
                holes_by_log.setdefault(log_id, []).append((first, next_offset))
        return holes_by_log

    # Files

    async def states(self, stream_id: LogId) -> list[ArchiveState]:
        """Return the archive state of each shard of a stream, with the totals of its files."""
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
        """Return a shard's files in use that begin beyond an offset, by offset."""
        statement = (
            rows_of(ArchiveFileRow)
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
            return [_file(row) for row in await session.execute(statement)]

    async def every_file(self, key: ShardKey) -> list[ArchivedFile]:
        """Return all of a shard's files in use, by offset."""
        files: list[ArchivedFile] = []
        while page := await self.files(*key, after=files[-1].first_offset if files else -1):
            files += page
        return files

    async def crowded_hours(self, now_ms: int, namespace: str | None = None) -> list[CrowdedHour]:
        """Return past hours in which a shard has several small files; a bounded number."""
        parameters = {
            "namespace": namespace,
            "hour_ms": limits.HOUR_MS,
            "before_hour": hour_of(now_ms - limits.COMPACT_AFTER_MS),
            "small_bytes": limits.COMPACT_BELOW_BYTES,
            "files_min": limits.COMPACT_FILES_MIN,
            "limit": limits.PAGE_ITEMS_DEFAULT,
        }
        async with self._database.reading() as session:
            rows = await session.execute(query("crowded_hours"), parameters)
            return [CrowdedHour(**row._mapping) for row in rows]

    async def in_hour(self, hour: CrowdedHour) -> list[ArchivedFile]:
        """Return the files in use of one shard and hour, by offset."""
        files = await self.files(hour.stream_id, hour.shard, after=hour.first_offset - 1)
        return [file for file in files if hour_of(file.first_arrival_ms) == hour.hour]

    async def replace(
        self,
        claim: JobLease,
        swaps: Sequence[tuple[Sequence[ArchivedFile], ArchivedFile]],
        progress: dict[str, Any],
        now_ms: int,
    ) -> None:
        """End the job as done, and replace several files by one in each swap.

        A swap of files that are no longer all in use is left out. Raises LeaseLost, and then nothing happened.
        """
        async with self._writing() as session:
            if await attempt_outcome(session, claim) is not None:
                return
            for before, after in swaps:
                if await _retire(session, before, now_ms, all_or_none=True):
                    await session.execute(insert(ArchiveFileRow), [_values(after, now_ms)])
            await end_attempt(session, claim, progress, _done)

    async def retire(self, key: ShardKey, retired: Sequence[ArchivedFile], now_ms: int) -> None:
        """Retire these files, the shard's oldest; the shard's archive starts behind them."""
        start = retired[-1].next_offset
        async with self._writing() as session:
            await session.execute(
                update(ArchiveShardRow)
                .where(*_is(key))
                .values(start=func.greatest(col(ArchiveShardRow.start), start))
            )
            await _retire(session, retired, now_ms)

    # Deletion

    async def to_delete(self, retired_before_ms: int, limit: int) -> list[tuple[str, str]]:
        """Return (file id, path) of unused files: retired by then, or of a deleted stream."""
        parameters = {"retired_before_ms": retired_before_ms, "limit": limit}
        async with self._database.reading() as session:
            rows = await session.execute(query("archive_files_to_delete"), parameters)
            return [(row.file_id, row.path) for row in rows]

    async def delete_files(self, file_ids: Sequence[str]) -> None:
        """Remove the rows of these files, which are deleted."""
        async with self._writing() as session:
            await session.execute(
                delete(ArchiveFileRow).where(col(ArchiveFileRow.file_id).in_(file_ids))
            )

    async def delete_orphaned_shards(self) -> None:
        """Remove the shards of deleted streams, once their last file is deleted."""
        async with self._writing() as session:
            await session.execute(query("forget_gone_archives"))

    async def existing_paths(self, paths: Sequence[str]) -> set[str]:
        """Return those of the paths that have a row."""
        statement = select(col(ArchiveFileRow.path)).where(col(ArchiveFileRow.path).in_(paths))
        async with self._database.reading() as session:
            return set(await session.scalars(statement))

    async def every_shard(self) -> AsyncIterator[tuple[str, ShardKey, LogId]]:
        """Yield (namespace, key, log id) of every shard whose archiving has started, by key."""
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
    return struct_of(ArchivedFile, row)
