"""Copier of one queue of the origin, or of one of its partitions.

    begin ──▶ session, position, next offset
    round:  changes since the position ──▶ drop, replace      then the position advances
            messages from the next offset on ──▶ add          then the next offset advances
            changes are missing ──▶ all pages of messages and dead letters; copies of others in their ranges are dropped

Changes are read before messages, so a change of a message after it was read is among the next changes.
"""

from collections.abc import Sequence
from typing import Protocol

from storage.domain.names import LogId, QueueName
from storage.domain.queues.copies import (
    CopyReached,
    CopyStep,
    DropCopies,
    PutCopy,
    QueueChanges,
    QueueContentsPage,
    RetainCopies,
)
from storage.queues.copies import QueueCopies


class QueueOrigin(Protocol):
    """Queues of the origin."""

    async def changes(
        self, queue: str, position: str, *, partition: int, next_offset: int, wait_ms: int
    ) -> QueueChanges:
        """Return what has changed in a partition since a position, or wait for it."""
        ...

    async def contents(
        self, queue: str, *, partition: int, after: int, dead: bool
    ) -> QueueContentsPage:
        """Return messages or dead letters of a partition behind an offset."""
        ...


class CopyRefused(Exception):
    """Refusal to copy a queue; the text says why."""


class CopySuperseded(Exception):
    """Another process has begun to copy the queue."""


class QueueCopier:
    """Copier of one partition of a queue. Offsets are those of the origin's log.

    `partitions`: how many the queue has there; `added`: number of messages added.
    """

    def __init__(
        self,
        queue: str,
        target: QueueName,
        origin: QueueOrigin,
        copies: QueueCopies,
        partition: int = 0,
    ) -> None:
        self._queue = queue
        self._target = target
        self._origin = origin
        self._copies = copies
        self._partition = partition
        self._session = 0
        self._position = ""
        self.origin_id: LogId = ""
        self.partitions = 1
        self.next_offset = 0
        self.tip = 0
        self.behind_ms = 0
        self.added = 0

    async def begin(self) -> None:
        """Begin or continue, in the place of any other copier of the queue. Raises CopyRefused."""
        changes = await self._changes(wait_ms=0)
        own = None if changes.copy_of is None else (changes.copy_of, changes.copied_to)
        start = await self._copies.begin(
            self._target, changes.queue_id, own, partition=self._partition
        )
        if start is None:
            raise CopyRefused(
                f"Queue '{self._target.name}' accepts messages of its own here: delete it to have it copied"
            )
        self.origin_id, self.tip = changes.queue_id, changes.next_offset
        self.partitions = changes.partitions
        self._session, self._position, self.next_offset = start

    async def copy(self, wait_ms: int) -> None:
        """Copy what is new, or wait for it. Raises CopySuperseded."""
        changes = await self._changes(self._position, self.next_offset, wait_ms=wait_ms)
        if changes.partitions != self.partitions:
            raise CopyRefused(f"The number of partitions of queue '{self._queue}' has changed")
        if changes.queue_id != self.origin_id:  # deleted there, and made again
            await self.begin()
            return
        self.tip = changes.next_offset
        if not changes.complete:
            await self._copy_everything(changes)
            return
        await self._apply(self._steps_of(changes), position=changes.position)
        if changes.next_offset > self.next_offset:
            await self._copy_new(changes)
        self.behind_ms = 0

    async def _changes(
        self, position: str = "", next_offset: int = 0, *, wait_ms: int
    ) -> QueueChanges:
        return await self._origin.changes(
            self._queue,
            position,
            partition=self._partition,
            next_offset=next_offset,
            wait_ms=wait_ms,
        )

    def _steps_of(self, changes: QueueChanges) -> list[CopyStep]:
        """Return the steps for changes of messages that are copied already, and for dead letters."""
        changed = [
            message
            for message in changes.changed
            if message.offset < self.next_offset or message.died_at_ms is not None
        ]
        steps: list[CopyStep] = [PutCopy(message, replaces=True) for message in changed]
        if changes.purged_before:
            retained = [message.offset for message in changed]
            steps.append(RetainCopies(retained, -1, changes.purged_before - 1, dead=False))
        if changes.removed:
            steps.append(DropCopies(changes.removed))
        return steps

    async def _copy_new(self, changes: QueueChanges) -> None:
        after: int | None = self.next_offset - 1
        while after is not None:
            page = await self._page(after, dead=False)
            after = page.after
            await self._apply(
                [PutCopy(message, replaces=False) for message in page.messages],
                next_offset=self._next_behind(page, changes),
            )
            self._note_arrival(page, changes)

    async def _copy_everything(self, changes: QueueChanges) -> None:
        next_offset = changes.next_offset
        for dead in (False, True):
            after: int | None = -1
            while after is not None:
                page = await self._page(after, dead=dead)
                offsets = [message.offset for message in page.messages]
                steps: list[CopyStep] = [RetainCopies(offsets, after, page.after, dead)]
                steps += [PutCopy(message, replaces=False) for message in page.messages]
                await self._apply(steps)
                after, next_offset = page.after, max(next_offset, *(at + 1 for at in offsets), 0)
                self._note_arrival(page, changes)
        await self._apply([], position=changes.position, next_offset=next_offset)

    async def _page(self, after: int, *, dead: bool) -> QueueContentsPage:
        """Read a page. Raises CopyRefused if the queue was deleted and made again."""
        page = await self._origin.contents(
            self._queue, partition=self._partition, after=after, dead=dead
        )
        if page.queue_id != self.origin_id:
            raise CopyRefused(f"Queue '{self._queue}' was deleted and created again")
        return page

    def _next_behind(self, page: QueueContentsPage, changes: QueueChanges) -> int:
        if page.after is not None:
            return page.after + 1
        last = page.messages[-1].offset + 1 if page.messages else 0
        return max(last, changes.next_offset, self.next_offset)

    def _note_arrival(self, page: QueueContentsPage, changes: QueueChanges) -> None:
        if page.after is not None and page.messages:
            self.behind_ms = max(0, changes.now_ms - page.messages[-1].arrival_ms)

    async def _apply(
        self,
        steps: Sequence[CopyStep],
        *,
        position: str | None = None,
        next_offset: int | None = None,
    ) -> None:
        applied = await self._copies.apply(
            self._target,
            steps,
            CopyReached(self._session, position, next_offset),
            partition=self._partition,
        )
        if applied is None:
            raise CopySuperseded
        self.added += applied.added
        if position is not None:
            self._position = position
        if next_offset is not None:
            self.next_offset = next_offset
