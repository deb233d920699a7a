"""What is kept in the process, for as long as it may be used without asking again."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that was read at `read_at_ms`, and may be used until `until_ms`, in milliseconds since 1970.

    Whoever keeps it ends it when the value may have changed; others who hold it see that by the time alone. A clock that
    was set back makes it old.
    """

    __slots__ = ("read_at_ms", "until_ms", "value")

    def __init__(self, value: T, read_at_ms: int, until_ms: int) -> None:
        self.value = value
        self.read_at_ms = read_at_ms
        self.until_ms = until_ms

    def at(self, now_ms: int) -> T | None:
        """The value, if it may be used now."""
        return self.value if self.read_at_ms <= now_ms < self.until_ms else None

    def end(self) -> None:
        """It may not be used any more."""
        self.until_ms = 0
