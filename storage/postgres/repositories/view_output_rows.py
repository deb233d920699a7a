"""Repository of the rows of views, as reads return them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    case,
    cast,
    func,
    null,
    select,
    union_all,
)
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


class _Shape(NamedTuple):
    """Which bounds and which order a read has; the values of the bounds are parameters."""

    has_high: bool = False
    ends_after: bool = False
    ends_before: bool = False
    starts_before_bytes: int = 0
    newest_bytes: int = 0
    is_descending: bool = False

    @classmethod
    def of(cls, keys: KeyRange) -> "_Shape":
        return cls(
            keys.high is not None,
            keys.ends_after_ms is not None,
            keys.ends_before_ms is not None,
            len(keys.starts_before or b""),
            keys.newest_bytes,
            keys.descending,
        )


_REVISION: BindParameter[str] = bindparam("revision_id")
_BATCH: BindParameter[int] = bindparam("batch")
_LIMIT = bindparam("limit", type_=Integer)


class ViewOutputRows(Repository):
    """Rows of active revisions. Every method raises StorageUnavailable or StorageBusy."""

    async def read(
        self, revision: ViewRevision, keys: KeyRange, limit: int
    ) -> tuple[ViewProgress, list[StoredRow]] | None:
        """Return rows of a revision and its progress, of one snapshot; None if it is not active."""
        parameters = _parameters(revision, keys, limit)
        read = await self._read(_rows_statement(_Shape.of(keys)), parameters)
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
        parameters = {**_parameters(revision, keys, limit), "batch": batch}
        read = await self._read(_history_statement(_Shape.of(keys)), parameters)
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
        parameters = _parameters(revision, keys, limit=1)
        read = await self._read(_rows_statement(_Shape.of(keys), "sources"), parameters)
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
        parameters = _parameters(revision, KeyRange(), limit) | {"bytes_max": bytes_max}
        read = await self._read(_snapshot_statement(), parameters)
        if read is None:
            return None
        progress, selected = read
        return progress, [row.output.encode() for row in selected]

    async def progress(self, revision: ViewRevision) -> ViewProgress | None:
        """Return the progress of a revision; None if it is not active."""
        read = await self._read(_progress_statement(), {"revision_id": revision.revision_id})
        return None if read is None else read[0]

    async def _read(
        self, statement: Any, parameters: Mapping[str, Any]
    ) -> tuple[ViewProgress, Sequence[Any]] | None:
        """Return the progress of an active revision with rows of it; None if it is not active."""
        async with self._database.reading() as session:
            read = (await session.execute(statement, parameters)).all()
        if not read or read[0].progress is None:
            return None
        return progress_of(read[0].progress), read[1:]


def _parameters(revision: ViewRevision, keys: KeyRange, limit: int) -> dict[str, Any]:
    return {
        "revision_id": revision.revision_id,
        "low": keys.low,
        "high": keys.high,
        "ends_after_ms": keys.ends_after_ms,
        "ends_before_ms": keys.ends_before_ms,
        "starts_before": keys.starts_before,
        "limit": limit,
    }


def _stored(rows: Sequence[Any]) -> list[StoredRow]:
    return [StoredRow(row.key, row.output.encode()) for row in rows]


# Cached statements: building one takes longer than Postgres needs to read a row


@cache
def _rows_statement(shape: _Shape, *columns: str) -> Any:
    """Select the rows that a read returns, and other columns of them."""
    rows = _rows_in(_present(), shape, *columns).limit(_LIMIT)
    return _with_progress(rows, is_descending=shape.is_descending)


@cache
def _history_statement(shape: _Shape) -> Any:
    """Select the rows that a read returned after a batch."""
    is_kept = col(ViewRevisionRow.history_batch) <= _BATCH
    return _with_progress(_rows_at(shape), is_kept, is_descending=shape.is_descending)


@cache
def _progress_statement() -> Any:
    """Select the progress of an active revision."""
    return select(col(ViewRevisionRow.progress)).where(*_is_active())


@cache
def _snapshot_statement() -> Any:
    """Select the first rows up to the one with which they exceed `bytes_max`."""
    first = _rows_in(_present(), _Shape()).limit(_LIMIT).subquery()
    size = func.octet_length(first.c.output)
    end = func.sum(size).over(order_by=first.c.key)
    sized = select(first.c.key, first.c.output, (end - size).label("begin")).subquery()
    bytes_max = bindparam("bytes_max", type_=BigInteger)
    return _with_progress(select(sized.c.key, sized.c.output).where(sized.c.begin <= bytes_max))


def _with_progress(
    selected: Any, *conditions: ColumnElement[bool], is_descending: bool = False
) -> Any:
    """Select the progress of an active revision and rows of it, in one statement.

    The progress is a row of its own, the first one: joined, each row would have it. There is none if the revision does not meet
    the conditions.
    """
    rows = selected.subquery()
    head = select(
        *[cast(null(), column.type).label(column.name) for column in rows.c],
        col(ViewRevisionRow.progress).label("progress"),
    ).where(*_is_active(), *conditions)
    both = union_all(head, select(*rows.c, cast(null(), JSONB).label("progress"))).subquery()
    key = both.c.key.desc() if is_descending else both.c.key
    return select(both).order_by(both.c.progress.is_(None), key)


def _is_active() -> Sequence[ColumnElement[bool]]:
    is_active = col(ViewRevisionRow.state) == RevisionState.ACTIVE.value
    return col(ViewRevisionRow.revision_id) == _REVISION, is_active


def _present() -> Any:
    table = ViewOutputRow.__table__  # type: ignore[attr-defined]
    return (
        select(table)
        .where(table.c.revision_id == _REVISION, table.c.output.is_not(None))
        .subquery()
    )


def _rows_at(shape: _Shape) -> Any:
    """Select the first rows in a range as a read returned them after a batch.

    Postgres does not look for the first ones of a union by the indexes of its parts, so each part has the limit too, unless the newest
    windows are to be found among all.
    """
    parts = _present_and_former()
    if shape.newest_bytes:
        return _rows_in(union_all(*parts).subquery(), shape).limit(_LIMIT)
    first = [select(_rows_in(part.subquery(), shape).limit(_LIMIT).subquery()) for part in parts]
    rows = union_all(*first).subquery()
    order = rows.c.key.desc() if shape.is_descending else rows.c.key
    return select(rows).order_by(order).limit(_LIMIT)


def _present_and_former() -> tuple[Any, Any]:
    """Select what a read returned after a batch: of the present rows, and of their versions."""
    present, former = col(ViewOutputRow.batch), ViewRowVersion
    columns = ("key", "output", "window_end_ms")
    rows = select(*[col(getattr(ViewOutputRow, name)) for name in columns]).where(
        col(ViewOutputRow.revision_id) == _REVISION,
        col(ViewOutputRow.output).is_not(None),
        present <= _BATCH,
    )
    versions = select(*[col(getattr(former, name)) for name in columns]).where(
        col(former.revision_id) == _REVISION,
        col(former.since_batch) <= _BATCH,
        col(former.until_batch) > _BATCH,
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


def _rows_in(rows: Any, shape: _Shape, *columns: str) -> Any:
    """Select the key, the JSON and other columns of those of some rows that are in a range."""
    key, end = rows.c.key, rows.c.window_end_ms
    others = [rows.c[name] for name in columns]
    output = cast(rows.c.output, Text).label("output")
    selected = select(key, output, *others).where(key >= bindparam("low"))
    if shape.has_high:
        selected = selected.where(key < bindparam("high"))
    if shape.ends_after:
        selected = selected.where(end > bindparam("ends_after_ms"))
    if shape.ends_before:
        selected = selected.where(end < bindparam("ends_before_ms"))
    if size := shape.starts_before_bytes:
        start = func.substring(key, func.length(key) - WINDOW_BYTES + 1, size)
        selected = selected.where(start < bindparam("starts_before", type_=LargeBinary))
    order = key.desc() if shape.is_descending else key
    if not shape.newest_bytes:
        return selected.order_by(order)
    return _newest(selected, key, shape)


def _newest(selected: Any, key: Any, shape: _Shape) -> Any:
    """Select of each key the row with the last window, from rows in the order of keys.

    That is the last one of those with the same other parts, so a scan of the index can stop at the limit. The window of a key that was
    cut is not known: it counts as a key of its own.
    """
    length = func.length(key)
    others = case(
        (length > limits.VIEW_KEY_BYTES_MAX, key),
        else_=func.substring(key, 1, func.greatest(0, length - shape.newest_bytes)),
    )
    is_descending = shape.is_descending
    order = key.desc() if is_descending else key
    newer = (func.lag if is_descending else func.lead)(others).over(order_by=order)
    rows = selected.add_columns(others.label("others"), newer.label("newer")).subquery()
    is_newest = rows.c.others.is_distinct_from(rows.c.newer)
    return (
        select(rows.c.key, rows.c.output)
        .where(is_newest)
        .order_by(rows.c.key.desc() if is_descending else rows.c.key)
    )
