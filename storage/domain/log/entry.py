"""Entries of a log as they lie in the hot store: what the archive is written from."""

from collections.abc import Sequence

import msgspec


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """The records [first, first + count), which arrived together, as one or more batches v1.

    `size_bytes` is what they count against a retention, `bytes_before` what the log had taken before them.
    """

    first: int
    arrival_ms: int
    count: int
    size_bytes: int
    bytes_before: int
    batches: tuple[bytes, ...]

    @property
    def next(self) -> int:
        """The offset behind its records."""
        return self.first + self.count

    def bytes_up_to(self, offset: int) -> int:
        """The part of `size_bytes` of its records before an offset: an even share, in whole bytes."""
        records = min(max(offset - self.first, 0), self.count)
        return self.size_bytes * records // self.count


def log_bytes(entries: Sequence[LogEntry], first: int, next_: int) -> int:
    """What the records [first, next_) of these entries count. Ranges that meet add up, wherever they are cut."""
    return sum(entry.bytes_up_to(next_) - entry.bytes_up_to(first) for entry in entries)
