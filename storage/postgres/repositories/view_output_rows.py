"""Repository of the rows of views, as reads return them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, case, cast, func, null, select, union_all
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from storage.domain import limits
from storage.domain.views.key_range import KeyRange
from storage.domain.views.progress import RevisionState, ViewProgress, ViewRevision
from storage.domain.views.row_key import WINDOW_BYTES
from storage.domain.views.sources import Sources, decode_sources
from storage.postgres.repositories.views import progress_of
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of
from storage.postgres.tables import ViewBatchRow, ViewOutputRow, ViewRevisionRow, ViewRowVersion


class StoredRow(NamedTuple):
    """Key and JSON of a row; its sources, if they were read."""

    key: bytes
    output: bytes
    sources: Sources | None = None


class ViewOutputRows(Repository):
    """Rows of active revisions. Every method raises StorageUnavailable or StorageBusy."""

    async def read(
        self, revision: ViewRevision, keys: KeyRange, limit: int
    ) -> tuple[ViewProgress, list[StoredRow]] | None:
        """Return rows of a revision and its progress, of one snapshot; None if it is not active."""
        rows = _rows_in(_present(revision.revision_id), keys).limit(limit).subquery()
        read = await self._read(revision, rows, descending=keys.descending)
        return None if read is None else (read[0], _stored(read[1]))

    async def batch_at(
        self, revision_id: str, at_ms: int | None, at_batch: int | None
    ) -> ViewProgress | None:
        """Return the progress after the last batch by a time, or after one with a number.

        It has the positions, the watermark, and the time. None if the rows of then are not kept.
        """
        number, time_ms = col(ViewBatchRow.batch), col(ViewBatchRow.at_ms)
        is_then = number == at_batch if at_ms is None else time_ms <= at_ms
        batch = rows_of(ViewBatchRow).where(*_has_history(revision_id), is_then)
        async with self._database.reading() as session:
            newest = batch.order_by(time_ms.desc(), number.desc()).limit(1)
            row = (await session.execute(newest)).one_or_none()
        if row is None:
            return None
        values = {"positions": row.after, "watermark_ms": row.watermark_ms, "batch": row.batch}
        joined = {name: {"positions": at} for name, at in row.joined.items()}
        return progress_of(values | {"joined": joined, "changed_at_ms": row.at_ms})

    async def read_history(
        self, revision: ViewRevision, keys: KeyRange, limit: int, batch: int
    ) -> list[StoredRow] | None:
        """Return rows as they were after a batch; None if it is not active, or they are not kept."""
        rows = _rows_at(revision.revision_id, batch, keys, limit).subquery()
        is_kept = col(ViewRevisionRow.history_batch) <= batch
        read = await self._read(revision, rows, is_kept, descending=keys.descending)
        return None if read is None else _stored(read[1])

    async def history_since(self, revision_id: str) -> tuple[bool, int | None]:
        """Return whether a revision is active, and the time from which on its rows can be read."""
        oldest = select(func.min(col(ViewBatchRow.at_ms))).where(*_has_history(revision_id))
        revision = select(col(ViewRevisionRow.state), oldest.scalar_subquery()).where(
            col(ViewRevisionRow.revision_id) == revision_id
        )
        async with self._database.reading() as session:
            state, since_ms = (await session.execute(revision)).one_or_none() or (None, None)
            return state == RevisionState.ACTIVE.value, since_ms

    async def find(
        self, revision: ViewRevision, keys: KeyRange
    ) -> tuple[ViewProgress, StoredRow | None] | None:
        """Return the row in a range with its sources, as `read` does."""
        rows = _rows_in(_present(revision.revision_id), keys, "sources").limit(1).subquery()
        read = await self._read(revision, rows)
        if read is None:
            return None
        progress, selected = read
        stored = [
            StoredRow(row.key, row.output.encode(), decode_sources(row.sources)) for row in selected
        ]
        return progress, stored[0] if stored else None

    async def snapshot(
        self, revision: ViewRevision, limit: int, bytes_max: int
    ) -> tuple[ViewProgress, list[bytes]] | None:
        """Return the first rows of a revision, as `read` does.

        The row with which they exceed `bytes_max` is the last one.
        """
        first = _rows_in(_present(revision.revision_id), KeyRange()).limit(limit).subquery()
        size = func.octet_length(first.c.output)
        end = func.sum(size).over(order_by=first.c.key)
        sized = select(first.c.key, first.c.output, (end - size).label("begin")).subquery()
        rows = select(sized.c.key, sized.c.output).where(sized.c.begin <= bytes_max).subquery()
        read = await self._read(revision, rows)
        if read is None:
            return None
        progress, selected = read
        return progress, [row.output.encode() for row in selected]

    async def _read(
        self,
        revision: ViewRevision,
        rows: Any,
        *conditions: ColumnElement[bool],
        descending: bool = False,
    ) -> tuple[ViewProgress, Sequence[Any]] | None:
        """Return the progress of an active revision with rows of it, in one statement.

        The progress is a row of its own, the first one: joined, each row would have it. None if the revision does not meet the
        conditions.
        """
        head = select(
            *[cast(null(), column.type).label(column.name) for column in rows.c],
            col(ViewRevisionRow.progress).label("progress"),
        ).where(
            col(ViewRevisionRow.revision_id) == revision.revision_id,
            col(ViewRevisionRow.state) == RevisionState.ACTIVE.value,
            *conditions,
        )
        both = union_all(head, select(*rows.c, cast(null(), JSONB).label("progress"))).subquery()
        key = both.c.key.desc() if descending else both.c.key
        statement = select(both).order_by(both.c.progress.is_(None), key)
        async with self._database.reading() as session:
            read = (await session.execute(statement)).all()
        if not read or read[0].progress is None:
            return None
        return progress_of(read[0].progress), read[1:]


def _stored(rows: Sequence[Any]) -> list[StoredRow]:
    return [StoredRow(row.key, row.output.encode()) for row in rows]


def _present(revision_id: str) -> Any:
    """Select the rows that a read returns."""
    table = ViewOutputRow.__table__  # type: ignore[attr-defined]
    return (
        select(table).where(table.c.revision_id == revision_id, table.c.output.is_not(None))
    ).subquery()


def _rows_at(revision_id: str, batch: int, keys: KeyRange, limit: int) -> Any:
    """Select the first rows in a range as a read returned them after a batch.

    Postgres does not look for the first ones of a union by the indexes of its parts, so each part has the limit too, unless the newest
    windows are to be found among all.
    """
    parts = _present_and_former(revision_id, batch)
    if keys.newest_bytes:
        return _rows_in(union_all(*parts).subquery(), keys).limit(limit)
    first = [select(_rows_in(part.subquery(), keys).limit(limit).subquery()) for part in parts]
    rows = union_all(*first).subquery()
    return select(rows).order_by(rows.c.key.desc() if keys.descending else rows.c.key).limit(limit)


def _present_and_former(revision_id: str, batch: int) -> tuple[Any, Any]:
    """Select what a read returned after a batch: of the present rows, and of their versions."""
    present, former = col(ViewOutputRow.batch), ViewRowVersion
    columns = ("key", "output", "window_end_ms")
    rows = select(*[col(getattr(ViewOutputRow, name)) for name in columns]).where(
        col(ViewOutputRow.revision_id) == revision_id,
        col(ViewOutputRow.output).is_not(None),
        present <= batch,
    )
    versions = select(*[col(getattr(former, name)) for name in columns]).where(
        col(former.revision_id) == revision_id,
        col(former.since_batch) <= batch,
        col(former.until_batch) > batch,
    )
    return rows, versions


def _has_history(revision_id: str) -> Sequence[ColumnElement[bool]]:
    """Conditions of the batches of a revision whose rows can be read."""
    first = (
        select(col(ViewRevisionRow.history_batch))
        .where(col(ViewRevisionRow.revision_id) == revision_id)
        .scalar_subquery()
    )
    return col(ViewBatchRow.revision_id) == revision_id, col(ViewBatchRow.batch) >= first


def _rows_in(rows: Any, keys: KeyRange, *columns: str) -> Any:
    """Select the key, the JSON and other columns of those of some rows that are in a range."""
    key, end = rows.c.key, rows.c.window_end_ms
    others = [rows.c[name] for name in columns]
    output = cast(rows.c.output, Text).label("output")
    selected = select(key, output, *others).where(key >= keys.low)
    if keys.high is not None:
        selected = selected.where(key < keys.high)
    if keys.ends_after_ms is not None:
        selected = selected.where(end > keys.ends_after_ms)
    if keys.ends_before_ms is not None:
        selected = selected.where(end < keys.ends_before_ms)
    if keys.starts_before is not None:
        size = len(keys.starts_before)
        start = func.substring(key, func.length(key) - WINDOW_BYTES + 1, size)
        selected = selected.where(start < keys.starts_before)
    order = key.desc() if keys.descending else key
    if not keys.newest_bytes:
        return selected.order_by(order)
    return _newest(selected, key, keys)


def _newest(selected: Any, key: Any, keys: KeyRange) -> Any:
    """Select of each key the row with the last window, from rows in the order of keys.

    That is the last one of those with the same other parts, so a scan of the index can stop at the limit. The window of a key that was
    cut is not known: it counts as a key of its own.
    """
    length = func.length(key)
    others = case(
        (length > limits.VIEW_KEY_BYTES_MAX, key),
        else_=func.substring(key, 1, func.greatest(0, length - keys.newest_bytes)),
    )
    order = key.desc() if keys.descending else key
    newer = (func.lag if keys.descending else func.lead)(others).over(order_by=order)
    rows = selected.add_columns(others.label("others"), newer.label("newer")).subquery()
    is_newest = rows.c.others.is_distinct_from(rows.c.newer)
    return (
        select(rows.c.key, rows.c.output)
        .where(is_newest)
        .order_by(rows.c.key.desc() if keys.descending else rows.c.key)
    )
