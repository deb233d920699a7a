"""Records of a shard as columns, as they are read in bulk: no object for each record."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from storage.domain.log.entry import LogEntry
from storage.domain.log.record_batch import decode_columns
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.stream import Gap, LogRecord


class RecordColumns(msgspec.Struct, frozen=True, gc=False):
    """Records in ascending order of their offsets, each with its arrival."""

    offsets: Sequence[int]
    arrivals_ms: Sequence[int]
    content: Columns

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, low: int, high: int) -> "RecordColumns":
        """Return the records at positions [low, high)."""
        return RecordColumns(
            self.offsets[low:high], self.arrivals_ms[low:high], self.content.between(low, high)
        )

    def chosen(self, numbers: Sequence[int]) -> "RecordColumns":
        """Return the records at these positions."""
        return RecordColumns(
            [self.offsets[number] for number in numbers],
            [self.arrivals_ms[number] for number in numbers],
            self.content.chosen(numbers) if numbers else Columns(()),
        )

    @classmethod
    def joined(cls, parts: Sequence["RecordColumns"]) -> "RecordColumns":
        """Return the records of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        return RecordColumns(
            [offset for part in parts for offset in part.offsets],
            [arrival_ms for part in parts for arrival_ms in part.arrivals_ms],
            Columns.joined([part.content for part in parts]),
        )

    def records(self) -> list[LogRecord]:
        """Return the columns as records."""
        return [*map(LogRecord, self.offsets, self.arrivals_ms, self.content.records())]


class ColumnRead(msgspec.Struct, frozen=True):
    """Consecutive records of a shard, up to `next_offset`.

    `gap`: the offsets before the first record that no longer exist or never did.
    """

    columns: RecordColumns
    next_offset: int
    gap: Gap | None = None


NO_RECORDS = RecordColumns((), (), Columns(()))


def columns_of(entries: Iterable[LogEntry], first: int, end: int) -> RecordColumns:
    """Return the entries' records with offsets in [first, end), up to the first hole.

    Raises ValueError for an unreadable batch.
    """
    parts: list[RecordColumns] = []
    position: int | None = None
    for entry in entries:
        if position is not None and entry.first != position:
            break
        offset = entry.first
        for encoded in entry.batches:
            part = _columns_of_batch(encoded, offset, entry.arrival_ms)
            offset += len(part)
            low, high = max(0, first - offset + len(part)), len(part) - max(0, offset - end)
            if low < high:
                parts.append(part if high - low == len(part) else part.between(low, high))
        if offset > first:
            position = offset
    return RecordColumns.joined(parts) if parts else NO_RECORDS


def _columns_of_batch(encoded: bytes, first: int, arrival_ms: int) -> RecordColumns:
    batch = decode_columns(encoded)
    data, count = batch.data, len(batch.ends)
    content = Columns(
        [data[low:high] for low, high in pairwise((0, *batch.ends))],
        batch.keys or (),
        batch.headers or (),
        batch.event_times or (),
    )
    return RecordColumns(range(first, first + count), [arrival_ms] * count, content)
