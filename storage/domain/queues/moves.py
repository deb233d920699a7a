"""Move jobs: transfer the messages of one queue to others in batches until none is left.

running ─▶ completed            cancelling ─▶ cancelled
   ├─────▶ failed                   ▲
   └────────────────────────────────┘ cancel
"""

from enum import StrEnum

import msgspec

from storage.domain.names import QueueName
from storage.domain.queues.message import WhichDead

QUEUE_NOT_FOUND = "queue_not_found"
"""Failure: the source or the destination was deleted."""

QUEUE_READ_ONLY = "queue_read_only"
"""Failure: the destination is a copy of another deployment's queue, or was moved there."""

MESSAGE_SOURCE_UNKNOWN = "message_source_unknown"
"""Failure: a message was not dead-lettered, and so has no queue to return to."""


class MoveState(StrEnum):
    """State of a move job."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One move. Without a destination each message returns to the queue that dead-lettered it.

    `to_move` is the number of messages at the start; `per_second` 0 means no rate limit. With `which_dead`
    it is a redrive: the queue's own dead letters that match become ready again, those behind offset
    `examined_to` still to be examined.
    """

    move_id: str
    source: QueueName
    destination: QueueName | None
    per_second: int
    state: MoveState
    moved: int
    to_move: int
    failure: str
    started_at_ms: int
    which_dead: WhichDead | None = None
    examined_to: int = -1
