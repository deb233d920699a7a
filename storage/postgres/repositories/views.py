"""Repository of views, and of the revisions that their owners begin and end."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Row, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.jobs import JobKind
from storage.domain.names import StreamName, ViewName
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import (
    BatchRecord,
    RevisionReport,
    RevisionState,
    ViewCounts,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.view import View, ViewQuery, ViewSpec
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.queries import query
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import ViewBatchRow, ViewRevisionRow, ViewRow

_PRESENT = (
    RevisionState.BUILDING.value,
    RevisionState.ACTIVE.value,
    RevisionState.FORMER.value,
)


class ViewWithRevision(NamedTuple):
    """A view and one of its revisions."""

    view: View
    revision: ViewRevision


class LockedView(LockedDefinition[View]):
    """A name locked against writes by others, its present view, and that view's revisions."""

    async def revisions(self) -> list[ViewRevision]:
        """Return the view's present revisions, the newest first; none without a view."""
        if self.definition is None:
            return []
        statement = (
            rows_of(ViewRevisionRow)
            .where(_is_present(self.definition.view_id))
            .order_by(col(ViewRevisionRow.number).desc())
        )
        return [revision_of(row) for row in await self.session.execute(statement)]

    async def count_beside(self, stream: StreamName) -> int:
        """Return the number of other views over a stream; until the end nobody else adds one."""
        await self.session.execute(query("hold_name"), {"name": f"views of {stream}"})
        view_id = "" if self.definition is None else self.definition.view_id
        statement = select(func.count(col(ViewRevisionRow.view_id).distinct())).where(
            col(ViewRevisionRow.namespace) == stream.namespace,
            col(ViewRevisionRow.stream) == stream.name,
            col(ViewRevisionRow.state).in_(_PRESENT),
            col(ViewRevisionRow.view_id) != view_id,
        )
        return int(await self.session.scalar(statement) or 0)

    async def sinks_of(self, namespace: str) -> dict[str, set[str]]:
        """Return the streams that views of a namespace append to, by the stream that they read.

        Until the end nobody else asks for them.
        """
        await self.session.execute(query("hold_name"), {"name": f"sinks of views: {namespace}"})
        has_sinks = col(ViewRow.spec)["into"].astext != "[]"
        statement = select(col(ViewRow.spec)).where(col(ViewRow.namespace) == namespace, has_sinks)
        targets: dict[str, set[str]] = {}
        for (stored,) in await self.session.execute(statement):
            spec = msgspec.convert(stored, ViewSpec)
            streams = {sink.stream for sink in spec.into if sink.stream}
            for followed in spec.query.inputs.values():
                targets.setdefault(followed.stream, set()).update(streams)
        return targets

    async def begin(self, revision: ViewRevision, stream: StreamName) -> None:
        """Insert a revision, in place of one that is still being built."""
        await self.end(revision.view_id, RevisionState.BUILDING)
        values = revision_values(revision) | {"namespace": stream.namespace, "stream": stream.name}
        await self.session.execute(insert(ViewRevisionRow).values(**values))

    async def reactivate(self, former: ViewRevision, number: int) -> None:
        """Let a former revision replace the active one, under another number."""
        await self.end(former.view_id, RevisionState.BUILDING)
        values = {"state": RevisionState.BUILDING.value, "number": number, "is_rebuild": False}
        is_former = col(ViewRevisionRow.revision_id) == former.revision_id
        statement = update(ViewRevisionRow).where(is_former)
        await self.session.execute(statement.values(**values, former_until_ms=None))

    async def restart(self, view: View) -> None:
        """Let the revisions of a view that have stopped continue."""
        values = {"is_stopped": False, "failures": 0, "failure": ""}
        stopped = col(ViewRevisionRow.is_stopped)
        statement = update(ViewRevisionRow).where(_is_present(view.view_id), stopped)
        await self.session.execute(statement.values(**values))

    async def delete_removed_sinks(self, view: View) -> None:
        """Delete the messages for sinks that the view does not have any more."""
        values = {"view_id": view.view_id, "sinks": [sink.label for sink in view.spec.into]}
        await self.session.execute(query("delete_removed_view_sinks"), values)

    async def keep_history(self, view: View) -> None:
        """Let the active revision keep versions of its rows from now on, or keep none any more."""
        values = {"view_id": view.view_id, "keeps": view.spec.history_ms > 0}
        await self.session.execute(query("keep_view_history"), values)

    async def delete(self, definition: View, now_ms: int) -> None:
        await self.end(definition.view_id, *RevisionState)
        await super().delete(definition, now_ms)

    async def end(self, view_id: str, *states: RevisionState) -> None:
        """Delete the revisions of a view in these states."""
        await put_in_state(self.session, view_id, states, RevisionState.DELETED)


