"""Records column by column: what a bulk producer sends, and how they come to lie in a batch without being taken apart."""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add, itemgetter

import msgspec

from storage.domain import limits
from storage.domain.batches import VERSION, Record
from storage.domain.errors import BatchTooLarge, ValidationFailed

_encoder = msgspec.msgpack.Encoder()
_HEAD = b"\x96" + _encoder.encode(VERSION)  # an array of six, and the first of them
_TAIL = b"\xc0\xc0"  # no headers, no event times
_KEY_BYTES_MAX = 4 * limits.KEY_CHARACTERS_MAX  # in UTF-8


class Columns(msgspec.Struct, frozen=True, gc=False):
    """Bodies and partition keys of as many records; without keys no record has one."""

    data: Sequence[bytes]
    keys: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.data)

    def check(self) -> None:
        """Raise ValidationFailed or BatchTooLarge for columns that no stream takes."""
        if not self.data:
            raise ValidationFailed.at("/data", "A batch has at least one record", "too_few")
        if len(self.data) > limits.BATCH_RECORDS_MAX:
            raise BatchTooLarge(f"A call appends at most {limits.BATCH_RECORDS_MAX} records.")
        if self.keys and len(self.keys) != len(self.data):
            raise ValidationFailed.at("/keys", "As many keys as there are records", "mismatch")
        longest = max(map(len, self.keys), default=0)
        if longest > limits.KEY_CHARACTERS_MAX:
            place = next(nth for nth, key in enumerate(self.keys) if len(key) == longest)
            detail = f"A key has at most {limits.KEY_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"/keys/{place}", detail, "too_long")

    @property
    def size_bytes(self) -> int:
        """All bodies and keys."""
        return sum(map(len, self.data)) + len("".join(self.keys).encode())

    def larger_than(self, most: int) -> int | None:
        """The place of the first record of which more than `most` bytes count; None if there is none. Of columns that
        were checked."""
        if max(map(len, self.data)) <= most - _KEY_BYTES_MAX:
            return None
        return next((nth for nth, size in enumerate(self.sizes()) if size > most), None)

    def sizes(self) -> list[int]:
        """What counts of each record against limits, in bytes."""
        if not self.keys:
            return [*map(len, self.data)]
        plain = "".join(self.keys).isascii()
        of_keys = map(len, self.keys if plain else map(str.encode, self.keys))
        return [*map(add, map(len, self.data), of_keys)]

    def chosen(self, numbers: Sequence[int]) -> "Columns":
        """Some of the records."""
        if len(numbers) == 1:
            [number] = numbers
            return Columns((self.data[number],), (self.keys[number],) if self.keys else ())
        choose = itemgetter(*numbers)
        return Columns(choose(self.data), choose(self.keys) if self.keys else ())

    def records(self) -> list[Record]:
        """The same as records."""
        if not self.keys:
            return [Record(data) for data in self.data]
        return [*map(Record, self.data, self.keys)]


def encode_columns(parts: Sequence[Columns]) -> bytes:
    """The batch v1 form of all these records, in order (`storage.domain.batches`); bodies are copied once."""
    data, keys = parts[0].data, parts[0].keys
    if len(parts) > 1:
        data = [*chain.from_iterable([part.data for part in parts])]
        if any(part.keys for part in parts):
            keys = [*chain.from_iterable([part.keys or [""] * len(part) for part in parts])]
    ends = [*accumulate(map(len, data))]
    encode = _encoder.encode
    return b"".join(
        (_HEAD, _bytes_head(ends[-1]), *data, encode(ends), encode(keys or None), _TAIL)
    )


def _bytes_head(size: int) -> bytes:
    """How MessagePack begins so many bytes."""
    if size < 1 << 8:
        return b"\xc4%c" % size
    if size < 1 << 16:
        return b"\xc5" + size.to_bytes(2, "big")
    return b"\xc6" + size.to_bytes(4, "big")
