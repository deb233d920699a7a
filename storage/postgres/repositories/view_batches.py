"""Repository of view rows and batches: commits of a worker, and reads."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    ColumnElement,
    Text,
    case,
    cast,
    delete,
    func,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.jobs import JobLease
from storage.domain.views.changes import RowUpdate, SinkMessage
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.key_range import KeyRange
from storage.domain.views.progress import (
    BatchRecord,
    RevisionReport,
    RevisionState,
    RowChange,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.row_key import WINDOW_BYTES, SessionKey, end_of_prefix, start_key
from storage.domain.views.sink import ViewSink
from storage.domain.views.sources import Sources, decode_sources, encode_sources
from storage.domain.views.view import View
from storage.postgres.queries import query
from storage.postgres.repositories.jobs import share_claim
from storage.postgres.repositories.views import progress_of, put_in_state, revision_of
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of
from storage.postgres.tables import ViewBatchRow, ViewOutputRow, ViewRevisionRow, ViewRowVersion

CHANNEL = "millstream_views"
"""Announcements of progress; the payload is the view's id."""

_BEFORE_ALL = (-limits.OFFSET_MAX, b"")


class StoredRow(NamedTuple):
    """Key and JSON of a row; its sources, if they were read."""

    key: bytes
    output: bytes
    sources: Sources | None = None


class StoredState(NamedTuple):
    """Partial aggregates of a row, its sources, and the end of its window."""

    state: str
    sources: Sources
    window_end_ms: int | None


class PresentRow(NamedTuple):
    """Row that a read returns, as JSON, with the end of its window."""

    key: bytes
    output: str
    window_end_ms: int | None


class WindowRow(NamedTuple):
    """Row of a window, as JSON; None if a read does not return it."""

    key: bytes
    window_end_ms: int
    output: str | None


