"""Schema of archived records, and conversions between log entries, Arrow and records.

    offset               int64               its offset in the log
    ts                   timestamp[us, UTC]  its arrival, in whole milliseconds
    event_ts             timestamp[us, UTC]? the producer's own time
    key                  string?             null without a key
    hash_hi, hash_lo     int64?              MD5 of the key, its position on the ring: two signed halves,
                                             big-endian
    data                 binary
    headers              list<struct<k, t, v>>?   name, type (empty outside SQS) and value; null without headers
    flags                int32               0: none is defined yet
    log_epoch            int32               of the log, when the record was archived: see `Extent`

Records without headers and event times never become Python objects: a batch's bodies are joined, and its
ends and keys become Arrow's.
"""

import hashlib
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

from storage.domain.log.entry import LogEntry
from storage.domain.log.record_batch import BatchColumns, Headers, decode_columns
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.record_columns import RecordColumns
from storage.domain.streams.stream import LogRecord

_TIME = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct(
    [
        pa.field("k", pa.string(), nullable=False),
        pa.field("t", pa.string(), nullable=False),
        pa.field("v", pa.binary(), nullable=False),
    ]
)
_HEADERS = pa.list_(pa.field("element", _HEADER, nullable=False))

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("ts", _TIME, nullable=False),
        pa.field("event_ts", _TIME),
        pa.field("key", pa.string()),
        pa.field("hash_hi", pa.int64()),
        pa.field("hash_lo", pa.int64()),
        pa.field("data", pa.binary(), nullable=False),
        pa.field("headers", _HEADERS),
        pa.field("flags", pa.int32(), nullable=False),
        pa.field("log_epoch", pa.int32(), nullable=False),
    ]
)
"""The schema of every file, field by field."""

RECORD_FIELDS = ["offset", "ts", "event_ts", "key", "data", "headers"]
"""Fields that make up a `LogRecord`."""

RECORD_SCHEMA = pa.schema([SCHEMA.field(name) for name in RECORD_FIELDS])
"""Schema that readers get: a part of `SCHEMA`."""

US_PER_MS = 1_000
_HALVES = struct.Struct(">qq")
_KEYS_REMEMBERED_MAX = 16_384  # as in `storage.domain.streams.stream`: repeated keys are looked up


def batch_of(entries: Iterable[LogEntry], first: int, end: int, log_epoch: int) -> pa.RecordBatch:
    """Convert the records of these entries with offsets in [first, end) to `SCHEMA`.

    The entries' bodies together are below 2 GiB. Raises ValueError for an unreadable batch.
    """
    gathered = _Gathered(entries)
    return gathered.within(first, end, gathered.batch(log_epoch))


def record_batch_of(entries: Iterable[LogEntry], first: int, end: int) -> pa.RecordBatch:
    """Convert the records of these entries with offsets in [first, end) to `RECORD_SCHEMA`.

    Raises ValueError for an unreadable batch.
    """
    gathered = _Gathered(entries)
    columns = [gathered.column(name) for name in RECORD_FIELDS]
    return gathered.within(first, end, pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA))


