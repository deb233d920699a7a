"""Verbs of queues: send, receive, settle, count, sweep and purge."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from storage.domain.clock import ScriptTime
from storage.domain.queues.message import (
    ReceiptHandle,
    ReceivedMessage,
    SentMessage,
    Settled,
    Settlement,
)
from storage.domain.queues.queue import Queue, QueueStats
from storage.domain.streams.idempotence import SequenceRange


class SendPart(msgspec.Struct, frozen=True, gc=False):
    """One caller's messages, already encoded: (batch, options) for each.

    `claims` are those of monotonic producers, without a key; then the result may be PartialDuplicate. `generation`: of the
    queue's partitions; a part with a key or claims of an earlier one than the log knows raises PartitionsChanged.
    """

    encoded: Sequence[tuple[bytes, bytes]]
    idempotency_key: str = ""
    fingerprint: str = ""
    claims: tuple[SequenceRange, ...] = ()
    generation: int = 0

    @property
    def size_bytes(self) -> int:
        """Approximate size, as if all were like the first."""
        return len(self.encoded) * len(self.encoded[0][0])


class PartSent(msgspec.Struct, frozen=True, gc=False):
    """Messages sent for a part; none for a part with claims that had all been sent before.

    `left`: offsets that are reserved beyond the log's end.
    """

    messages: list[SentMessage]
    left: int


class SentBefore(msgspec.Struct, frozen=True, gc=False):
    """Memory of a log of earlier sends.

    `offsets`: those of the messages of an idempotency key, None if it does not know the key. `lasts`: of monotonic producers,
    in the order they were asked for; NO_WATERMARK or WRITER_RETIRED without one.
    """

    offsets: Sequence[int] | None
    lasts: Sequence[int]


class HotReceive(msgspec.Struct, frozen=True):
    """Result of a receive; `next_due_ms`: when to retry if it is empty, -1 for never.

    `departed` messages are being transferred to the dead-letter queue. `served` is False if the parts before it received
    as many messages as one call delivers: then the caller repeats the receive.
    """

    messages: list[ReceivedMessage]
    now_ms: int
    next_due_ms: int
    departed: int
    served: bool = True


class ReceivePart(msgspec.Struct, frozen=True, gc=False):
    """One caller's receive. `abandoned` gets the messages if the caller disconnects first.

    `consumer`: the key of the consumer, empty if it is not tracked.
    """

    messages_max: int
    visibility_timeout_ms: int
    bytes_max: int
    register_waiter: bool
    attempt_id: str
    strict_attempt: bool
    abandoned: Callable[[list[ReceivedMessage]], None]
    consumer: bytes = b""


Verdict = tuple[Settlement, ReceiptHandle]


class SweepResult(msgspec.Struct, frozen=True):
    """Result of a round of maintenance.

    `work`: pieces of work done, 0 when there is none left; `moving`: messages in transfer to another queue; `has_view`:
    the queue has a stream view.
    """

    work: int
    moving: int
    has_view: bool


class QueueStore(Protocol):
    """Operations of a queue. Raises LogNotReady where the log needs repair first.

    Concurrent calls of several callers on one queue are coalesced into one script call: a call's own part is a fraction
    of its cost.
    """

    def send(
        self, queue: Queue, part: SendPart, store_epoch: int, now: ScriptTime
    ) -> Awaitable[PartSent]:
        """Send a part together with others of the same flush."""
        ...

    async def sent_before(
        self,
        log: Queue,
        generation: int,
        part: SendPart,
        producer_ids: Sequence[str],
        now: ScriptTime,
    ) -> SentBefore:
        """Return what a log remembers of a part's key and of producers.

        From then on it refuses parts of earlier generations, so that the answer stays true. Raises PartitionsChanged,
        IdempotencyKeyReused.
        """
        ...

    async def receive(
        self, queue: Queue, part: ReceivePart, *, receives_max: int, now: ScriptTime
    ) -> HotReceive:
        """Receive ready messages. Raises InFlightLimitReached."""
        ...

    async def settle(
        self, queue: Queue, verdicts: Sequence[Verdict], any_delivery: bool, now: ScriptTime
    ) -> list[Settled]:
        """Settle deliveries; return one result for each."""
        ...


class QueueStateStore(Protocol):
    """Operations of an owner on a queue. Raises LogNotReady where the log needs repair first."""

    async def sweep(self, queue: Queue, now: ScriptTime) -> SweepResult:
        """Run one bounded round of maintenance."""
        ...

    async def is_idle(self, queue: Queue, idle_ms: int, now: ScriptTime) -> bool:
        """Return whether nobody has used the queue for a time, which the first call begins."""
        ...

    async def delete_idle(self, queue: Queue, idle_ms: int, now: ScriptTime) -> bool:
        """Delete the queue's log if nobody has used it for a time; return whether it did so."""
        ...

    async def stats(self, queue: Queue, now: ScriptTime) -> QueueStats:
        """Return the current counts by state."""
        ...

    async def purge(self, queue: Queue, at_most_every_ms: int, now: ScriptTime) -> int:
        """Drop every message but the dead letters; return how many. Raises PurgeInProgress."""
        ...
