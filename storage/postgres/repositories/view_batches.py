"""Repository of the batches of views, as a worker commits them."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    Text,
    cast,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import StorageBusy, StorageUnavailable
from storage.domain.jobs import JobLease
from storage.domain.views.changes import RowUpdate, SinkMessage
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.progress import (
    BatchRecord,
    RevisionReport,
    RevisionState,
    RowChange,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.row_key import SessionKey, end_of_prefix, start_key
from storage.domain.views.sink import ViewSink
from storage.domain.views.sources import Sources, decode_sources, encode_sources
from storage.domain.views.view import View
from storage.postgres.queries import query
from storage.postgres.repositories.jobs import share_claim
from storage.postgres.repositories.views import put_in_state, revision_of
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of
from storage.postgres.tables import ViewOutputRow, ViewRevisionRow

CHANNEL = "millstream_views"
"""Announcements of progress; the payload is the view's id."""

_BEFORE_ALL = (-limits.OFFSET_MAX, b"")


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
        output = col(ViewOutputRow.output)
        columns = (
            col(ViewOutputRow.key),
            cast(output, Text).label("output"),
            col(ViewOutputRow.window_end_ms),
        )
        statement = select(*columns).where(
            col(ViewOutputRow.revision_id) == self.revision.revision_id,
            col(ViewOutputRow.key) == func.any(list(keys)),
            output.is_not(None),
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

    async def count_messages(self, messages: Sequence[SinkMessage]) -> None:
        """Add messages to the report of a back-test, and send none."""
        report = self.revision.report
        if messages and report is not None:
            report = report.with_messages(messages, limits.VIEW_SINK_SAMPLES)
            await self.update(report=msgspec.to_builtins(report))

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
            "joined": _json(record.joined),
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
    """Batches of views, and the states that they merge with.

    Every method raises StorageUnavailable or StorageBusy.
    """

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

    async def begin_back_test(
        self, revision: ViewRevision, snapshot_id: str
    ) -> tuple[ViewRevision, ViewRevision] | None:
        """Insert the revision of a back-test, and a snapshot of the active one, unless they exist.

        Returns both; None if the view was deleted. A call that is repeated, or made by another attempt at the job, returns the same.
        Raises StorageBusy while those of a job that was over, and is retried, are being deleted.
        """
        values = {
            "revision_id": revision.revision_id,
            "view_id": revision.view_id,
            "query": _json(revision.query),
            "plan": _json(revision.plan),
            "progress": _json(revision.progress),
            "report": _json(revision.report),
            "snapshot_id": snapshot_id,
        }
        writing = self._database.writing(
            unknown=StorageUnavailable, limit_ms=limits.VIEW_SNAPSHOT_MS_MAX
        )
        async with writing as session:
            await session.execute(query("begin_view_back_test"), values)
            of_view = col(ViewRevisionRow.view_id) == revision.view_id
            rows = await session.execute(rows_of(ViewRevisionRow).where(of_view))
            revisions = {row.revision_id: revision_of(row) for row in rows}
        if all(one.state is not RevisionState.ACTIVE for one in revisions.values()):
            return None
        own, snapshot = revisions[revision.revision_id], revisions[snapshot_id]
        if RevisionState.DELETED in (own.state, snapshot.state):
            raise StorageBusy("The rows of an earlier attempt are being deleted.")
        return own, snapshot

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
