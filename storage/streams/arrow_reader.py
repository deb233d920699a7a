"""Columnar reads of a shard: many records at a time as one Arrow stream, or as columns.

Offsets, gaps and errors are those of `RecordReader.read_shard`. A read ends at a tier boundary, at a gap, or when it is large
enough. No record becomes a Python object on the way. Only Arrow streams and archived records load pyarrow.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from storage.archive.tiered_reader import Archived, Hot, TieredReader
from storage.domain import limits
from storage.domain.errors import (
    OffsetExpired,
    OffsetOutOfRange,
    StorageBusy,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.log.address import LogAddress
from storage.domain.log.entry import LogEntry
from storage.domain.names import LogId, StreamName
from storage.domain.streams.record_columns import (
    NO_RECORDS,
    ColumnRead,
    RecordColumns,
    columns_of,
)
from storage.domain.streams.stream import Gap, GapReason, Shard, Stream, Tier
from storage.hot_store.log_store import EntryRange, LogRangeReader, ReadRequest
from storage.log.gap_reasons import GapReasons
from storage.log.stream_executor import StreamExecutor

if TYPE_CHECKING:  # it imports pyarrow: see storage.archive.cache
    from storage.parquet.row_group_slice import RowGroupSlice


class ArrowPage(msgspec.Struct, frozen=True):
    """Records of a shard as an Arrow IPC stream.

    The columns are offset, ts, event_ts, key, data and headers, in the archive's types. `next_offset` is the offset to
    continue at; `start` is the oldest readable offset, `tip` the next one to be written. `ended`: the shard is closed and
    this was its last data.
    """

    encoded: bytes
    records: int
    next_offset: int
    start: int
    tip: int
    tier: Tier
    ended: bool
    gap: Gap | None


class _Located(msgspec.Struct, frozen=True):
    """A shard's records from an offset on, in the tier that has them.

    `archived`: the archive's records in place of the entries of `hot_range`.
    """

    shard: Shard
    start: int
    hot_range: EntryRange
    archived: Archived | None

    @property
    def tip(self) -> int:
        """Offset after the last record of both tiers."""
        next_ = self.hot_range.next
        return next_ if self.archived is None else max(next_, self.archived.end)

    @property
    def tier(self) -> Tier:
        return Tier.HOT if self.archived is None else Tier.ARCHIVE

    def archived_before(self, end: int) -> "list[RowGroupSlice]":
        """Return the archive's records below an offset."""
        parts = () if self.archived is None else self.archived.parts
        return [part.before(end) for part in parts if part.first < end]

    def bounds(self, end: int, read: tuple[int, int] | None) -> tuple[int, int]:
        """Return the first and the next offset of a read; `read`: those of its records, if any."""
        edge = self.hot_range.next if self.archived is None else self.archived.end
        return read or (min(end, edge), min(end, edge))

    def gap(self, offset: int, first: int) -> Gap | None:
        """Return the gap between the requested offset and the first record."""
        reason = GapReason.HOLE if self.archived is None else self.archived.reason
        return Gap(offset, first, reason) if first > offset else None


