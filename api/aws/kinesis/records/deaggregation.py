"""Deaggregation of Kinesis Producer Library records on reading.

A stream with the tag `millstream:deaggregate` = `true` has it; without the tag records are returned as they were put. Those
of one aggregate share its sequence number: a consumer that continues after it has read all of them.

    F3 89 9A C2 ‖ protobuf ‖ MD5 of the protobuf

    message AggregatedRecord { repeated string partition_key_table = 1; repeated string explicit_hash_key_table = 2;
                               repeated Record records = 3; }
    message Record           { uint64 partition_key_index = 1; uint64 explicit_hash_key_index = 2; bytes data = 3;
                               repeated Tag tags = 4; }

https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md. Anything that is not exactly this is
an ordinary record, and is passed on unchanged.
"""

import hashlib
from collections.abc import Iterator

from storage.domain import limits
from storage.domain.streams.stream import StreamSpec

TAG = "millstream:deaggregate"
MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST_BYTES = 16
_VARINT_BYTES_MAX = 10
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
RECORDS_MAX = 10_000  # in one aggregate; a larger one is not unpacked

Part = tuple[str, bytes]
"""A record's partition key and data."""


def wants_parts(spec: StreamSpec) -> bool:
    """Return whether readers of the stream receive the records inside aggregates."""
    return spec.tags.get(TAG) == "true"


def parts_of(data: bytes) -> list[Part] | None:
    """Return the records of an aggregate; None when the bytes are not one."""
    if not data.startswith(MAGIC) or len(data) <= len(MAGIC) + _DIGEST_BYTES:
        return None
    message, digest = data[len(MAGIC) : -_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if hashlib.md5(message, usedforsecurity=False).digest() != digest:
        return None
    try:
        return _unpacked(message)
    except (ValueError, IndexError):
        return None


def _unpacked(message: bytes) -> list[Part]:
    keys: list[str] = []
    records: list[bytes] = []
    for field, value in _fields(message):
        if field == 1 and isinstance(value, bytes):
            keys.append(_key(value))
        elif field == 3 and isinstance(value, bytes):
            records.append(value)
        if len(records) > RECORDS_MAX:
            raise ValueError("too many records")
    return [_part(record, keys) for record in records]


def _key(value: bytes) -> str:
    key = value.decode()
    if not 1 <= len(key) <= limits.KEY_CHARACTERS_MAX:  # many records may share one key
        raise ValueError("no partition key")
    return key


def _part(record: bytes, keys: list[str]) -> Part:
    key: int | None = None
    data: bytes | None = None
    for field, value in _fields(record):
        if field == 1 and isinstance(value, int):
            key = value
        elif field == 3 and isinstance(value, bytes):
            data = value
    if key is None or data is None:
        raise ValueError("a required field is missing")
    return keys[key], data


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field. Raises ValueError for an invalid message."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("a kind of field that is not used")
        if position + size > end:
            raise ValueError("a field ends behind its message")
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return a number, and the position after it. Raises ValueError, IndexError."""
    number = 0
    for nth in range(_VARINT_BYTES_MAX):
        byte = message[position + nth]
        number |= (byte & 0x7F) << (7 * nth)
        if byte < 0x80:
            return number, position + nth + 1
    raise ValueError("a number without end")
