"""Moves: what takes the messages of one queue to others, a few at a time, until none is left.

running ─▶ completed            cancelling ─▶ cancelled
   ├─────▶ failed                   ▲
   └────────────────────────────────┘ cancel
"""

from enum import StrEnum

import msgspec

from storage.domain.names import QueueName
from storage.domain.queues.message import WhichDead


class MoveState(StrEnum):
    """How far a move is."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One move. Without a destination each message goes back to the queue that it died in.

    `to_move` is how many there were at the start; `per_second` 0: as fast as it goes. With `which_dead` it is a
    redrive: the queue's own dead letters become ready again, of those that it has not `looked_at` yet.
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
    looked_at: int = -1
