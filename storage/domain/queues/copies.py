"""Copies of a queue in another deployment: its messages and changes, and steps of a copy."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from storage.domain.log.record_batch import Headers, Record
from storage.domain.names import LogId


class CopiedHeader(msgspec.Struct, frozen=True, gc=False):
    """A header; the type is empty outside SQS."""

    name: str
    type: str
    value: bytes


class CopiedMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message with all that a copy needs. Times are milliseconds since 1970.

    `headers` include reserved ones. `retained_from_ms`: start of its retention, 0 for its arrival. `due_at_ms`: None unless it is
    delayed. `died_at_ms`: None unless it is a dead letter, then with its `reason`. A message in flight, or in transfer to another
    queue, is shown as ready.
    """

    offset: int
    data: bytes
    headers: tuple[CopiedHeader, ...]
    arrival_ms: int
    retained_from_ms: int = 0
    due_at_ms: int | None = None
    expires_at_ms: int = 0
    group: str = ""
    priority: int = 0
    receive_count: int = 0
    failures: int = 0
    crash_count: int = 0
    first_received_at_ms: int = 0
    last_failure_reason: str = ""
    details: str = ""
    died_at_ms: int | None = None
    reason: str = ""

    @property
    def record(self) -> Record:
        """The message as it is stored."""
        return Record(
            self.data, headers=tuple((one.name, one.type, one.value) for one in self.headers)
        )

    def has_header(self, name: str) -> bool:
        """Return whether there is a header of this name."""
        return any(header.name == name for header in self.headers)


def copied_headers(headers: Headers) -> tuple[CopiedHeader, ...]:
    """Return a record's headers as a copied message has them."""
    return tuple(CopiedHeader(*header) for header in headers)


class QueueChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of the messages of a queue, or of one of its partitions, since a position.

    `queue_id` and `copy_of` are ids of logs, and offsets those of the log. `partitions`: how many the queue has, also those that
    are closed and may have messages.
    `complete` is False if changes since that position are not recorded any more: then all messages have to be copied again, and
    changes from `position` on apply to that. `changed` are messages that failed, died, were redriven or edited, as they are now.
    `removed` were acknowledged, expired, moved or deleted; so was everything before `purged_before`, except for dead letters and
    `changed`.

    Messages from `next_offset` on do not exist yet. `truncated`: further changes follow at once. `fenced`: the queue accepts no
    messages, and delivers none. `copy_of`: what it is a copy of itself, up to `copied_to`; None if there is none.
    """

    queue_id: LogId
    position: str
    complete: bool
    removed: tuple[int, ...]
    changed: tuple[CopiedMessage, ...]
    purged_before: int = 0
    next_offset: int
    truncated: bool
    now_ms: int
    fenced: bool
    copy_of: LogId | None = None
    copied_to: int = 0
    partitions: int = 1


class QueueContentsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a queue, or of one of its partitions, by offset.

    `after`: the offset to continue after, None at the end.
    """

    queue_id: LogId
    messages: tuple[CopiedMessage, ...]
    after: int | None


class CopyStart(NamedTuple):
    """Session and progress of a copy. A later start of the same copy ends the session."""

    session: int
    position: str
    next_offset: int


class PutCopy(NamedTuple):
    """Add a message, or replace the copy of it: always, or only if it differs."""

    message: CopiedMessage
    replaces: bool


class DropCopies(NamedTuple):
    """Drop the copies of messages."""

    offsets: Sequence[int]


class RetainCopies(NamedTuple):
    """Drop the copies of other messages, or of other dead letters, in a range of offsets.

    The range is behind `after`, up to `until`; None: without an end.
    """

    offsets: Sequence[int]
    after: int
    until: int | None
    dead: bool


CopyStep = PutCopy | DropCopies | RetainCopies
"""A step that makes a copy what the other queue is. Offsets are those of the other queue."""


class CopyReached(NamedTuple):
    """Session of a copy, and its progress after the steps; None: unchanged."""

    session: int
    position: str | None = None
    next_offset: int | None = None


class CopiesApplied(NamedTuple):
    """Result of steps: messages added, the next offset, and the offsets below its ceiling.

    If it `is_finished` is False, the steps have to be applied again.
    """

    added: int
    next_offset: int
    left: int
    is_finished: bool
