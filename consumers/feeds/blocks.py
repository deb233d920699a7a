"""Blocks, read and encoded once for all readers of a feed, and chunks, parts of them.

    block    the result of one read: perhaps a gap, then records without a hole between them
             first ── gap ── records[0] ─────────── next
    chunk          └───── a reader's part of it ─────┘   from the reader's position, as far as it likes

A record is encoded in a format when its first reader in that format needs it, and only once: the bytes belong to the
block. So do those of all its records joined, which most readers at the tip take.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import attrs
import msgspec

from storage.domain import limits
from storage.domain.streams.record_filter import Selects
from storage.domain.streams.stream import Gap, LogRecord, Shard, ShardRead

_RECORD_BYTES = 300  # memory that Python needs for a record, beside its contents
_BLOCK_BYTES = 1_000

Encode = Callable[[int, LogRecord], bytes]
"""Encodes a record of a shard."""

Grew = Callable[["Block", int], None]
"""Called with the number of bytes by which a block has grown."""


class Format(msgspec.Struct, frozen=True):
    """A record encoding, and the separator between two records that are written together."""

    encode: Encode
    between: bytes = b""


Formats = Mapping[str, Format]
"""The formats of a deployment, by their names."""


class Block:
    """The result of one read of a shard, for all of its readers."""

    __slots__ = (
        "_encoded",
        "_formats",
        "_grew",
        "_joined",
        "behind_ms",
        "children",
        "data_bytes",
        "ended",
        "first",
        "gap",
        "next",
        "records",
        "shard",
        "size_bytes",
    )

    def __init__(
        self, first: int, read: ShardRead, formats: Formats, grew: Grew = lambda _, __: None
    ) -> None:
        self.shard = read.shard
        self.first = first
        self.next = read.next_offset
        self.records = read.records
        self.gap = read.gap
        self.ended = read.ended
        self.children = read.children
        self.behind_ms = read.behind_ms
        self.data_bytes = sum([len(at.record.data) for at in read.records])
        self.size_bytes = _BLOCK_BYTES + sum(
            [at.record.size_bytes + _RECORD_BYTES for at in read.records]
        )
        self._formats = formats
        self._grew = grew
        self._encoded: dict[str, list[bytes | None]] = {}
        self._joined: dict[str, bytes] = {}

    def chunk(self, offset: int, tip: int) -> "Chunk":
        """Return the part of the block from an offset in it."""
        if offset == self.first:
            return Chunk(
                block=self, first=offset, start=0, stop=len(self.records), gap=self.gap, tip=tip
            )
        start = offset - (self.records[0].offset if self.records else self.next)
        if start >= 0:
            return Chunk(
                block=self, first=offset, start=start, stop=len(self.records), gap=None, tip=tip
            )
        assert self.gap is not None, "only a gap lies before the records"
        gap = Gap(offset, self.gap.next, self.gap.reason)
        return Chunk(block=self, first=offset, start=0, stop=len(self.records), gap=gap, tip=tip)

    def encoded(self, name: str, numbers: Sequence[int]) -> list[bytes]:
        """Return the records with these numbers in the block, in a format."""
        cached = self._encoded.get(name)
        if cached is None:
            cached = self._encoded[name] = [None] * len(self.records)
        result, new_bytes = [], 0
        encode = self._formats[name].encode
        for number in numbers:
            data = cached[number]
            if data is None:
                data = cached[number] = encode(self.shard, self.records[number])
                new_bytes += len(data)
            result.append(data)
        if new_bytes:
            self._grow(new_bytes)
        return result

    def joined(self, name: str) -> bytes:
        """Return all records joined, in a format."""
        data = self._joined.get(name)
        if data is None:
            encoded = self.encoded(name, range(len(self.records)))
            data = self._joined[name] = self.between(name).join(encoded)
            self._grow(len(data))
        return data

    def between(self, name: str) -> bytes:
        """Return the separator between two records in a format."""
        return self._formats[name].between

    def _grow(self, count: int) -> None:
        self.size_bytes += count
        self._grew(self, count)


class Selection(NamedTuple):
    """The beginning of a chunk that a reader is done with, and what it gets of it.

    `chosen`: the numbers of the selected records in `part`; None for all. `selected` is their number, `data_bytes` the size of their data.
    """

    part: "Chunk"
    chosen: list[int] | None
    selected: int
    data_bytes: int


@attrs.define(eq=False, kw_only=True)
class Chunk:
    """Records of a shard for one reader: offsets [first, next_offset), with an optional gap.

    `gap` are offsets of it that cannot be read. `tip` is the next offset to be written, as far as is known, and `behind_ms`
    the age of the last record, or 0 at the tip. `ended`: the shard is closed and nothing follows; continue with its
    `children`, each after all of its parents.
    """

    _block: Block
    first: int
    _start: int
    _stop: int
    gap: Gap | None
    tip: int

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def shard(self) -> int:
        """The chunk's shard."""
        return self._block.shard

    @property
    def is_empty(self) -> bool:
        """Return whether the chunk has no record, no gap and no end."""
        return self._start == self._stop and self.gap is None and not self.ended

    @property
    def records(self) -> Sequence[LogRecord]:
        """The records, in order, without a hole between them."""
        if self._is_whole:
            return self._block.records
        return self._block.records[self._start : self._stop]

    @property
    def next_offset(self) -> int:
        """The offset to continue at."""
        if self._stop == len(self._block.records):
            return self._block.next
        return self._block.records[self._stop].offset

    @property
    def ended(self) -> bool:
        """Return whether nothing follows the chunk in its shard."""
        return self._block.ended and self._stop == len(self._block.records)

    @property
    def children(self) -> tuple[Shard, ...]:
        """The shards to continue with, if the shard has ended."""
        return self._block.children if self.ended else ()

    @property
    def behind_ms(self) -> int:
        """The age of the last record in ms, or 0 at the tip."""
        block = self._block
        if self._start == self._stop or self._stop == len(block.records):
            return block.behind_ms
        later_ms = block.records[-1].arrival_ms - block.records[self._stop - 1].arrival_ms
        return block.behind_ms + later_ms

    @property
    def data_bytes(self) -> int:
        """The bytes of the records' data."""
        if self._is_whole:
            return self._block.data_bytes
        return sum([len(at.record.data) for at in self.records])

    def select(
        self, matches: Selects | None, records_max: int, bytes_max: int = limits.OFFSET_MAX
    ) -> "Selection":
        """Select what a reader gets: the records that match, as far as its limits allow.

        At most `records_max` of them. While some of `bytes_max` is left, one more is selected, also a large one.
        """
        whole_bytes = self._block.data_bytes if matches is None and self._is_whole else None
        if whole_bytes is not None and len(self) <= records_max and whole_bytes < bytes_max:
            return Selection(self, None, len(self), whole_bytes)
        part, chosen, left = self, list[int](), bytes_max
        for number, record in enumerate(self.records):
            if matches is None or matches(self.shard, record):
                if len(chosen) == records_max or left <= 0:
                    part = self.within(number)
                    break
                chosen.append(number)
                left -= len(record.record.data)
        return Selection(part, None if matches is None else chosen, len(chosen), bytes_max - left)

    def within(self, records_max: int) -> "Chunk":
        """Return the beginning of the chunk, at most `records_max` records."""
        if records_max >= len(self):
            return self
        return Chunk(
            block=self._block,
            first=self.first,
            start=self._start,
            stop=self._start + records_max,
            gap=self.gap,
            tip=self.tip,
        )

    def before(self, offset: int) -> "Chunk":
        """Return the chunk's records below an offset."""
        if not len(self):
            return self
        return self.within(max(0, offset - self._block.records[self._start].offset))

    def encoded(self, name: str, chosen: Sequence[int] | None = None) -> list[bytes]:
        """Return the records in a format, or only those with the numbers `chosen`.

        Numbers count from the chunk's first record.
        """
        if chosen is None:
            return self._block.encoded(name, range(self._start, self._stop))
        return self._block.encoded(name, [self._start + number for number in chosen])

    def joined(self, name: str, chosen: Sequence[int] | None = None) -> bytes:
        """Return the records of `encoded` joined; a whole block is joined once for all readers."""
        if chosen is None and self._is_whole:
            return self._block.joined(name)
        return self._block.between(name).join(self.encoded(name, chosen))

    @property
    def _is_whole(self) -> bool:
        return self._stop - self._start == len(self._block.records)
