"""Verbs of a queue that is copied, and of a copy."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.domain.clock import ScriptTime
from storage.domain.names import LogId
from storage.domain.queues.copies import (
    CopiedMessage,
    CopiesApplied,
    CopyReached,
    CopyStart,
    CopyStep,
)
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.contents import BrowsePage


class ChangeList(NamedTuple):
    """Changes of a queue since a position, oldest first.

    `changes` are a field and an offset: `g` removed, `c` changed, `p` everything before it purged. `is_complete`: no change since the
    position is missing; otherwise none is listed. `left`: number of changes behind them. `number`: that of the last one.
    """

    now_ms: int
    store_epoch: int
    number: int
    is_complete: bool
    next_offset: int
    left: int
    is_fenced: bool
    copy_of: LogId | None
    copied_to: int
    changes: Sequence[tuple[bytes, int]]


class QueueCopyStore(Protocol):
    """Operations on copies. Raises LogNotReady where the log needs repair first."""

    async def changes(
        self, queue: Queue, position: tuple[int, int] | None, next_offset: int, now: ScriptTime
    ) -> ChangeList:
        """Return what has changed since a position: a store epoch, and the number of a change.

        If nothing has, and there is no message from `next_offset` on, the next send publishes a wake-up.
        """
        ...

    async def at(
        self, queue: Queue, offsets: Sequence[int], now: ScriptTime
    ) -> tuple[list[CopiedMessage], int]:
        """Return those of these messages that exist, dead letters or not.

        Also returns how many of the offsets were examined: fewer than all if the messages are too large.
        """
        ...

    async def contents(
        self, queue: Queue, page: BrowsePage, *, dead: bool, now: ScriptTime
    ) -> tuple[list[CopiedMessage], int | None]:
        """Return messages or dead letters, and the offset to continue after, None at the end."""
        ...

    async def begin(
        self, copy: Queue, origin_id: LogId, own: tuple[LogId, int] | None, now: ScriptTime
    ) -> CopyStart | None:
        """Begin or continue to copy the queue `origin_id`; None if `copy` accepts own messages.

        `own`: the queue that `origin_id` is a copy of itself, and up to which offset.
        """
        ...

    async def apply(
        self,
        copy: Queue,
        steps: Sequence[CopyStep],
        reached: CopyReached,
        store_epoch: int,
        now: ScriptTime,
    ) -> CopiesApplied | None:
        """Apply steps in order; None if the session was superseded, and nothing happened."""
        ...

    async def end(self, copy: Queue) -> bool:
        """Let a copy take and deliver messages; return False if it did before."""
        ...