class LockedRevision:
    """A revision locked against other writers until the end of a transaction."""

    def __init__(
        self,
        session: AsyncSession,
        revision: ViewRevision,
        sinks: Sequence[ViewSink] = (),
        history_ms: int = 0,
    ) -> None:
        self.revision = revision
        self.sinks = sinks
        """Sinks of its view, if they are locked too."""
        self._history_ms = history_ms
        self.keeps_versions = (
            revision.state is RevisionState.ACTIVE and revision.history_batch is not None
        )
        """True if earlier versions of its rows can be read."""
        self._session = session
        self._is_own = col(ViewRevisionRow.revision_id) == revision.revision_id

    async def put_rows(self, changes: Sequence[RowChange], batch: int, now_ms: int) -> int:
        """Insert or replace rows; return the number of inserted ones."""
        if not changes:
            return 0
        values = {
            "revision_id": self.revision.revision_id,
            "keys": [change.key for change in changes],
            "outputs": [change.row for change in changes],
            "states": [change.state for change in changes],
            "window_ends": [change.window_end_ms for change in changes],
            "sources": [
                None if change.sources is None else encode_sources(change.sources)
                for change in changes
            ],
            "batch": batch,
            "now_ms": now_ms,
        }
        return int(await self._session.scalar(query("put_view_rows"), values) or 0)

    async def keep_versions(self, keys: Sequence[bytes], batch: int) -> int:
        """Store the rows with these keys as they are until a batch; return their number.

        0 for a revision without history.
        """
        if not keys or not self.keeps_versions:
            return 0
        values = {"revision_id": self.revision.revision_id, "keys": list(keys), "batch": batch}
        stored = await self._session.execute(query("keep_view_versions"), values)
        return int(stored.rowcount)  # type: ignore[attr-defined]

    async def delete_rows(self, keys: Sequence[bytes]) -> None:
        """Delete rows."""
        if keys:
            statement = delete(ViewOutputRow).where(
                col(ViewOutputRow.revision_id) == self.revision.revision_id,
                col(ViewOutputRow.key) == func.any(list(keys)),
            )
            await self._session.execute(statement)

    async def present(self, keys: Sequence[bytes]) -> dict[bytes, PresentRow]:
        """Return the rows with these keys; one that a read does not return is absent."""
        rows = _present(self.revision.revision_id)
        output = cast(rows.c.output, Text).label("output")
        statement = select(rows.c.key, output, rows.c.window_end_ms).where(
            rows.c.key == func.any(list(keys))
        )
        return {row.key: PresentRow(*row) for row in await self._session.execute(statement)}

    async def final_rows(
        self, position: FinalPosition | None, until_ms: int, limit: int
    ) -> list[WindowRow]:
        """Return rows behind a position whose windows end at a time or before, in its order."""
        after_ms, after_key = _BEFORE_ALL if position is None else position.bound
        values = {
            "revision_id": self.revision.revision_id,
            "until_ms": until_ms,
            "after_ms": after_ms,
            "after_key": after_key,
            "limit": limit,
        }
        rows = await self._session.execute(query("final_view_rows"), values)
        return [WindowRow(*row) for row in rows]

    async def expire_rows(
        self, until_ms: int, limit: int, batch: int, *, shows: bool
    ) -> list[WindowRow]:
        """Delete rows whose windows end at a time or before, the oldest first; return them.

        Their JSON is None unless `shows`. With history, their versions until a batch are stored.
        """
        values = {
            "revision_id": self.revision.revision_id,
            "until_ms": until_ms,
            "limit": limit,
            "batch": batch,
            "shows": shows,
            "keeps": self.keeps_versions,
        }
        deleted = await self._session.execute(query("expire_view_rows"), values)
        return [WindowRow(*row) for row in deleted]

    async def enqueue(self, messages: Sequence[SinkMessage], first: int, batch: int) -> None:
        """Store messages for sinks, whose sequences begin with `first`."""
        size = limits.VIEW_SINK_MESSAGES
        for start in range(0, len(messages), size):
            sinks, changes, keys, rows, befores = zip(*messages[start : start + size], strict=True)
            values = {
                "view_id": self.revision.view_id,
                "revision": self.revision.number,
                "first": first + start,
                "batch": batch,
                "sinks": list(sinks),
                "changes": list(changes),
                "keys": list(keys),
                "outputs": list(rows),
                "befores": list(befores),
            }
            await self._session.execute(query("enqueue_view_messages"), values)

    async def differences(self, former: str) -> AsyncIterator[Sequence[RowUpdate]]:
        """Yield the rows in which the revision differs from a former one, by key."""
        values = {"before": former, "after": self.revision.revision_id}
        rows = await self._session.stream(query("differences_of_view_revisions"), values)
        async for part in rows.partitions(limits.VIEW_SWITCH_ROWS):
            yield [RowUpdate(row.key, row.before, row.output, row.window_end_ms) for row in part]

    async def active(self) -> ViewRevision | None:
        """Return the revision that answers reads, locked; None if it is this one."""
        statement = rows_of(ViewRevisionRow).where(
            col(ViewRevisionRow.view_id) == self.revision.view_id,
            col(ViewRevisionRow.state) == RevisionState.ACTIVE.value,
            col(ViewRevisionRow.revision_id) != self.revision.revision_id,
        )
        row = (await self._session.execute(statement.with_for_update())).one_or_none()
        return None if row is None else revision_of(row)

    async def advance(self, progress: ViewProgress, record: BatchRecord) -> None:
        """Store the progress and the batch that made it, and announce it; forget old batches."""
        oldest = record.batch - limits.VIEW_BATCHES_MAX
        if self.keeps_versions:
            oldest = min(oldest, (self.revision.history_batch or 0) - 1)
        values = msgspec.structs.asdict(record) | {
            "revision_id": self.revision.revision_id,
            "progress": _json(progress),
            "before": _json(record.before),
            "after": _json(record.after),
            "counts": _json(record.counts),
            "oldest": oldest,
            "limit": limits.VIEW_BATCHES_MAX,
            "channel": CHANNEL,
            "view_id": self.revision.view_id,
        }
        await self._session.execute(query("advance_view_revision"), values)

    async def promote(
        self,
        progress: ViewProgress,
        *,
        former_until_ms: int | None,
        report: RevisionReport | None,
    ) -> None:
        """Make it the active revision, with a progress and a report.

        The present one becomes the former one until a time, or is deleted without a time; an earlier former one is deleted.
        """
        session, view_id = self._session, self.revision.view_id
        ends = {"former_until_ms": former_until_ms}
        await put_in_state(session, view_id, [RevisionState.FORMER], RevisionState.DELETED)
        after = RevisionState.DELETED if former_until_ms is None else RevisionState.FORMER
        await put_in_state(session, view_id, [RevisionState.ACTIVE], after, **ends)
        await self.update(
            state=RevisionState.ACTIVE.value,
            progress=msgspec.to_builtins(progress, str_keys=True),
            report=msgspec.to_builtins(report),
            history_batch=progress.batch if self._history_ms else None,
        )
        await self.announce()

    async def update(self, **values: Any) -> None:
        """Change columns of the revision."""
        statement = update(ViewRevisionRow).where(self._is_own).values(**values)
        await self._session.execute(statement)

    async def announce(self) -> None:
        """Notify the readers that wait for the view."""
        announcement = {"channel": CHANNEL, "payload": self.revision.view_id}
        await self._session.execute(query("notify"), announcement)


