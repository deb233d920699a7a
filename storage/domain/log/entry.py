"""Entries of a log as stored in the hot store; the archive is written from them."""

from collections.abc import Sequence

import msgspec


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """Records [first, first + count) that arrived together, as one or more batches v1.

    `size_bytes` is their size as retention counts it, `bytes_before` the bytes the log had accepted
    before them.
    """

    first: int
    arrival_ms: int
    count: int
    size_bytes: int
    bytes_before: int
    batches: tuple[bytes, ...]

    @property
    def next(self) -> int:
        """The offset after its last record."""
        return self.first + self.count

    def bytes_up_to(self, offset: int) -> int:
        """Return the part of `size_bytes` that belongs to the records before an offset.

        An even share, in whole bytes.
        """
        records = min(max(offset - self.first, 0), self.count)
        return self.size_bytes * records // self.count


def log_bytes(entries: Sequence[LogEntry], first: int, next_: int) -> int:
    """Return the size, as retention counts it, of the records [first, next_) of these entries.

    The sizes of adjacent ranges add up, wherever they are cut.
    """
    return sum(entry.bytes_up_to(next_) - entry.bytes_up_to(first) for entry in entries)