class _Gathered:
    """Concatenated columns of several entries.

    Columns that most logs lack are created only when they occur.
    """

    def __init__(self, entries: Iterable[LogEntry]) -> None:
        self._offsets = array("q")
        self._times = array("q")
        self._bodies: list[bytes] = []
        self._ends = array("i", [0])
        self._keys: list[str] | None = None
        self._headers: list[Headers] | None = None
        self._event_times: list[int | None] | None = None
        for entry in entries:
            self._add(entry)

    def _add(self, entry: LogEntry) -> None:
        offset = entry.first
        for encoded in entry.batches:
            batch = decode_columns(encoded)
            before, count = len(self._offsets), len(batch.ends)
            self._offsets.extend(range(offset, offset + count))
            self._add_bodies(batch)
            self._keys = _joined(self._keys, batch.keys, before, count, "")
            self._headers = _joined(self._headers, batch.headers, before, count, ())
            self._event_times = _joined(self._event_times, batch.event_times, before, count, None)
            offset += count
        self._times.extend(
            array("q", [entry.arrival_ms * US_PER_MS]) * (len(self._offsets) - len(self._times))
        )

    def _add_bodies(self, batch: BatchColumns) -> None:
        base = self._ends[-1]
        self._bodies.append(batch.data)
        self._ends.extend([base + end for end in batch.ends] if base else batch.ends)

    def within(self, first: int, end: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with offsets in [first, end)."""
        low, high = (bisect_left(self._offsets, edge) for edge in (first, end))
        return batch.slice(low, high - low)

    def batch(self, log_epoch: int) -> pa.RecordBatch:
        count = len(self._offsets)
        columns = {name: self.column(name) for name in RECORD_FIELDS}
        columns["hash_hi"], columns["hash_lo"] = _hashes_of(columns["key"])
        columns["flags"] = pa.repeat(pa.scalar(0, pa.int32()), count)
        columns["log_epoch"] = pa.repeat(pa.scalar(log_epoch, pa.int32()), count)
        return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def column(self, name: str) -> pa.Array:
        """Return one of RECORD_FIELDS."""
        count = len(self._offsets)
        match name:
            case "offset":
                return _from_buffer(pa.int64(), count, self._offsets)
            case "ts":
                return _from_buffer(_TIME, count, self._times)
            case "event_ts":
                return _event_times_of(self._event_times, count)
            case "key":
                return _keys_of(self._keys, count)
            case "headers":
                return _headers_of(self._headers, count)
            case _:
                buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(b"".join(self._bodies))]
                return pa.Array.from_buffers(pa.binary(), count, buffers)


def _joined(
    column: list[Any] | None, addition: Sequence[Any] | None, before: int, count: int, absent: Any
) -> list[Any] | None:
    """Append the column of the next batch; either may be missing as a whole."""
    if addition is None and column is None:
        return None
    if column is None:
        column = [absent] * before
    column += [absent] * count if addition is None else addition
    return column


def _from_buffer(kind: pa.DataType, count: int, values: "array[int]") -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(values)])


def _keys_of(keys: list[str] | None, count: int) -> pa.Array:
    if keys is None:
        return pa.nulls(count, pa.string())
    if "" in keys:
        return pa.array([key or None for key in keys], pa.string())
    return pa.array(keys, pa.string())


def _hashes_of(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return both halves of each key's hash; repeated keys are hashed once."""
    if keys.null_count == len(keys):
        nulls = pa.nulls(len(keys), pa.int64())
        return nulls, nulls
    encoded = keys.dictionary_encode()
    halves = [_halves(key) for key in encoded.dictionary.to_pylist()]
    high = pa.array([high for high, _ in halves], pa.int64())
    low = pa.array([low for _, low in halves], pa.int64())
    return high.take(encoded.indices), low.take(encoded.indices)


@lru_cache(_KEYS_REMEMBERED_MAX)
def _halves(key: str) -> tuple[int, int]:
    high, low = _HALVES.unpack(hashlib.md5(key.encode(), usedforsecurity=False).digest())
    return high, low


def _event_times_of(times: list[int | None] | None, count: int) -> pa.Array:
    if times is None:
        return pa.nulls(count, _TIME)
    us = [None if time is None else time * US_PER_MS for time in times]
    return pa.array(us, pa.int64()).cast(_TIME)


def _headers_of(headers: list[Headers] | None, count: int) -> pa.Array:
    if headers is None:
        return pa.nulls(count, _HEADERS)
    return pa.array([entry or None for entry in headers], _HEADERS)


def records_of(batch: pa.RecordBatch) -> list[LogRecord]:
    """Convert a batch with the fields of RECORD_FIELDS to records.

    Keys may be dictionary-encoded.
    """
    return columns_of_batch(batch).records()


def columns_of_batch(batch: pa.RecordBatch) -> RecordColumns:
    """Convert a batch with the fields of RECORD_FIELDS to columns.

    Keys may be dictionary-encoded.
    """
    content = Columns(
        _bytes_in(batch.column("data")),
        _keys_in(batch.column("key")),
        _headers_in(batch.column("headers")),
        _event_times_in(batch.column("event_ts")),
    )
    arrivals = [us // US_PER_MS for us in _numbers_in(batch.column("ts"))]
    return RecordColumns(_numbers_in(batch.column("offset")), arrivals, content)


def _numbers_in(column: pa.Array) -> list[int]:
    """Return the integers of a 64-bit column without nulls."""
    values: memoryview = memoryview(column.buffers()[1]).cast("B").cast("q")
    return values[column.offset : column.offset + len(column)].tolist()


def _bytes_in(column: pa.Array) -> list[bytes]:
    """Return the values of a binary column without nulls."""
    _, ends, data = column.buffers()
    edges = (
        memoryview(ends)
        .cast("B")
        .cast("i")[column.offset : column.offset + len(column) + 1]
        .tolist()
    )
    if data is None:
        return [b""] * len(column)
    base = edges[0]
    content = data[base : edges[-1]].to_pybytes()
    return [content[low - base : high - base] for low, high in pairwise(edges)]


def _keys_in(column: pa.Array) -> Sequence[str]:
    if column.null_count == len(column):
        return ()
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    if len(column.dictionary) > len(column):
        column = column.dictionary.take(column.indices).dictionary_encode()
    dictionary = column.dictionary.to_pylist()
    # Without `pa.array` or `pa.scalar`, which load pandas where it is installed: a quarter of a second of a read.
    return ["" if nth is None else dictionary[nth] for nth in column.indices.to_pylist()]


def _headers_in(column: pa.Array) -> Sequence[Headers]:
    if column.null_count == len(column):
        return ()
    return [*map(_headers_from, column.to_pylist())]


def _headers_from(headers: list[dict[str, Any]] | None) -> Headers:
    return tuple((header["k"], header["t"], header["v"]) for header in headers or ())


def _event_times_in(column: pa.Array) -> Sequence[int | None]:
    if column.null_count == len(column):
        return ()
    times_us = column.cast(pa.int64()).to_pylist()
    return [None if us is None else us // US_PER_MS for us in times_us]
