"""Verbs of transfers: to other queues, or to the topic of a queue's routes."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from storage.domain.clock import ScriptTime
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId
from storage.domain.queues.queue import Queue


class Moving(msgspec.Struct, frozen=True, gc=False):
    """A message in transfer.

    `position` identifies the transfer: the offset, or on the way to a topic a number above every offset that rises with each
    departure. `move_id` is empty for one that was received too often, for `reason`. `expires_at_ms`: 0 without a time to live of its
    own.
    """

    position: int
    offset: int
    arrival_ms: int
    group: str
    receive_count: int
    first_received_at_ms: int
    record: Record
    move_id: str
    priority: int
    expires_at_ms: int
    failures: int
    crash_count: int
    reason: str
    last_failure_reason: str
    details: str


class Arriving(msgspec.Struct, frozen=True, gc=False):
    """A message as its target should accept it.

    `source` identifies it in its source queue; counts continue from `receives`. `renewed`: its retention starts again.
    """

    source: str
    record: Record
    arrival_ms: int
    renewed: bool
    group: str
    receive_count: int
    first_received_at_ms: int
    priority: int


class Departures(NamedTuple):
    """Messages in transfer to a topic, in the order of their departures.

    `name` is that of the sequence of their positions: one for each life of the log's lease state. Empty before the first departure.
    """

    name: str
    messages: list[Moving]

    def producer_id(self, log_id: LogId) -> str:
        """Return the id of the monotonic producer of a log, whose sequences are the positions."""
        return f"queues.{log_id}.{self.name}"


class Departure(NamedTuple):
    """Messages that departed, and when the next one may be ready: -1 without one that waits."""

    routed: Departures
    next_due_ms: int
    now_ms: int


class TransferStore(Protocol):
    """Operations of a transfer. Raises LogNotReady where the log needs repair first."""

    async def moving(self, source: Queue, messages_max: int) -> Departures:
        """Return messages in transfer from `source`, except those that routes take.

        Those to queues in the order they were sent, then dead letters for a topic; `messages_max` of each.
        """
        ...

    async def routed(self, source: Queue, messages_max: int) -> Departures:
        """Return messages in transfer from `source` to the topic of its routes."""
        ...

    async def depart(self, source: Queue, messages_max: int, move_id: str, now: ScriptTime) -> int:
        """Start the transfer of ready messages; return how many.

        Fewer than `messages_max` means that no more are ready.
        """
        ...

    async def depart_routed(
        self, source: Queue, messages_max: int, bytes_max: int, now: ScriptTime
    ) -> Departure:
        """Start the transfer of ready messages to the topic of the routes, and return them.

        Those in transfer already are returned instead: a batch begins behind the former one, so that positions arrive in order.
        None of a queue that is fenced. If none is ready, a waiting caller is woken when one becomes so. No more follow a message
        that reaches `bytes_max`.
        """
        ...

    async def accept(
        self, target: Queue, arriving: Sequence[Arriving], store_epoch: int, now: ScriptTime
    ) -> tuple[int, int]:
        """Deliver messages to `target`; return its next offset, and the offsets below its ceiling."""
        ...

    async def clear(
        self, source: Queue, positions: Sequence[int], now: ScriptTime, *, put_back: bool
    ) -> int:
        """Remove messages that have arrived, or make them ready again.

        Returns how many were still moving.
        """
        ...

    async def reject(
        self, source: Queue, positions: Sequence[int], reason: str, now: ScriptTime
    ) -> int:
        """Make messages dead letters of `source`; return how many were still moving."""
        ...
