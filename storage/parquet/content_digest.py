"""Digest of a file's contents, independent of its row group boundaries.

SHA-256 over three SHA-256s: of the offsets and of the bodies' lengths, each an int64, little-endian, and of the
bodies themselves, one after another.
"""

import hashlib

import pyarrow as pa
import pyarrow.compute as pc


class ContentDigest:
    """Incremental digest of records, batch by batch."""

    def __init__(self) -> None:
        self._offsets = hashlib.sha256()
        self._lengths = hashlib.sha256()
        self._bodies = hashlib.sha256()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next records, in any number."""
        data = batch.column("data")
        self._offsets.update(_int64_bytes(batch.column("offset")))
        self._lengths.update(_int64_bytes(pc.binary_length(data).cast(pa.int64())))
        _, ends, bodies = data.buffers()
        if bodies is not None:
            edges = memoryview(ends).cast("B").cast("i")
            low, high = edges[data.offset], edges[data.offset + len(data)]
            self._bodies.update(memoryview(bodies)[low:high])

    def hexdigest(self) -> str:
        """Return the digest of all records added so far."""
        parts = (self._offsets, self._lengths, self._bodies)
        return hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()


def _int64_bytes(column: pa.Array) -> memoryview:
    """Return the bytes of a column of int64 without nulls."""
    values = memoryview(column.buffers()[1]).cast("B")
    return values[8 * column.offset : 8 * (column.offset + len(column))]
