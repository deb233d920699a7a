"""Columnar form of records, as sent by a bulk producer, and its encoding as a batch.

    Columns ── packed() ──▶ PackedColumns ── encode_columns() ──▶ a batch v1 of one or more calls' records

Columns are a Python object for each body and each key. Packed, a call's records are a few objects, so that
those of all calls that wait for a flush fit into the processor's caches. The records are not decoded on
the way.
"""

from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from operator import add, attrgetter, itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import BatchTooLarge, ValidationFailed
from storage.domain.log.record_batch import VERSION, Headers, Record, headers_size_bytes

_encoder = msgspec.msgpack.Encoder()
_HEAD = b"\x96" + _encoder.encode(VERSION)  # an array of six, and its first item
_ABSENT = b"\xc0"  # a column that no record has
_NO_KEY = b"\xa0"  # the empty string
_NO_HEADERS = b"\x90"  # the empty array
_NO_TIME = b"\xc0"
_keys_decoder = msgspec.msgpack.Decoder(list[str])
_headers_decoder = msgspec.msgpack.Decoder(list[Headers])
_times_decoder = msgspec.msgpack.Decoder(list[int | None])
_KEY_BYTES_MAX = 4 * limits.KEY_CHARACTERS_MAX  # in UTF-8


class Columns(msgspec.Struct, frozen=True, gc=False):
    """Columns of equally many records; one that no record has a value in is empty."""

    data: Sequence[bytes]
    keys: Sequence[str] = ()
    headers: Sequence[Headers] = ()
    event_times_ms: Sequence[int | None] = ()

    def __len__(self) -> int:
        return len(self.data)

    def check(self) -> None:
        """Raise ValidationFailed or BatchTooLarge for columns that no call may append."""
        if not self.data:
            raise ValidationFailed.at("/data", "A batch must have at least one record", "too_few")
        if len(self.data) > limits.BATCH_RECORDS_MAX:
            raise BatchTooLarge(f"A call can append at most {limits.BATCH_RECORDS_MAX} records.")
        if self.keys and len(self.keys) != len(self.data):
            raise ValidationFailed.at("/keys", "Must have one key per record", "mismatch")
        self.check_keys()

    def check_keys(self) -> None:
        """Raise ValidationFailed for a key that no stream accepts."""
        longest = max(map(len, self.keys), default=0)
        if longest > limits.KEY_CHARACTERS_MAX:
            position = next(nth for nth, key in enumerate(self.keys) if len(key) == longest)
            detail = f"A key can have at most {limits.KEY_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"/keys/{position}", detail, "too_long")

    def larger_than(self, most: int) -> int | None:
        """Return the position of the first record larger than `bytes_max`; None if there is none.

        The columns must have passed `check`.
        """
        if not self.headers and max(map(len, self.data)) <= most - _KEY_BYTES_MAX:
            return None
        return next((nth for nth, size in enumerate(self.sizes()) if size > most), None)

    def sizes(self) -> list[int]:
        """Return the size of each record as it counts against limits, in bytes."""
        sizes = [*map(len, self.data)]
        if self.keys:
            plain = "".join(self.keys).isascii()
            of_keys = map(len, self.keys if plain else map(str.encode, self.keys))
            sizes = [*map(add, sizes, of_keys)]
        if self.headers:
            sizes = [*map(add, sizes, map(headers_size_bytes, self.headers))]
        return sizes

    def chosen(self, numbers: Sequence[int]) -> "Columns":
        """Return the records at these positions."""
        if len(numbers) == 1:
            [number] = numbers
            return self.between(number, number + 1)
        choose = itemgetter(*numbers)
        return Columns(
            choose(self.data),
            choose(self.keys) if self.keys else (),
            choose(self.headers) if self.headers else (),
            choose(self.event_times_ms) if self.event_times_ms else (),
        )

    def between(self, low: int, high: int) -> "Columns":
        """Return the records at positions [low, high)."""
        return Columns(
            self.data[low:high],
            self.keys[low:high],
            self.headers[low:high],
            self.event_times_ms[low:high],
        )

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Columns":
        """Return records as columns; hash keys are not among them."""
        columns: list[list[Any]] = [
            [record.key for record in records],
            [record.headers for record in records],
            [record.event_time_ms for record in records],
        ]
        data = [record.data for record in records]
        return cls(data, *(column if any(column) else () for column in columns))

    @classmethod
    def joined(cls, parts: Sequence["Columns"]) -> "Columns":
        """Return the records of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        data = [*chain.from_iterable(part.data for part in parts)]
        return cls(data, *[_joined(parts, *column) for column in _OPTIONAL])

    def records(self) -> list[Record]:
        """Return the columns as records."""
        count = len(self)
        return [
            *map(
                Record,
                self.data,
                self.keys or repeat("", count),
                self.headers or repeat((), count),
                self.event_times_ms or repeat(None, count),
            )
        ]

    def packed(self) -> "PackedColumns":
        """Return the columns packed into a few objects."""
        return PackedColumns(
            b"".join(self.data),
            [*map(len, self.data)],
            _items(self.keys) if self.keys else b"",
            _items(self.headers) if self.headers else b"",
            _items(self.event_times_ms) if self.event_times_ms else b"",
        )


def with_headers(columns: Columns, added: Sequence[Headers]) -> Columns:
    """Return the records with further headers behind their own."""
    if not added:
        return columns
    headers = [*map(add, columns.headers, added)] if columns.headers else added
    return replace(columns, headers=headers)


_OPTIONAL: Sequence[tuple[str, Any]] = (("keys", ""), ("headers", ()), ("event_times_ms", None))


def _joined(parts: Sequence[Columns], name: str, absent: Any) -> Sequence[Any]:
    """Join one column of several parts, some of which may lack it."""
    columns = [*map(attrgetter(name), parts)]
    if not any(columns):
        return ()
    return [
        *chain.from_iterable(
            column or repeat(absent, len(part)) for column, part in zip(columns, parts, strict=True)
        )
    ]


def _items(column: Sequence[Any]) -> bytes:
    """Encode the items of a column, without the head of their array."""
    return _encoder.encode(column)[len(_array_head(len(column))) :]


class PackedColumns(msgspec.Struct, frozen=True, gc=False):
    """All bodies concatenated, their sizes, and the items of the other columns in MessagePack.

    The items are concatenated without the head of an array; a column that no record has is empty.
    """

    data: bytes
    sizes: Sequence[int]
    keys: bytes
    headers: bytes = b""
    event_times_ms: bytes = b""

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def size_bytes(self) -> int:
        """Size of all records as they are sent."""
        return len(self.data) + len(self.keys) + len(self.headers) + len(self.event_times_ms)

    def records(self) -> list[Record]:
        """Return the packed columns as records."""
        ends, head = [*accumulate(self.sizes)], _array_head(len(self))
        return Columns(
            [self.data[first:end] for first, end in zip([0, *ends], ends, strict=False)],
            _keys_decoder.decode(head + self.keys) if self.keys else (),
            _headers_decoder.decode(head + self.headers) if self.headers else (),
            _times_decoder.decode(head + self.event_times_ms) if self.event_times_ms else (),
        ).records()


def encode_columns(parts: Sequence[PackedColumns]) -> bytes:
    """Encode all these records, in order, as a batch v1 (`storage.domain.log.record_batch`)."""
    ends = [*accumulate(chain.from_iterable([part.sizes for part in parts]))]
    return b"".join(
        (
            _HEAD,
            _bytes_head(ends[-1]),
            *[part.data for part in parts],
            _encoder.encode(ends),
            *_column(parts, [part.keys for part in parts], _NO_KEY),
            *_column(parts, [part.headers for part in parts], _NO_HEADERS),
            *_column(parts, [part.event_times_ms for part in parts], _NO_TIME),
        )
    )


def _column(
    parts: Sequence[PackedColumns], column: Sequence[bytes], absent: bytes
) -> Sequence[bytes]:
    """Return the pieces of one column; `absent` is the item of a record that has no value."""
    if not any(column):
        return (_ABSENT,)
    items = [some or absent * len(part) for some, part in zip(column, parts, strict=True)]
    return _array_head(sum(map(len, parts))), *items


def _array_head(count: int) -> bytes:
    """Return the MessagePack header of an array of `count` items.

    `count` is at most the number of records of an entry.
    """
    return b"%c" % (0x90 | count) if count < 1 << 4 else b"\xdc" + count.to_bytes(2, "big")


def _bytes_head(size: int) -> bytes:
    """Return the MessagePack header of `size` bytes."""
    if size < 1 << 8:
        return b"\xc4%c" % size
    if size < 1 << 16:
        return b"\xc5" + size.to_bytes(2, "big")
    return b"\xc6" + size.to_bytes(4, "big")