class ViewRows(DefinitionTable[ViewName, View, LockedView]):
    """Views of every namespace. Every method raises StorageUnavailable or StorageBusy."""

    kind = "view"
    table = ViewRow
    id = "view_id"

    def definition_of(self, row: Row[Any]) -> View:
        return view_of(row)

    def locked(self, session: AsyncSession, name: ViewName, row: Row[Any] | None) -> LockedView:
        return LockedView(session, self, name, row)

    async def with_revisions(self, name: ViewName) -> list[ViewWithRevision]:
        """Return the view with its present revisions: the active, the building, the former one."""
        return await self._joined(
            col(ViewRow.namespace) == name.namespace, col(ViewRow.name) == name.name
        )

    async def with_revisions_of(self, view_ids: Collection[str]) -> list[ViewWithRevision]:
        """Return views with their present revisions, in the order of their names."""
        return await self._joined(col(ViewRow.view_id).in_(view_ids)) if view_ids else []

    async def over(self, stream: StreamName) -> list[ViewWithRevision]:
        """Return the present revisions that read a stream, with their views."""
        return await self._joined(
            col(ViewRevisionRow.namespace) == stream.namespace,
            col(ViewRevisionRow.stream) == stream.name,
        )

    async def stopped(self, namespace: str, limit: int) -> list[ViewWithRevision]:
        """Return revisions that have stopped, of views that are not paused."""
        return await self._joined(
            col(ViewRow.namespace) == namespace,
            col(ViewRevisionRow.is_stopped).is_(True),
            col(ViewRow.spec)["paused"].astext == "false",
            limit=limit,
        )

    async def _joined(
        self, *conditions: ColumnElement[bool], limit: int | None = None
    ) -> list[ViewWithRevision]:
        statement = (
            select(ViewRow, ViewRevisionRow)
            .join(ViewRevisionRow, col(ViewRevisionRow.view_id) == col(ViewRow.view_id))
            .where(col(ViewRevisionRow.state).in_(_PRESENT), *conditions)
            .order_by(col(ViewRow.name), col(ViewRevisionRow.state))
            .limit(limit)
        )
        async with self._database.reading() as session:
            rows = await session.execute(statement)
            return [
                ViewWithRevision(view_of(view), revision_of(revision)) for view, revision in rows
            ]

    async def batches(self, revision_id: str, limit: int) -> list[BatchRecord]:
        """Return the last batches of a revision, the newest first."""
        statement = (
            rows_of(ViewBatchRow)
            .where(col(ViewBatchRow.revision_id) == revision_id)
            .order_by(col(ViewBatchRow.batch).desc())
            .limit(limit)
        )
        async with self._database.reading() as session:
            return [_batch_of(row) for row in await session.execute(statement)]

    async def next_windows(self, revision_id: str, after_ms: int) -> tuple[int | None, int | None]:
        """Return the ends of a revision's oldest window, and of the first one after a time."""
        values = {"revision_id": revision_id, "after_ms": after_ms}
        async with self._database.reading() as session:
            row = (await session.execute(query("next_view_windows"), values)).one()
            return row.oldest_ms, row.next_ms

    async def streams_without_scan(self) -> list[StreamName]:
        """Return the streams with views that should run, for which no scan job is open."""
        async with self._database.reading() as session:
            rows = await session.execute(query("view_streams"), {"kind": JobKind.VIEW_SCAN.value})
            return [StreamName(row.stream, row.namespace) for row in rows]

    async def end_formers(self, now_ms: int) -> int:
        """Delete the former revisions whose time has come; return their number."""
        statement = update(ViewRevisionRow).where(
            col(ViewRevisionRow.state) == RevisionState.FORMER.value,
            col(ViewRevisionRow.former_until_ms) <= now_ms,
        )
        async with self._database.autocommitting() as session:
            ended = await session.execute(statement.values(state=RevisionState.DELETED.value))
            return int(ended.rowcount)  # type: ignore[attr-defined]

    async def end_back_tests(self) -> None:
        """Delete the revisions of back-tests whose jobs are over."""
        async with self._database.autocommitting() as session:
            await session.execute(query("end_view_back_tests"))

    async def trim_history(self, now_ms: int, versions_max: int, limit: int) -> int:
        """Delete versions of rows that are not kept any more, at most `limit`; return how many."""
        async with self._database.autocommitting() as session:
            times = {"now_ms": now_ms, "versions_max": versions_max}
            await session.execute(query("advance_view_history"), times)
            deleted = await session.execute(query("trim_view_history"), {"limit": limit})
            return int(deleted.rowcount)  # type: ignore[attr-defined]

    async def delete_old_rows(self, limit: int) -> int:
        """Delete rows of deleted revisions, at most `limit`, and those revisions without rows.

        Returns the number of deleted rows.
        """
        async with self._database.autocommitting() as session:
            deleted = await session.execute(query("delete_view_rows"), {"limit": limit})
            await session.execute(query("delete_view_revisions"))
            return int(deleted.rowcount)  # type: ignore[attr-defined]


