"""Verbs of a transfer of messages between queues, one for each step."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from storage.domain.clock import ScriptTime
from storage.domain.log.record_batch import Record
from storage.domain.queues.queue import Queue


class Moving(msgspec.Struct, frozen=True, gc=False):
    """A message in transfer.

    `move_id` is empty for one that was received too often, for `reason`.
    """

    offset: int
    arrival_ms: int
    group: str
    receive_count: int
    first_received_at_ms: int
    record: Record
    move_id: str
    priority: int
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


class TransferStore(Protocol):
    """Operations of a transfer. Raises LogNotReady where the log needs repair first."""

    async def moving(self, source: Queue, messages_max: int) -> list[Moving]:
        """Return messages in transfer from `source`, in the order they were sent."""
        ...

    async def depart(self, source: Queue, messages_max: int, move_id: str, now: ScriptTime) -> int:
        """Start the transfer of ready messages; return how many.

        Fewer than `messages_max` means that no more are ready.
        """
        ...

    async def accept(
        self, target: Queue, arriving: Sequence[Arriving], store_epoch: int, now: ScriptTime
    ) -> tuple[int, int]:
        """Deliver messages to `target`; return its next offset, and the offsets below its ceiling."""
        ...

    async def clear(
        self, source: Queue, offsets: Sequence[int], now: ScriptTime, *, put_back: bool
    ) -> int:
        """Remove messages that have arrived, or make them ready again.

        Returns how many were still moving.
        """
        ...
