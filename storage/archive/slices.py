"""Parts of a row group: from an offset or a time on, so many records and bytes, up to the first hole."""

from bisect import bisect_left, bisect_right

import pyarrow as pa

from storage.archive.schema import US_PER_MS


def part_from(
    batch: pa.RecordBatch, offset: int, records_max: int, bytes_max: int
) -> pa.RecordBatch:
    """The records from the first one at or behind an offset on, no more than this but at least one, up to the first
    offset that is missing between two of them. Raises IndexError when all lie before the offset."""
    offsets = _words(batch.column("offset"))
    low = bisect_left(offsets, offset)
    ends = _ends(batch.column("data"))
    fitting = bisect_right(ends, ends[low] + bytes_max) - 1
    high = max(low + 1, min(low + records_max, fitting, len(offsets)))
    ahead = offsets[low] - low
    unbroken = bisect_right(range(low, high), ahead, key=lambda nth: offsets[nth] - nth)
    return batch.slice(low, unbroken)


def offset_since(batch: pa.RecordBatch, time_ms: int) -> int:
    """The offset of the first record that arrived then or later. Raises IndexError when all arrived before."""
    nth = bisect_left(_words(batch.column("ts")), time_ms * US_PER_MS)
    return _words(batch.column("offset"))[nth]


def _words(column: pa.Array) -> memoryview:
    """The numbers of a column of 64 bits without nulls."""
    values = memoryview(column.buffers()[1]).cast("B").cast("q")
    return values[column.offset : column.offset + len(column)]


def _ends(column: pa.Array) -> memoryview:
    """Where each value of a binary column begins, and the last one ends."""
    edges = memoryview(column.buffers()[1]).cast("B").cast("i")
    return edges[column.offset : column.offset + len(column) + 1]
