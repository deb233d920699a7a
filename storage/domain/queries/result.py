"""Result of a query: columns, rows, and what they include."""

from collections.abc import Mapping

import msgspec

from storage.domain.views.plan import ViewColumn


class RelationRead(msgspec.Struct, frozen=True, kw_only=True):
    """Positions and counts of a relation that a query has read.

    `positions`: next offset of each shard; of a view, those that its rows include. `revision` and `batch` are those of a view, else None.
    `records`: records between the positions, or rows of a view.
    """

    positions: Mapping[int, int]
    records: int
    revision: int | None = None
    batch: int | None = None


class QueryResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a query. `rows` is a JSON array of objects. `truncated`: there are more rows."""

    columns: tuple[ViewColumn, ...]
    rows: msgspec.Raw
    truncated: bool
    read: Mapping[str, RelationRead]
    milliseconds: int
