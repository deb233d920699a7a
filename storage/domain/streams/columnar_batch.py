"""Columnar form of records, as sent by a bulk producer, and its encoding as a batch.

    Columns ── packed() ──▶ PackedColumns ── encode_columns() ──▶ a batch v1 of one or more calls' records

Columns are a Python object for each body and each key. Packed, a call's records are four objects, so that
those of all calls that wait for a flush fit into the processor's caches. The records are not decoded on
the way.
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add, itemgetter

import msgspec

from storage.domain import limits
from storage.domain.errors import BatchTooLarge, ValidationFailed
from storage.domain.log.record_batch import VERSION, Record

_encoder = msgspec.msgpack.Encoder()
_HEAD = b"\x96" + _encoder.encode(VERSION)  # an array of six, and its first item
_TAIL = b"\xc0\xc0"  # no headers, no event times
_NO_KEY = b"\xa0"  # the empty string
_keys_decoder = msgspec.msgpack.Decoder(list[str])
_KEY_BYTES_MAX = 4 * limits.KEY_CHARACTERS_MAX  # in UTF-8


class Columns(msgspec.Struct, frozen=True, gc=False):
    """Bodies and partition keys of equally many records; without keys no record has one."""

    data: Sequence[bytes]
    keys: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.data)

    def check(self) -> None:
        """Raise ValidationFailed or BatchTooLarge for columns that no stream accepts."""
        if not self.data:
            raise ValidationFailed.at("/data", "A batch must have at least one record", "too_few")
        if len(self.data) > limits.BATCH_RECORDS_MAX:
            raise BatchTooLarge(f"A call can append at most {limits.BATCH_RECORDS_MAX} records.")
        if self.keys and len(self.keys) != len(self.data):
            raise ValidationFailed.at("/keys", "Must have one key per record", "mismatch")
        longest = max(map(len, self.keys), default=0)
        if longest > limits.KEY_CHARACTERS_MAX:
            position = next(nth for nth, key in enumerate(self.keys) if len(key) == longest)
            detail = f"A key can have at most {limits.KEY_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"/keys/{position}", detail, "too_long")

    def larger_than(self, most: int) -> int | None:
        """Return the position of the first record larger than `bytes_max`; None if there is none.

        The columns must have passed `check`.
        """
        if max(map(len, self.data)) <= most - _KEY_BYTES_MAX:
            return None
        return next((nth for nth, size in enumerate(self.sizes()) if size > most), None)

    def sizes(self) -> list[int]:
        """Return the size of each record as it counts against limits, in bytes."""
        if not self.keys:
            return [*map(len, self.data)]
        plain = "".join(self.keys).isascii()
        of_keys = map(len, self.keys if plain else map(str.encode, self.keys))
        return [*map(add, map(len, self.data), of_keys)]

    def chosen(self, numbers: Sequence[int]) -> "Columns":
        """Return the records at these positions."""
        if len(numbers) == 1:
            [number] = numbers
            return Columns((self.data[number],), (self.keys[number],) if self.keys else ())
        choose = itemgetter(*numbers)
        return Columns(choose(self.data), choose(self.keys) if self.keys else ())

    def records(self) -> list[Record]:
        """Return the columns as records."""
        if not self.keys:
            return [Record(data) for data in self.data]
        return [*map(Record, self.data, self.keys)]

    def packed(self) -> "PackedColumns":
        """Return the columns packed into a few objects."""
        keys = _encoder.encode(self.keys)[len(_array_head(len(self.keys))) :] if self.keys else b""
        return PackedColumns(b"".join(self.data), [*map(len, self.data)], keys)


class PackedColumns(msgspec.Struct, frozen=True, gc=False):
    """All bodies concatenated, their sizes, and all keys in MessagePack, concatenated.

    `keys` is empty without keys.
    """

    data: bytes
    sizes: Sequence[int]
    keys: bytes

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def size_bytes(self) -> int:
        """Size of all bodies and keys as they are sent."""
        return len(self.data) + len(self.keys)

    def records(self) -> list[Record]:
        """Return the packed columns as records."""
        ends = [*accumulate(self.sizes)]
        bodies = [self.data[first:end] for first, end in zip([0, *ends], ends, strict=False)]
        if not self.keys:
            return [*map(Record, bodies)]
        return [*map(Record, bodies, _keys_decoder.decode(_array_head(len(self)) + self.keys))]


def encode_columns(parts: Sequence[PackedColumns]) -> bytes:
    """Encode all these records, in order, as a batch v1 (`storage.domain.log.record_batch`)."""
    ends = [*accumulate(chain.from_iterable([part.sizes for part in parts]))]
    keys: list[bytes] = [b"\xc0"]
    if any(part.keys for part in parts):
        keys = [part.keys or _NO_KEY * len(part) for part in parts]
        keys.insert(0, _array_head(len(ends)))
    bodies = [part.data for part in parts]
    return b"".join((_HEAD, _bytes_head(ends[-1]), *bodies, _encoder.encode(ends), *keys, _TAIL))


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
