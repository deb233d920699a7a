"""Arrow IPC encoding of records: limits the records sent per message."""

from collections.abc import Sequence

import pyarrow as pa

from storage.domain.log.entry import LogEntry
from storage.parquet.record_schema import RECORD_SCHEMA, record_batch_of
from storage.parquet.row_group_slice import RowGroupSlice, part_from


def part_of(
    entries: Sequence[LogEntry], first: int, end: int, bytes_max: int
) -> RowGroupSlice | None:
    """Return the entries' records with offsets in [first, end), up to the first hole.

    The part has up to `bytes_max` bytes of data, or else one record. None when the entries have none of these offsets.
    Raises ValueError for an invalid batch.
    """
    batch = record_batch_of(entries, first, end)
    return part_from(batch, first, batch.num_rows, bytes_max) if batch.num_rows else None


def encode_parts(parts: Sequence[RowGroupSlice]) -> bytes:
    """Encode the parts as an Arrow IPC stream of `RECORD_SCHEMA`, with a batch for each part."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, RECORD_SCHEMA) as writer:
        for part in parts:
            writer.write_batch(part.batch.cast(RECORD_SCHEMA))
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded
