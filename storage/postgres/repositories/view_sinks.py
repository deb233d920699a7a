"""Repository of the pending messages of views' sinks."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import update
from sqlmodel import col

from storage.domain.names import ViewName
from storage.domain.views.changes import ChangeKind
from storage.domain.views.sink import SinkState
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import ViewSinkRow


class PendingMessage(NamedTuple):
    """Message for a sink: its place in the outbox, and the change that it is about.

    `row` and `before` are JSON.
    """

    revision: int
    sequence: int
    batch: int
    change: ChangeKind
    key: str
    row: str | None
    before: str | None


class SinkBehind(NamedTuple):
    """Sink that fails or has many pending messages, and its view."""

    view: ViewName
    state: SinkState


class ViewSinkRows(Repository):
    """Sinks of views. Every method raises StorageUnavailable or StorageBusy."""

    async def states(self, view_ids: Collection[str]) -> dict[str, list[SinkState]]:
        """Return the states of the sinks that have had messages, by view."""
        states: dict[str, list[SinkState]] = {}
        if not view_ids:
            return states
        statement = rows_of(ViewSinkRow).where(col(ViewSinkRow.view_id).in_(view_ids))
        async with self._database.reading() as session:
            for row in await session.execute(statement.order_by(col(ViewSinkRow.sink))):
                states.setdefault(row.view_id, []).append(struct_of(SinkState, row))
        return states

    async def behind(self, namespace: str, pending: int, limit: int) -> list[SinkBehind]:
        """Return the sinks that fail or have so many pending messages, failing ones first.

        Those of paused views are left out.
        """
        values = {"namespace": namespace, "pending": pending, "limit": limit}
        async with self._database.reading() as session:
            rows = (await session.execute(query("view_sinks_behind"), values)).all()
        return [
            SinkBehind(ViewName(row.view, namespace), struct_of(SinkState, row)) for row in rows
        ]

    async def pending(
        self, view_id: str, sink: str, limit: int, bytes_max: int
    ) -> list[PendingMessage]:
        """Return the oldest messages of a sink, in their order: at least one if there is any.

        The message with which they exceed `bytes_max` is the last one.
        """
        values = {"view_id": view_id, "sink": sink, "limit": limit, "bytes_max": bytes_max}
        async with self._database.reading() as session:
            rows = await session.execute(query("pending_view_messages"), values)
            return [
                PendingMessage(revision, sequence, batch, ChangeKind(change), key, row, before)
                for revision, sequence, batch, change, key, row, before in rows
            ]

    async def settle(self, view_id: str, sink: str, sent: Sequence[PendingMessage]) -> None:
        """Delete messages that a sink has, and those before them."""
        values = {
            "view_id": view_id,
            "sink": sink,
            "revision": sent[-1].revision,
            "sequence": sent[-1].sequence,
        }
        async with self._database.autocommitting() as session:
            await session.execute(query("settle_view_messages"), values)

    async def fail(self, view_id: str, sink: str, failure: str) -> None:
        """Store why a call to a sink failed."""
        statement = update(ViewSinkRow).where(
            col(ViewSinkRow.view_id) == view_id, col(ViewSinkRow.sink) == sink
        )
        async with self._database.autocommitting() as session:
            await session.execute(statement.values(failure=failure))
