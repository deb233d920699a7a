"""Batch v1: encoding of records in one field of a log entry.

MessagePack, an array, written column by column:

    [ version=1, data, ends, keys, headers, event_times ]

    data         bytes        the records' bodies, one after another
    ends         [int]        end of each body in data
    keys         [str]|nil    partition key of each record; nil when no record has one
    headers      [[[name, type, value]]]|nil    a header's type is empty outside SQS
    event_times  [int|nil]|nil    milliseconds given by the producer

New columns are added at the end; a reader ignores columns it does not know and takes a missing one
as nil. A name that starts with ':' is reserved for Millstream (`RESERVED`).
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

import msgspec

VERSION = 1

T = TypeVar("T")

CONTENT_TYPE = ":content_type"
GROUP = ":group"
DEDUP_ID = ":dedup_id"
MESSAGE_ID = ":message_id"
DEAD_LETTER_SOURCE = ":dead_letter_source"
DEAD_LETTER = ":dead_letter"
SOURCE_STREAM = ":source_stream"
SENT_AT = ":sent_at"
SUBJECT = ":subject"
RESERVED = ":"

Header = tuple[str, str, bytes]
"""(name, type, value). The type is empty outside SQS, where it is String, Number or Binary, with an
optional label."""

Headers = tuple[Header, ...]


class Record(msgspec.Struct, frozen=True, gc=False):
    """Record: its body, partition key, headers and the producer's event time, if given.

    `hash_key` overrides the hash key derived from `key` when choosing the shard. It is not stored with
    the record.
    """

    data: bytes
    key: str = ""
    headers: Headers = ()
    event_time_ms: int | None = None
    hash_key: int | None = None

    @property
    def size_bytes(self) -> int:
        """Size that counts against limits: body, key, and each header's name, type and value."""
        return len(self.data) + len(self.key.encode()) + headers_size_bytes(self.headers)


class BatchColumns(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A batch v1 as stored in its field; see the module's docstring."""

    version: int
    data: bytes
    ends: list[int]
    keys: list[str] | None = None
    headers: list[Headers] | None = None
    event_times: list[int | None] | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BatchColumns)


def subject_of(headers: Headers) -> str:
    """Return the subject in a record's headers; empty if it has none."""
    for name, _, value in headers:
        if name == SUBJECT:
            return value.decode()
    return ""


def headers_size_bytes(headers: Headers) -> int:
    """Return the UTF-8 bytes of the names and types plus the bytes of the values."""
    size = 0
    for name, kind, value in headers:
        size += (len(name) if name.isascii() else len(name.encode())) + len(kind) + len(value)
    return size


def encode_batch(records: Sequence[Record]) -> bytes:
    """Encode one or more records as a batch v1."""
    if len(records) == 1:
        return encode_one(records[0])
    return _encoder.encode(
        BatchColumns(
            VERSION,
            b"".join([record.data for record in records]),
            list(accumulate([len(record.data) for record in records])),
            _column([record.key for record in records]),
            _column([record.headers for record in records]),
            _times([record.event_time_ms for record in records]),
        )
    )


def encode_one(record: Record) -> bytes:
    """Encode a record as a batch of one, the form of every queue message."""
    return _encoder.encode(
        BatchColumns(
            VERSION,
            record.data,
            [len(record.data)],
            [record.key] if record.key else None,
            [record.headers] if record.headers else None,
            None if record.event_time_ms is None else [record.event_time_ms],
        )
    )


def _column(values: list[T]) -> list[T] | None:
    return values if any(values) else None


def _times(values: list[int | None]) -> list[int | None] | None:
    return None if all(value is None for value in values) else values


def decode_columns(encoded: bytes) -> BatchColumns:
    """Decode the columns of one batch.

    Raises ValueError when the bytes are not a batch this version reads.
    """
    batch = _decoder.decode(encoded)
    if batch.version != VERSION:
        raise ValueError(f"unsupported batch version {batch.version}")
    return batch


def decode_batch(encoded: bytes) -> list[Record]:
    """Decode the records of one batch.

    Raises ValueError when the bytes are not a batch this version reads.
    """
    batch = decode_columns(encoded)
    starts = [0, *batch.ends[:-1]]
    bodies = [batch.data[start:end] for start, end in zip(starts, batch.ends, strict=True)]
    if batch.keys is None and batch.headers is None and batch.event_times is None:
        return [Record(body) for body in bodies]
    count = len(bodies)
    return [
        Record(*row)
        for row in zip(
            bodies,
            batch.keys or [""] * count,
            batch.headers or [()] * count,
            batch.event_times or [None] * count,
            strict=True,
        )
    ]


def decode_one(encoded: bytes) -> Record:
    """Decode the only record of a batch of one, the form of every queue message."""
    batch = decode_columns(encoded)
    return Record(
        batch.data,
        batch.keys[0] if batch.keys else "",
        batch.headers[0] if batch.headers else (),
        batch.event_times[0] if batch.event_times else None,
    )


def decode_batches(encoded: Iterable[bytes]) -> list[Record]:
    """Decode the records of an entry.

    Each writer whose append had a condition has a separate field.
    """
    return [record for part in encoded for record in decode_batch(part)]
