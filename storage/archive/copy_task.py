"""Copy of log ranges into archive files: the work of one task, which may run anywhere.

The files are on disk when it ends, and are not referenced until they are committed. A task that dies leaves
files that are collected later.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack

import attrs
import msgspec

from storage.domain import limits
from storage.domain.archive import ArchivedFile, CopyResult, LogRange, Span, hour_of
from storage.domain.errors import MillstreamError, StorageUnavailable
from storage.domain.fault_points import fault
from storage.domain.log.address import LogAddress
from storage.domain.log.entry import LogEntry, log_bytes
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import EntryRange, LogRangeReader, LogStore
from storage.parquet.file_writer import FileOf, FileWriter, WrittenFile
from storage.parquet.object_store import Root
from storage.parquet.paths import file_path, new_attempt
from storage.parquet.record_schema import batch_of


@attrs.define(eq=False, slots=False)
class ArchiveCopyTask:
    """Copy task for ranges of logs, several concurrently."""

    _ranges: LogRangeReader
    _logs: LogStore
    _root: Root

    async def copy(self, ranges: Sequence[LogRange]) -> list[CopyResult]:
        """Copy each range; return the results in order.

        A range that fails has its failure as its result, and the others continue.
        """
        turns = asyncio.Semaphore(limits.ARCHIVE_COPY_CONCURRENCY_MAX)

        async def one(log: LogRange) -> CopyResult:
            async with turns:
                return await self._try_copy(log)

        return await asyncio.gather(*map(one, ranges))

    async def _try_copy(self, log_range: LogRange) -> CopyResult:
        try:
            return await self._copy(log_range)
        except MillstreamError as error:
            return CopyResult(log_range, failure=error.detail)
        except LogNotReady as problem:
            return CopyResult(log_range, failure=f"The log is unreadable: {problem}.")
        except ValueError as error:  # not a valid batch
            return CopyResult(log_range, failure=f"The log contains an unreadable entry: {error}.")
        except Exception as error:
            error.add_note(
                f"stream {log_range.stream or log_range.stream_id}, shard {log_range.shard},"
                f" offsets {log_range.first} to {log_range.next}"
            )
            raise

    async def _copy(self, log_range: LogRange) -> CopyResult:
        log = LogAddress(log_range.namespace, log_range.log_id, log_range.view)
        epoch = (await self._logs.extent(log)).log_epoch
        missing: list[Span] = []
        with _SegmentWriter(self._root, log_range, epoch) as files:
            async for part in self._parts(log, log_range):
                missing += part.missing
                await asyncio.to_thread(files.add, part)
            await asyncio.to_thread(files.finish)
        return CopyResult(log_range, tuple(files.finished), tuple(_joined(missing)))

    async def _parts(self, log: LogAddress, log_range: LogRange) -> AsyncGenerator["_LogChunk"]:
        """Yield the range in bounded parts; the next one is read while the last is written."""
        offset = log_range.first
        reading = self._read(log, offset, log_range.next)
        try:
            while offset < log_range.next:
                entry_range = await reading
                if entry_range.go_on <= offset:
                    raise StorageUnavailable(
                        f"The log ends at {entry_range.next}, before {log_range.next}."
                    )
                reading = self._read(log, entry_range.go_on, log_range.next)
                yield _LogChunk(offset, entry_range.go_on, entry_range.entries)
                offset = entry_range.go_on
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def _read(self, log: LogAddress, first: int, end: int) -> "asyncio.Task[EntryRange]":
        return asyncio.create_task(self._ranges.read(log, first, end))


class _LogChunk(msgspec.Struct, frozen=True):
    """The entries with offsets [first, next) of a log."""

    first: int
    next: int
    entries: Sequence[LogEntry]

    @property
    def missing(self) -> Iterator[Span]:
        """The offsets that no entry has."""
        edge = self.first
        for entry in self.entries:
            if entry.first > edge:
                yield edge, entry.first
            edge = max(edge, entry.next)
        if edge < self.next:
            yield edge, self.next


class _SegmentWriter:
    """Files of one range: a new one is started for each hour, and when one is full."""

    def __init__(self, root: Root, log_range: LogRange, epoch: int) -> None:
        self._root = root
        self._log_range = log_range
        self._epoch = epoch
        self._open = ExitStack()
        self._writer: FileWriter | None = None
        self._hour = -1
        self._bytes = 0
        self.finished: list[ArchivedFile] = []

    def __enter__(self) -> "_SegmentWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()  # an unfinished file does not become visible

    def add(self, part: _LogChunk) -> None:
        for hour, entries in _by_hour(part.entries):
            if hour != self._hour or self._bytes >= limits.ARCHIVE_FILE_BYTES:
                self.finish()
            writer = self._writer or self._begin(hour, max(part.first, entries[0].first))
            size = log_bytes(entries, part.first, part.next)
            writer.write(batch_of(entries, part.first, part.next, self._epoch), size)
            self._bytes += size

    def _begin(self, hour: int, first: int) -> FileWriter:
        whose, attempt = self._log_range, new_attempt()
        self._hour, self._bytes = hour, 0
        place = (whose.namespace, whose.stream_id, whose.shard)
        path = file_path(
            *place, arrival_ms=hour * limits.HOUR_MS, first=first, next_=whose.next, attempt=attempt
        )
        writer = FileWriter(self._root, path, FileOf(*place, attempt))
        self._writer = self._open.enter_context(writer)
        return writer

    def finish(self) -> None:
        if self._writer is not None:
            self.finished.append(archived(self._writer.finish(), self._log_range))
            self._writer = None
            fault("archive.file_written")


def archived(file: WrittenFile, whose: LogRange | ArchivedFile) -> ArchivedFile:
    """Return the manifest entry of a written file."""
    return ArchivedFile(
        file_id=secrets.token_hex(16),
        stream_id=whose.stream_id,
        shard=whose.shard,
        first_offset=file.first_offset,
        next_offset=file.next_offset,
        records=file.records,
        log_bytes=file.log_bytes,
        file_bytes=file.file_bytes,
        first_arrival_ms=file.first_arrival_ms,
        last_arrival_ms=file.last_arrival_ms,
        path=file.path,
        digest=file.digest,
    )


def _by_hour(entries: Sequence[LogEntry]) -> Iterator[tuple[int, list[LogEntry]]]:
    """Yield runs of entries that arrived in one hour."""
    run: list[LogEntry] = []
    for entry in entries:
        if run and hour_of(entry.arrival_ms) != hour_of(run[0].arrival_ms):
            yield hour_of(run[0].arrival_ms), run
            run = []
        run.append(entry)
    if run:
        yield hour_of(run[0].arrival_ms), run


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, with adjacent ones joined."""
    joined: list[Span] = []
    for first, last in spans:
        if joined and joined[-1][1] == first:
            first, _ = joined.pop()
        joined.append((first, last))
    return joined
