"""Slices of a row group: from an offset or a time on, bounded, up to the first hole."""

from bisect import bisect_left, bisect_right

import msgspec
import pyarrow as pa

from storage.domain.streams.record_columns import RecordColumns
from storage.domain.streams.stream import LogRecord
from storage.parquet.record_schema import US_PER_MS, columns_of_batch, records_of


class RowGroup(msgspec.Struct, frozen=True):
    """A decoded row group, with the fields of `storage.parquet.record_schema.RECORD_FIELDS`."""

    batch: pa.RecordBatch

    @property
    def bytes(self) -> int:
        return int(self.batch.get_total_buffer_size())

    def part_from(self, offset: int, records_max: int, bytes_max: int) -> "RowGroupSlice":
        return part_from(self.batch, offset, records_max, bytes_max)

    def offset_since(self, time_ms: int) -> int:
        """Return the offset of the first record that arrived then or later.

        Raises IndexError when all arrived before.
        """
        nth = bisect_left(_integers(self.batch.column("ts")), time_ms * US_PER_MS)
        return _integers(self.batch.column("offset"))[nth]


class RowGroupSlice(msgspec.Struct, frozen=True):
    """Records with offsets [first, next), without holes.

    `data_bytes` is the size of their data alone, `bytes` their size in memory.
    """

    batch: pa.RecordBatch
    first: int
    data_bytes: int

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def next(self) -> int:
        return self.first + len(self)

    @property
    def bytes(self) -> int:
        return int(self.batch.nbytes)

    def records(self) -> list[LogRecord]:
        """Return the part as records."""
        return records_of(self.batch)

    def columns(self) -> RecordColumns:
        """Return the part as columns."""
        return columns_of_batch(self.batch)

    def before(self, end: int) -> "RowGroupSlice":
        """Return the records below an offset; at least one exists."""
        if self.next <= end:
            return self
        return part_from(self.batch, self.first, end - self.first, self.data_bytes)


def part_from(
    batch: pa.RecordBatch, offset: int, records_max: int, bytes_max: int
) -> RowGroupSlice:
    """Return consecutive records from the first one at or behind an offset on.

    No more than `records_max` and `bytes_max`, but at least one, up to the first hole between two of them. Raises
    IndexError when all lie before the offset.
    """
    offsets = _integers(batch.column("offset"))
    low = bisect_left(offsets, offset)
    ends = _ends(batch.column("data"))
    fitting = bisect_right(ends, ends[low] + bytes_max) - 1
    high = max(low + 1, min(low + records_max, fitting, len(offsets)))
    ahead = offsets[low] - low
    unbroken = bisect_right(range(low, high), ahead, key=lambda nth: offsets[nth] - nth)
    return RowGroupSlice(batch.slice(low, unbroken), offsets[low], ends[low + unbroken] - ends[low])


def _integers(column: pa.Array) -> memoryview:
    """Return the integers of a 64-bit column without nulls."""
    values = memoryview(column.buffers()[1]).cast("B").cast("q")
    return values[column.offset : column.offset + len(column)]


def _ends(column: pa.Array) -> memoryview:
    """Return the start of each value of a binary column, and the end of the last one."""
    edges = memoryview(column.buffers()[1]).cast("B").cast("i")
    return edges[column.offset : column.offset + len(column) + 1]
