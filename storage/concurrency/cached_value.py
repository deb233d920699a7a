"""Cached value with an expiry, which its cache can end early."""

from typing import Generic, TypeVar

T = TypeVar("T")


class CachedValue(Generic[T]):
    """A value read at `read_at_ms` and usable until `until_ms`, in milliseconds since 1970.

    The cache ends it when the value may have changed; other holders see that by the time alone. A clock that
    was set back makes it old.
    """

    __slots__ = ("read_at_ms", "until_ms", "value")

    def __init__(self, value: T, read_at_ms: int, until_ms: int) -> None:
        self.value = value
        self.read_at_ms = read_at_ms
        self.until_ms = until_ms

    def value_at(self, now_ms: int) -> T | None:
        """Return the value if it may be used now."""
        return self.value if self.read_at_ms <= now_ms < self.until_ms else None

    def invalidate(self) -> None:
        """Invalidate the value."""
        self.until_ms = 0
