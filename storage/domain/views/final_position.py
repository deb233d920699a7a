"""Position up to which the rows of windows are final."""

import msgspec


class FinalPosition(msgspec.Struct, frozen=True):
    """Windows whose rows were emitted as final: those that ended before `end_ms`.

    Of those that ended at that time, the rows up to `key`; all of them without one.
    """

    end_ms: int
    key: bytes | None = None

    def includes(self, end_ms: int, key: bytes) -> bool:
        """Return whether the row of a window was emitted."""
        if end_ms != self.end_ms:
            return end_ms < self.end_ms
        return self.key is None or key <= self.key

    @property
    def bound(self) -> tuple[int, bytes]:
        """Window end and key that every row behind the position exceeds."""
        return (self.end_ms + 1, b"") if self.key is None else (self.end_ms, self.key)