class ArrowReader:
    """Columnar reads of a deployment's shards."""

    def __init__(
        self,
        ranges: LogRangeReader,
        executor: StreamExecutor,
        archive: TieredReader | None,
        gap_reasons: GapReasons,
    ) -> None:
        self._ranges = ranges
        self._executor = executor
        self._archive = archive
        self._gap_reasons = gap_reasons
        self._turns = asyncio.Semaphore(limits.ARROW_TABLE_CONCURRENCY_MAX)
        self._waiting = 0

    async def read(
        self,
        name: StreamName,
        shard: int,
        *,
        offset: int,
        end: int | None,
        bytes_max: int,
        stream_id: LogId | None = None,
    ) -> ArrowPage:
        """Read records of a shard with offsets [offset, end), up to `bytes_max` bytes.

        Returns at least one record if there is one. Without `end`, reads up to the tip. `stream_id`: the stream that the
        offset belongs to. Raises StreamNotFound, StreamRecreated, ShardNotFound, OffsetExpired, OffsetOutOfRange,
        ArchiveDamaged, StorageBusy.
        """
        end = limits.OFFSET_MAX if end is None else end
        _check(offset, end, bytes_max)
        if self._waiting >= limits.TABLES_WAITING_MAX:
            raise StorageBusy("Too many concurrent table reads; nothing happened.")
        self._waiting += 1
        try:
            async with self._turns:
                located = await self._locate(
                    name, shard, offset=offset, end=end, bytes_max=bytes_max, stream_id=stream_id
                )
                return await self._page(located, offset, end, bytes_max)
        finally:
            self._waiting -= 1

    async def read_columns(
        self,
        name: StreamName,
        shard: int,
        *,
        offset: int,
        end: int,
        bytes_max: int,
        stream_id: LogId | None = None,
    ) -> ColumnRead:
        """Read records as `read` does, as columns; the last entry may exceed `bytes_max`."""
        located = await self._locate(
            name, shard, offset=offset, end=end, bytes_max=bytes_max, stream_id=stream_id
        )
        if located.archived is None:
            columns = _hot_columns(located.hot_range.entries, offset, end)
        else:
            parts = located.archived_before(end)
            columns = await asyncio.to_thread(_archived_columns, parts)
        read = (columns.offsets[0], columns.offsets[-1] + 1) if columns.offsets else None
        first, next_offset = located.bounds(end, read)
        return ColumnRead(columns, next_offset, await self._gap(located, offset, first))

    async def _locate(
        self,
        name: StreamName,
        shard: int,
        *,
        offset: int,
        end: int,
        bytes_max: int,
        stream_id: LogId | None,
    ) -> _Located:
        stream = await self._executor.stream(name, stream_id)
        locate = partial(self._locate_in, shard, offset, end, bytes_max, stream_id)
        return await self._executor.run(stream, locate, stream_id)

    async def _locate_in(  # noqa: PLR0917 - the last one is added by `run`
        self,
        index: int,
        offset: int,
        end: int,
        bytes_max: int,
        stream_id: LogId | None,
        stream: Stream,
    ) -> _Located:
        stream = await self._executor.refresh_for_shard(stream, index, stream_id)
        shard = stream.shard(index)
        log = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        hot_range = await self._executor.with_repair(
            log, partial(self._entries, log, offset, end, bytes_max)
        )
        start, archived = await self._in_archive(
            stream, shard=shard, offset=offset, end=end, bytes_max=bytes_max, hot_range=hot_range
        )
        if archived is None:
            _check_within(offset, start, hot_range.next)
        return _Located(shard, start, hot_range, archived)

    async def _page(self, located: _Located, offset: int, end: int, bytes_max: int) -> ArrowPage:
        if located.archived is None:
            parts = await self._parts(located.hot_range, offset, end, bytes_max)
        else:
            parts = located.archived_before(end)
        read = (parts[0].first, parts[-1].next) if parts else None
        first, next_offset = located.bounds(end, read)
        return ArrowPage(
            encoded=await asyncio.to_thread(_encode, parts),
            records=sum(map(len, parts)),
            next_offset=next_offset,
            start=located.start,
            tip=located.tip,
            tier=located.tier,
            ended=not located.shard.is_open and next_offset == located.tip,
            gap=await self._gap(located, offset, first),
        )

    async def _gap(self, located: _Located, offset: int, first: int) -> Gap | None:
        return await self._gap_reasons.resolve(located.shard.log_id, located.gap(offset, first))

    async def _entries(self, log: LogAddress, offset: int, end: int, bytes_max: int) -> EntryRange:
        """Read the hot store's entries from an offset up to a hole, in bounded calls.

        Raises LogNotReady.
        """
        calls = partial(
            self._ranges.read, log, end=end, bytes_max=min(bytes_max, limits.RANGE_BYTES_MAX)
        )
        first_range = page = await calls(offset)
        entries = [*first_range.entries]
        while page.entries and page.go_on < end and _size(entries) < bytes_max:
            edge = page.go_on
            page = await calls(edge)
            if page.entries and page.entries[0].first > edge:
                break
            entries += page.entries
        return msgspec.structs.replace(first_range, next=page.next, entries=entries)

    async def _in_archive(
        self,
        stream: Stream,
        *,
        shard: Shard,
        offset: int,
        end: int,
        bytes_max: int,
        hot_range: EntryRange,
    ) -> tuple[int, Archived | None]:
        """Return the oldest readable offset, and what the archive has in place of the hot store."""
        if self._archive is None:
            return hot_range.start, None
        first = max(offset, hot_range.entries[0].first) if hot_range.entries else None
        request = ReadRequest("offset", offset, end - offset, bytes_max)
        hot = Hot(hot_range.start, hot_range.next, offset, first)
        decision = await self._archive.decide(stream, shard, request, hot)
        return decision.start, decision.archived

    async def _parts(
        self, hot_range: EntryRange, offset: int, end: int, bytes_max: int
    ) -> "list[RowGroupSlice]":
        with _reporting_damage():
            part = await asyncio.to_thread(_part, hot_range.entries, offset, end, bytes_max)
        return [part] if part else []


@contextmanager
def _reporting_damage() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise StorageUnavailable(f"The log contains an unreadable entry: {error}.") from None


def _hot_columns(entries: Sequence[LogEntry], first: int, end: int) -> RecordColumns:
    with _reporting_damage():
        return columns_of(entries, first, end)


def _archived_columns(parts: "Sequence[RowGroupSlice]") -> RecordColumns:
    return RecordColumns.joined([part.columns() for part in parts]) if parts else NO_RECORDS


def _part(
    entries: Sequence[LogEntry], first: int, end: int, bytes_max: int
) -> "RowGroupSlice | None":
    from storage.parquet.arrow_ipc import part_of

    return part_of(entries, first, end, bytes_max)


def _encode(parts: "Sequence[RowGroupSlice]") -> bytes:
    from storage.parquet.arrow_ipc import encode_parts

    return encode_parts(parts)


def _size(entries: Sequence[LogEntry]) -> int:
    return sum(entry.size_bytes for entry in entries)


def _check(offset: int, end: int, bytes_max: int) -> None:
    if not 0 <= offset < end <= limits.OFFSET_MAX:
        raise ValidationFailed.at(
            "/end", "'offset' must be at least 0 and 'end' greater than 'offset'", "out_of_range"
        )
    if not 1 <= bytes_max <= limits.TABLE_BYTES_MAX:
        raise ValidationFailed.at(
            "/bytes_max", f"must be 1 to {limits.TABLE_BYTES_MAX}", "out_of_range"
        )


def _check_within(offset: int, start: int, next_offset: int) -> None:
    if offset < start:
        raise OffsetExpired(
            f"The shard's oldest offset is {start}.", earliest_offset=start, next_offset=next_offset
        )
    if offset > next_offset:
        raise OffsetOutOfRange(
            f"The shard's next offset is {next_offset}.", next_offset=next_offset
        )
