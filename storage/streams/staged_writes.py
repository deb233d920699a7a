"""Two-phase writes for writers that run in many tasks and may retry: stage, then commit.

    stage     a task's records become a file that no reader sees
    commit    (writer id, batch id) ──▶ the files that the batch consists of: the first commit decides, permanently
              then their records are appended, each once

A commit of the same batch again, after a crash for example, finishes what was decided, and the files that it staged
itself are discarded. The batch is a monotonic producer: a record's sequence is its file's number and its position in
it, so it is the same whichever process appends it.
"""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

import attrs
from msgspec.structs import replace

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    ArchiveOff,
    ProducerFenced,
    StreamNotFound,
    StreamReadOnly,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName, check_name
from storage.domain.streams.stream import Stream
from storage.parquet.object_store import Root
from storage.parquet.paths import STAGED_FOLDER
from storage.postgres.repositories.staged_writes import Write, WriteRows
from storage.streams.append_rules import check_records, timed
from storage.streams.engine import Streams

_INDEX_BITS = (
    24  # of a sequence: a file has fewer records than that, and a batch fewer than 2^29 files
)
_ID_BYTES = 16


@attrs.define(eq=False, slots=False, kw_only=True)
class StagedWrites:
    """Two-phase staged writes.

    Every verb raises StreamNotFound, StreamReadOnly, and ArchiveOff if there is no store for staged records.
    """

    _rows: WriteRows
    _root_or_none: Root | None = attrs.field(alias="root")
    _catalog: Catalog
    _streams: Streams
    _clock: Clock
    _isolation: Isolation

    async def stage(self, name: StreamName, encoded: bytes) -> str:
        """Stage the records of an Arrow stream; return their id.

        Raises ValidationFailed, MessageTooLarge.
        """
        stream = await self._writable(name)
        await asyncio.to_thread(self._check, stream, encoded)
        staged = secrets.token_hex(_ID_BYTES)
        await asyncio.to_thread(self._put, _path(stream, staged), encoded)
        return staged

    def _check(self, stream: Stream, encoded: bytes) -> None:
        count = 0
        for records in _records(encoded):
            check_records(stream, records)
            timed(stream.spec, records, self._clock.now_ms)
            count += len(records)
        if count == 0:
            raise ValidationFailed.at("/data", "Stage at least one record", "too_few")
        if count >= 1 << _INDEX_BITS:
            raise ValidationFailed.at(
                "/data", f"At most {(1 << _INDEX_BITS) - 1} records", "too_many"
            )

    def _put(self, path: str, encoded: bytes) -> None:
        with self._root.writing(path) as file:
            file.write(encoded)

    async def discard(self, name: StreamName, staged: str) -> None:
        """Delete staged files, unless it was decided to append them."""
        stream = await self._writable(name)
        if _is_id(staged) and staged not in await self._rows.staged_in_use():
            await asyncio.to_thread(self._root.delete, _path(stream, staged))

    async def commit(
        self, name: StreamName, writer_id: str, batch_id: int, staged: Sequence[str]
    ) -> Write:
        """Append the staged records as this batch of this writer, or those of its first commit.

        Works for a limited time: call again until the result is `done`. Raises ValidationFailed for staged ids that do not
        exist.
        """
        stream = await self._writable(name)
        check_name(writer_id)
        if not 0 <= batch_id <= limits.OFFSET_MAX:
            raise ValidationFailed.at(
                "/batch_id", "A batch number must be 0 to 2^53 - 1", "out_of_range"
            )
        if len(staged) > limits.STAGED_PARTS_MAX:
            raise ValidationFailed.at("/staged", f"At most {limits.STAGED_PARTS_MAX}", "too_many")
        write = await self._rows.find(stream.stream_id, writer_id, batch_id)
        if write is None:
            await asyncio.to_thread(self._check_there, stream, staged)
            now_ms = self._clock.now_ms()
            write = await self._rows.decide(stream.stream_id, writer_id, batch_id, staged, now_ms)
        write = await self._append_some(stream, write)
        if write.done:
            await self._collect(stream, {*write.staged, *filter(_is_id, staged)})
        return write

    def _check_there(self, stream: Stream, staged: Sequence[str]) -> None:
        if len(set(staged)) != len(staged):
            raise ValidationFailed.at("/staged", "An entry is duplicated", "conflict")
        for place, staged_id in enumerate(staged):
            if not _is_id(staged_id) or self._root.size(_path(stream, staged_id)) is None:
                raise ValidationFailed.at(
                    f"/staged/{place}", "Nothing is staged under this entry", "not_found"
                )

    async def _append_some(self, stream: Stream, write: Write) -> Write:
        """Append parts for a limited time; return the progress of the write."""
        until = asyncio.get_running_loop().time() + limits.COMMIT_CALL_MS / limits.SECOND_MS
        while write.parts < len(write.staged) and asyncio.get_running_loop().time() < until:
            try:
                count = await self._append_part(stream, write)
            except ProducerFenced:  # another call has finished it
                return await self._as_is(write)
            write = replace(write, parts=write.parts + 1, records=write.records + count)
            await self._rows.advance(write)
        if write.parts == len(write.staged) and not write.done:
            await self._streams.retire_writers(stream.name, [_producer_of(write)])
            write = replace(write, done=True)
            await self._rows.advance(write)
        return write

    async def _as_is(self, write: Write) -> Write:
        current = await self._rows.find(write.stream_id, write.writer_id, write.batch_id)
        return write if current is None else current

    async def _append_part(self, stream: Stream, write: Write) -> int:
        """Append one file's records; return their number."""
        path = _path(stream, write.staged[write.parts])
        encoded = await asyncio.to_thread(self._read, path)
        base, count = write.parts << _INDEX_BITS, 0
        for records in await asyncio.to_thread(_read_all, encoded):
            sequences = range(base + count, base + count + len(records))
            await self._streams.append_idempotent(
                stream.name, _producer_of(write), sequences, records
            )
            count += len(records)
        return count

    def _read(self, path: str) -> bytes:
        size = self._root.size(path)
        return self._root.read(path, 0, size or 1)

    async def _collect(self, stream: Stream, staged: set[str]) -> None:
        """Delete the files staged for this batch; those that this misses are collected later."""
        for staged_id in staged - await self._rows.staged_in_use():
            await asyncio.to_thread(self._root.delete, _path(stream, staged_id))

    async def finish(self) -> int:
        """Continue batches decided a while ago whose writers do not; return their number."""
        if self._root_or_none is None:
            return 0
        before_ms = self._clock.now_ms() - limits.COMMIT_ABANDONED_MS
        open_writes = await self._rows.open(before_ms, limits.PAGE_ITEMS_DEFAULT)
        for name, write in open_writes:
            await self._isolation.visit(
                "writes", f"streams/{name}", partial(self._continue, name, write), None
            )
        return len(open_writes)

    async def _continue(self, name: StreamName, write: Write) -> None:
        with suppress(StreamNotFound):  # deleted in the meantime
            await self._append_some(await self._catalog.stream(name), write)

    async def delete_old(self) -> int:
        """Delete the records of batches that were done long ago; return their number."""
        return await self._rows.delete_finished(self._clock.now_ms() - limits.WRITE_RETENTION_MS)

    async def _writable(self, name: StreamName) -> Stream:
        stream = await self._catalog.stream(name)
        if stream.is_view or stream.spec.topic is not None:
            raise StreamReadOnly
        return stream

    @property
    def _root(self) -> Root:
        if self._root_or_none is None:
            raise ArchiveOff
        return self._root_or_none


def _records(encoded: bytes) -> Iterator[list[Record]]:
    from storage.parquet.staged_file import read_staged  # pyarrow, which most processes never need

    return read_staged(encoded)


def _read_all(encoded: bytes) -> list[list[Record]]:
    return [*_records(encoded)]


def _path(stream: Stream, staged: str) -> str:
    return f"{STAGED_FOLDER}/{stream.name.namespace}/{stream.stream_id}/{staged}"


def _is_id(word: str) -> bool:
    return len(word) == 2 * _ID_BYTES and all(sign in "0123456789abcdef" for sign in word)


def _producer_of(write: Write) -> str:
    """Return a batch's producer id, which no other batch of the stream has.

    So no other batch appends in its place.
    """
    return f"write {write.writer_id} {write.batch_id}"