class ViewBatchRows(Repository):
    """Rows of views and their batches. Every method raises StorageUnavailable or StorageBusy."""

    @asynccontextmanager
    async def locked(
        self, claim: JobLease, revision_id: str, *, running: View | None = None
    ) -> AsyncGenerator[LockedRevision | None]:
        """Lock a revision for the holder of a job; None if it was deleted.

        `running`: its view, which is locked with its sinks; None is yielded if it was deleted or paused. The block commits at its
        end, unless it raises. Raises LeaseLost.
        """
        writing = self._database.writing(
            unknown=StorageUnavailable, limit_ms=limits.VIEW_BATCH_MS_MAX
        )
        async with writing as session:
            await share_claim(session, claim)
            yield await _locked(session, revision_id, running)

    async def states(self, revision_id: str, keys: Sequence[bytes]) -> dict[bytes, StoredState]:
        """Return the states of rows by key; a key without a row is absent."""
        columns = (
            col(ViewOutputRow.key),
            col(ViewOutputRow.state),
            col(ViewOutputRow.sources),
            col(ViewOutputRow.window_end_ms),
        )
        statement = select(*columns).where(
            col(ViewOutputRow.revision_id) == revision_id,
            col(ViewOutputRow.key) == func.any(list(keys)),
        )
        async with self._database.reading() as session:
            return _states_by_key(await session.execute(statement))

    async def sessions(
        self, revision_id: str, keys: Sequence[SessionKey]
    ) -> dict[bytes, StoredState]:
        """Return the states of the rows whose sessions overlap or touch one of these, by key.

        The sessions of a key do not overlap, so of those that start earlier only the last one may.
        """
        values = {
            "revision_id": revision_id,
            "others": [key.others for key in keys],
            "starts": [start_key(key.others, key.start) for key in keys],
            "ends": [end_of_prefix(start_key(key.others, key.end)) for key in keys],
        }
        async with self._database.reading() as session:
            return _states_by_key(await session.execute(query("view_sessions"), values))

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
        return progress_of(values | {"changed_at_ms": row.at_ms})

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


async def _locked(
    session: AsyncSession, revision_id: str, running: View | None
) -> LockedRevision | None:
    """Lock a revision, and its view with the sinks if that is `running`."""
    if running is None:
        statement: Any = (
            rows_of(ViewRevisionRow)
            .where(
                col(ViewRevisionRow.revision_id) == revision_id,
                col(ViewRevisionRow.state) != RevisionState.DELETED.value,
            )
            .with_for_update()
        )
        row = (await session.execute(statement)).one_or_none()
        return None if row is None else LockedRevision(session, revision_of(row))
    values = {"view_id": running.view_id, "revision_id": revision_id}
    row = (await session.execute(query("lock_running_view_revision"), values)).one_or_none()
    if row is None:
        return None
    sinks = msgspec.convert(row.into or (), tuple[ViewSink, ...])
    return LockedRevision(session, revision_of(row), sinks, row.history_ms or 0)


def _states_by_key(rows: Iterable[Any]) -> dict[bytes, StoredState]:
    return {
        row.key: StoredState(row.state, decode_sources(row.sources), row.window_end_ms)
        for row in rows
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


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
