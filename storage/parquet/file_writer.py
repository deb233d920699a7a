"""Writer of one file: record batches in, row groups out, and a summary for the manifest."""

import hashlib
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.domain import limits
from storage.domain.archive import FileSummary
from storage.domain.names import LogId
from storage.parquet.content_digest import ContentDigest
from storage.parquet.footer import (
    FACTS_KEY,
    VERSION,
    FileFacts,
    RowGroupMetadata,
    encode_facts,
    footer_in,
)
from storage.parquet.object_store import Root
from storage.parquet.record_schema import SCHEMA, US_PER_MS
from storage.parquet.store_errors import Sink, translated

WRITER = "millstream 1"

_ZSTD_LEVEL = 3
_DICTIONARIES = [
    *("key", "flags", "log_epoch"),
    *(f"headers.list.element.{name}" for name in "ktv"),
]
_DELTAS = {"offset": "DELTA_BINARY_PACKED", "ts": "DELTA_BINARY_PACKED"}
_FALSE_POSITIVES = 0.01  # rate of a Bloom filter: some 10 bits for each key


class FileOf(msgspec.Struct, frozen=True):
    """Shard whose records a file has, and the attempt that is in its name."""

    namespace: str
    stream_id: LogId
    shard: int
    attempt: str


class WrittenFile(FileSummary, frozen=True, kw_only=True):
    """A complete file on disk: an `ArchivedFile` without the ids that its writer knows.

    `content` is the digest of its records (`storage.parquet.content_digest`), in hexadecimal.
    """

    path: str
    digest: bytes
    content: str


