"""Reads of a view's rows."""

from typing import NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.views.progress import ViewRevision


class IncludedRecord(NamedTuple):
    """Record that rows must include.

    `relation`: its stream's name in the query; empty for the only stream.
    """

    shard: int
    offset: int
    relation: str = ""


class RowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of rows, in the order of their keys.

    `key`: values of the first key columns, as text. `prefix`: beginning of the next one, which is text. `window_from_ms` and
    `window_to_ms`: windows that end after the one and begin before the other. `latest`: of each key the newest window alone. `after_key`: rows strictly after this
    encoded key, before it if `descending`. `includes`: a record that the rows must include; the read waits for it
    up to `wait_ms`. `at_ms` or `at_batch`: rows as they were at a time, or after a batch.
    """

    key: tuple[str, ...] = ()
    prefix: str = ""
    window_from_ms: int | None = None
    window_to_ms: int | None = None
    latest: bool = False
    descending: bool = False
    after_key: bytes | None = None
    limit: int = limits.PAGE_ITEMS_DEFAULT
    includes: IncludedRecord | None = None
    wait_ms: int = 0
    at_ms: int | None = None
    at_batch: int | None = None

    @property
    def is_of_history(self) -> bool:
        """True if it reads rows as they were."""
        return self.at_ms is not None or self.at_batch is not None

    def check(self) -> None:
        """Raise ValidationFailed for options that exclude each other."""
        moments = {"at": self.at_ms, "at_batch": self.at_batch, "after": self.includes}
        given = [name for name, value in moments.items() if value is not None]
        if len(given) > 1:
            detail = "Give one of `at`, `at_batch` and `after`"
            raise ValidationFailed.at(f"/{given[1]}", detail, "conflict")


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows as JSON objects, with the revision and progress that they belong to.

    `next_key`: key of the last row if there may be more.
    """

    rows: tuple[bytes, ...]
    revision: ViewRevision
    next_key: bytes | None = None
