"""Verbs of a queue's owner on its contents: messages, dead letters, parked groups."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.domain.clock import ScriptTime
from storage.domain.log.record_batch import Record
from storage.domain.queues.history import Noted
from storage.domain.queues.message import (
    BrowsedMessage,
    DeadLetter,
    DeathReason,
    MessageState,
)
from storage.domain.queues.policies import ParkedGroup
from storage.domain.queues.queue import Queue


class BrowsePage(NamedTuple):
    """Messages to browse: at most so many, behind an offset."""

    after_offset: int
    messages_max: int


class DeadSelection(NamedTuple):
    """Dead letters of a reason, of a group, at offsets; an empty one does not restrict."""

    reason: str
    group: str
    offsets: Sequence[int]


class RedelayCursor(NamedTuple):
    """Position of a redelay: the next offset, and the due time of the message before it."""

    offset: int = -1
    due_ms: int = 0


class QueueContentStore(Protocol):
    """Operations on a queue's contents. Raises LogNotReady where the log needs repair first."""

    async def browse(
        self, queue: Queue, page: BrowsePage, state: MessageState | None, now: ScriptTime
    ) -> tuple[list[BrowsedMessage], int | None]:
        """Return messages in sending order, and the offset to continue after, None at the end."""
        ...

    async def change(
        self, queue: Queue, offset: int, delay_ms: int | None, priority: int | None, now: ScriptTime
    ) -> None:
        """Change when a waiting message is due, or its priority.

        Raises MessageNotFound, MessageInFlight.
        """
        ...

    async def redelay(
        self, queue: Queue, cursor: RedelayCursor, before_ms: int, now: ScriptTime
    ) -> RedelayCursor | None:
        """Apply the queue's delay, until now `before_ms`, to a page of messages; None at the end."""
        ...

    async def record(self, queue: Queue, offset: int) -> Record:
        """Return the record of a message, dead-lettered or not. Raises MessageNotFound."""
        ...

    async def replace(self, queue: Queue, offset: int, record: Record, now: ScriptTime) -> None:
        """Replace the record of a waiting or dead-lettered message.

        Raises MessageNotFound, MessageInFlight.
        """
        ...

    async def drop(self, queue: Queue, offset: int, now: ScriptTime) -> bool:
        """Drop one message; return whether it existed."""
        ...

    async def history(
        self, queue: Queue, offset: int | None, after: str
    ) -> tuple[list[Noted], str]:
        """Return events of one message, or of all.

        At most HISTORY_SCANNED_MAX events are examined. The second value is the event to continue after, empty at the end.
        """
        ...

    async def dead_letters(
        self, queue: Queue, page: BrowsePage
    ) -> tuple[list[DeadLetter], int | None]:
        """Return dead letters in sending order, and the offset to continue after, None at the end."""
        ...

    async def redrive(
        self, queue: Queue, page: BrowsePage, selection: DeadSelection, now: ScriptTime
    ) -> tuple[int, int | None]:
        """Make dead letters ready again.

        Returns their number, and the offset to continue after, None at the end.
        """
        ...

    async def death_reasons(
        self, queue: Queue, after_offset: int
    ) -> tuple[list[DeathReason], int | None]:
        """Return a batch of dead letters by reason.

        Also returns the offset to continue after, None at the end.
        """
        ...

    async def parked_groups(self, queue: Queue, after: str, groups_max: int) -> list[ParkedGroup]:
        """Return parked groups by name, from the first after `after`."""
        ...

    async def park(self, queue: Queue, group: str, reason: str, now: ScriptTime) -> None:
        """Suspend the delivery of a group until it is resumed; a parked one is unchanged."""
        ...

    async def resume(self, queue: Queue, group: str) -> int | None:
        """Resume the delivery of a parked group.

        Returns how many messages waited, None when it was not parked.
        """
        ...