class FileWriter:
    """Incremental writer of a file; its path does not exist before `finish` returns.

        with FileWriter(root, path, whose) as file:
            file.write(batch, log_bytes)          # any number of times, by offset
            written = file.finish()

    Leaving the block without `finish` leaves no file. Holds at most about two row groups in memory. Raises the errors of a
    root, and ValueError for records whose offsets do not rise.
    """

    def __init__(
        self, root: Root, path: str, of: FileOf, group_bytes: int = limits.ARCHIVE_ROW_GROUP_BYTES
    ) -> None:
        self._root = root
        self._path = path
        self._of = of
        self._group_bytes = group_bytes
        self._open = ExitStack()
        self._sink: _Counting | None = None
        self._parquet: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._groups: list[RowGroupMetadata] = []
        self._content = ContentDigest()
        self._log_bytes = 0
        self._next = 0

    def __enter__(self) -> Self:
        self._sink = _Counting(self._open.enter_context(self._root.writing(self._path)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sink is not None:
            self._sink.discard()
        if self._parquet is not None:
            self._parquet.close()
        abandoned = _Abandoned()
        with suppress(_Abandoned):
            self._open.__exit__(_Abandoned, abandoned, None)

    def write(self, batch: pa.RecordBatch, log_bytes: int) -> None:
        """Add records in the form of `SCHEMA`, which count `log_bytes` against a retention."""
        if batch.num_rows == 0:
            return
        self._check_rises(batch)
        self._log_bytes += log_bytes
        self._content.add(batch)
        rows = max(1, self._group_bytes * batch.num_rows // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            self._add(batch.slice(start, rows))

    def _check_rises(self, batch: pa.RecordBatch) -> None:
        offsets = batch.column("offset")
        steps = pc.min(pc.pairwise_diff(offsets)).as_py()
        if offsets[0].as_py() < self._next or (steps is not None and steps < 1):
            raise ValueError("offsets within a file must increase")
        self._next = offsets[-1].as_py() + 1

    def _add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= self._group_bytes:
            self._end_group()

    def _end_group(self) -> None:
        table = pa.Table.from_batches(self._waiting, SCHEMA)
        self._waiting, self._waiting_bytes = [], 0
        with translated(self._path):
            parquet = self._parquet or self._begin(table)
            start = self._out.begin_part()
            parquet.write_table(table, row_group_size=table.num_rows)
        self._groups.append(_row_group(table, start, self._out))

    @property
    def _out(self) -> "_Counting":
        if self._sink is None:
            raise RuntimeError("a file can only be written inside its with block")
        return self._sink

    def _begin(self, table: pa.Table) -> pq.ParquetWriter:
        """Create the Parquet writer; the first row group determines the size of the Bloom filter."""
        keys = pc.count_distinct(table.column("key")).as_py()
        self._parquet = pq.ParquetWriter(
            self._out,
            SCHEMA,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            use_dictionary=_DICTIONARIES,
            column_encoding=_DELTAS,
            write_page_index=True,
            write_page_checksum=True,
            bloom_filter_options={"key": {"ndv": keys, "fpp": _FALSE_POSITIVES}} if keys else None,
        )
        return self._parquet

    def finish(self) -> WrittenFile:
        """Finish the file and sync it to disk under its path.

        Raises ValueError when it has no records.
        """
        if self._waiting:
            self._end_group()
        if self._parquet is None:
            raise ValueError("a file must have at least one record")
        facts = self._facts()
        with translated(self._path):
            self._parquet.add_key_value_metadata({FACTS_KEY: encode_facts(facts)})
            self._out.begin_end()
            self._parquet.close()
        self._open.close()
        return _written(self._path, facts, self._out)

    def _facts(self) -> FileFacts:
        first, last = self._groups[0], self._groups[-1]
        return FileFacts(
            version=VERSION,
            writer=WRITER,
            namespace=self._of.namespace,
            stream_id=self._of.stream_id,
            shard=self._of.shard,
            attempt=self._of.attempt,
            first_offset=first.first_offset,
            next_offset=last.next_offset,
            records=sum(group.records for group in self._groups),
            log_bytes=self._log_bytes,
            first_arrival_ms=first.first_arrival_ms,
            last_arrival_ms=last.last_arrival_ms,
            content=self._content.hexdigest(),
            groups=tuple(self._groups),
        )


class _Abandoned(Exception):
    """The block was left without `finish`."""


def _row_group(table: pa.Table, start: int, sink: "_Counting") -> RowGroupMetadata:
    offsets, times = table.column("offset"), table.column("ts").cast(pa.int64())
    return RowGroupMetadata(
        start,
        sink.count - start,
        sink.digest(),
        table.num_rows,
        offsets[0].as_py(),
        offsets[-1].as_py() + 1,
        times[0].as_py() // US_PER_MS,
        times[-1].as_py() // US_PER_MS,
    )


def _written(path: str, facts: FileFacts, sink: "_Counting") -> WrittenFile:
    return WrittenFile(
        path=path,
        first_offset=facts.first_offset,
        next_offset=facts.next_offset,
        records=facts.records,
        log_bytes=facts.log_bytes,
        file_bytes=sink.count,
        first_arrival_ms=facts.first_arrival_ms,
        last_arrival_ms=facts.last_arrival_ms,
        digest=hashlib.sha256(sink.footer()).digest(),
        content=facts.content,
    )


class _Counting:
    """Sink that passes bytes on, counts them, and computes the digest of the current part."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink: Sink | None = sink
        self._part = hashlib.sha256()
        self._end: list[bytes] | None = None
        self.count = 0

    def write(self, data: bytes) -> int:
        if self._sink is not None:
            self._sink.write(data)
        if self._end is not None:
            self._end.append(bytes(data))
        self._part.update(data)
        self.count += len(data)
        return len(data)

    def tell(self) -> int:
        return self.count

    def flush(self) -> None:
        """Do nothing: all bytes are passed on already."""

    def close(self) -> None:
        """Do nothing: the sink's opener closes it."""

    def begin_part(self) -> int:
        """Restart the digest; return the position."""
        self._part = hashlib.sha256()
        return self.count

    def digest(self) -> str:
        return self._part.hexdigest()

    def begin_end(self) -> None:
        """Start recording the bytes that end with the footer."""
        self._end = []

    def footer(self) -> bytes:
        return footer_in(b"".join(self._end or ()))

    def discard(self) -> None:
        """Stop passing bytes on."""
        self._sink = None