async def put_in_state(
    session: AsyncSession,
    view_id: str,
    before: Sequence[RevisionState],
    after: RevisionState,
    **values: Any,
) -> None:
    """Put the revisions of a view that are in some states into another one."""
    statement = update(ViewRevisionRow).where(
        col(ViewRevisionRow.view_id) == view_id,
        col(ViewRevisionRow.state).in_([state.value for state in before]),
    )
    await session.execute(statement.values(state=after.value, **values))


def view_of(row: Any) -> View:
    """Return the view of a row."""
    name, spec = ViewName(row.name, row.namespace), msgspec.convert(row.spec, ViewSpec)
    return struct_of(View, row, name=name, spec=spec)


def revision_of(row: Any) -> ViewRevision:
    """Return the revision of a row."""
    return struct_of(
        ViewRevision,
        row,
        query=msgspec.convert(row.query, ViewQuery),
        plan=msgspec.convert(row.plan, ViewPlan),
        state=RevisionState(row.state),
        progress=progress_of(row.progress),
        report=msgspec.convert(row.report, RevisionReport | None),
    )


def progress_of(stored: Any) -> ViewProgress:
    """Return a stored progress."""
    return msgspec.convert(stored, ViewProgress, strict=False)


def revision_values(revision: ViewRevision) -> dict[str, Any]:
    """Return the columns of a revision."""
    values: dict[str, Any] = msgspec.to_builtins(revision, str_keys=True)
    return values


def _is_present(view_id: str) -> ColumnElement[bool]:
    is_of_view: ColumnElement[bool] = col(ViewRevisionRow.view_id) == view_id
    return is_of_view & col(ViewRevisionRow.state).in_(_PRESENT)


def _batch_of(row: Any) -> BatchRecord:
    before, after, *others = (
        msgspec.convert(each, dict[int, int], strict=False)
        for each in (row.before, row.after, *row.joined.values())
    )
    joined = dict(zip(row.joined, others, strict=True))
    counts = msgspec.convert(row.counts, ViewCounts)
    return struct_of(BatchRecord, row, before=before, after=after, joined=joined, counts=counts)
