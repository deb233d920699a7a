"""Outbox of a batch: its messages for the sinks of the view."""

from collections.abc import Mapping, Sequence

from storage.domain import limits
from storage.domain.views.changes import RowUpdate, SinkMessage, ViewChanges
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.progress import RevisionState, RowChange
from storage.domain.views.sink import ViewSink
from storage.postgres.repositories.view_batches import LockedRevision, PresentRow


class ViewOutbox:
    """Messages of a batch, gathered while its transaction writes rows; none without sinks."""

    def __init__(self, locked: LockedRevision, sinks: Sequence[ViewSink]) -> None:
        self.changes = ViewChanges(locked.revision.plan, sinks)
        self._locked = locked
        self._has_sinks = bool(sinks)
        self._messages: list[SinkMessage] = []

    async def note_changes(self, changes: Sequence[RowChange], final: FinalPosition | None) -> None:
        """Note what a batch is about to change; `final` is the position before it."""
        if self._has_sinks and changes:
            keys = [key for change in changes for key in (change.key, *change.replaces)]
            before = await self._locked.present(keys)
            for change in changes:
                self.note_updates(_updates(change, before), final)

    def note_updates(
        self, updates: Sequence[RowUpdate], final: FinalPosition | None = None
    ) -> None:
        """Note changes of rows."""
        for update in updates:
            self._messages += self.changes.of_update(update, final)

    async def note_finals(
        self, before: FinalPosition | None, watermark_ms: int | None
    ) -> FinalPosition | None:
        """Note at most VIEW_FINAL_ROWS rows of windows that have ended; return the position."""
        if watermark_ms is None:
            return before
        reached = FinalPosition(watermark_ms)
        if before is not None and before.bound >= reached.bound:
            return before
        if not self.changes.has_finals:
            return reached
        most = limits.VIEW_FINAL_ROWS
        rows = await self._locked.final_rows(before, watermark_ms, most)
        for row in rows:
            if row.output is not None:
                self._messages += self.changes.of_final(row.output)
        return reached if len(rows) < most else FinalPosition(rows[-1].window_end_ms, rows[-1].key)

    async def expire(self, until_ms: int, batch: int) -> int:
        """Delete at most VIEW_SWEEP_ROWS rows of windows that ended by a time; return how many."""
        shows = self.changes.has_changes
        most = limits.VIEW_SWEEP_ROWS
        rows = await self._locked.expire_rows(until_ms, most, batch, shows=shows)
        if shows:
            self.note_updates([RowUpdate(row.key, row.output, None) for row in rows])
        return len(rows)

    async def store(self, first: int, batch: int) -> int:
        """Store the messages, with sequences from `first`; return the next sequence."""
        messages, self._messages = self._messages, []
        if self._locked.revision.state is RevisionState.BACK_TEST:
            await self._locked.count_messages(messages)
        else:
            await self._locked.enqueue(messages, first, batch)
        return first + len(messages)


def _updates(change: RowChange, before: Mapping[bytes, PresentRow]) -> list[RowUpdate]:
    """Return the updates of a change: rows that it replaces end before it."""
    replaced = [before[key] for key in change.replaces if key in before]
    present = before.get(change.key)
    update = RowUpdate(
        change.key,
        None if present is None else present.output,
        change.row,
        change.window_end_ms,
        tuple(row.output for row in replaced),
    )
    return [*(RowUpdate(row.key, row.output, None, row.window_end_ms) for row in replaced), update]
