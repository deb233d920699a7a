"""Sends and settlements of a queue with partitions: each call is divided among them.

Messages with a group go to the partition of the group. Others of a call stay together: in the partition of its
idempotency key, so that a repeat meets the memory of the first call, or in the partition whose turn it is. A call whose
messages have groups of several partitions is not one step: all or none of each partition's messages are added.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TypeVar

import attrs
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import (
    MillstreamError,
    OutcomeUnknown,
    QueueFull,
    ReceiptHandleInvalid,
    StorageUnavailable,
)
from storage.domain.queues.message import (
    NewMessage,
    ReceiptHandle,
    SentMessage,
    Settled,
    Settlement,
)
from storage.domain.queues.partitions import divide, partition_of, with_queue_offsets
from storage.domain.queues.queue import Queue
from storage.domain.streams.idempotence import SequencedBatch
from storage.hot_store.errors import PartitionsChanged
from storage.hot_store.queues.store import SendPart, Verdict
from storage.log.queue_executor import QueueExecutor
from storage.queues.partitions.memory import PartitionMemory, key_of
from storage.queues.partitions.order import PartitionOrder

T = TypeVar("T")

SendTo = Callable[[SendPart, Queue], Awaitable[list[SentMessage]]]
SendAbove = Callable[[Sequence[int], int, Queue], Awaitable[int]]
"""Sends those of some messages, by number, that lie above their producers' marks, in a generation."""
SettleIn = Callable[[Sequence[Verdict], Queue], Awaitable[list[Settled]]]

_PARTLY_FULL = "A partition of the queue is full; a repetition adds no message again."
_PARTLY_SENT = (
    "A partition failed after others had added their messages; the call may have taken effect. Repeat it with the same "
    "idempotency key or deduplication ids."
)


@attrs.define(eq=False, slots=False)
class PartitionSender:
    """Divides the sends and settlements of queues among their partitions."""

    _executor: QueueExecutor
    _order: PartitionOrder
    _memory: PartitionMemory

    async def send(
        self, queue: Queue, messages: Sequence[NewMessage], part: SendPart, send_to: SendTo
    ) -> list[SentMessage]:
        """Send a part to the partitions of its messages; return one result for each message.

        Raises OutcomeUnknown if a partition failed after another had added its messages.
        """
        keys = [message.group or part.idempotency_key for message in messages]
        if not any(keys):
            return await self._send_anywhere(queue, part, send_to)
        sent: dict[int, SentMessage] = {}
        if part.idempotency_key and queue.partition_sets:
            sent = await self._memory.sent_before(queue, keys, part)
        left = [number for number in range(len(messages)) if number not in sent]
        part = replace(
            part,
            idempotency_key=key_of(part, queue.generation),
            generation=queue.generation,
        )
        if left:
            sent.update(await self._send_left(queue, keys, left, part, send_to))
        return [sent[number] for number in range(len(messages))]

    async def _send_left(
        self,
        queue: Queue,
        keys: Sequence[str],
        left: Sequence[int],
        part: SendPart,
        send_to: SendTo,
    ) -> dict[int, SentMessage]:
        """Send the messages that were not sent before; return the results by number."""
        shares = self._divide(queue, keys, left)
        results = await self._executor.attempt_all(
            (
                partition,
                partial(
                    send_to, replace(part, encoded=[part.encoded[number] for number in numbers])
                ),
            )
            for partition, numbers in shares
        )
        sent: dict[int, SentMessage] = {}
        for (partition, numbers), messages in zip(shares, _all_of(results), strict=True):
            sent.update(zip(numbers, with_queue_offsets(partition, messages), strict=True))
        return sent

    async def send_sequenced(
        self,
        queue: Queue,
        messages: Sequence[NewMessage],
        batch: SequencedBatch,
        send_above: SendAbove,
    ) -> int:
        """Send the messages of monotonic producers that were not sent before; return how many.

        Raises QueueFull if a partition is full, also if others have added their messages: in parts, the call may succeed. Raises
        OutcomeUnknown if a partition failed otherwise after another had added its messages.
        """
        keys = [
            message.group or producer_id
            for message, producer_id in zip(messages, batch.producer_ids, strict=True)
        ]
        left: Sequence[int] = range(len(keys))
        if queue.partition_sets:
            left = await self._memory.not_sent(queue, keys, batch)
        results = await self._executor.attempt_all(
            (partition, partial(send_above, numbers, queue.generation))
            for partition, numbers in self._divide(queue, keys, left)
        )
        full = [isinstance(result, QueueFull) for result in results]
        failed = [isinstance(result, BaseException) for result in results]
        if any(full) and full == failed:
            raise QueueFull(_PARTLY_FULL)
        return sum(_all_of(results))

    async def _send_anywhere(
        self, queue: Queue, part: SendPart, send_to: SendTo
    ) -> list[SentMessage]:
        """Send a part to the partition whose turn it is, or to another one.

        That is the next one with room for it, or one of a few others while the store of the first is away.
        """
        first = self._order.next_send(queue)
        others = [partition for partition in queue.open_partitions if partition is not first]
        unavailable = 0
        for partition in (first, *others[:-1]) if others else ():
            try:
                return await self._send_to(partition, part, send_to)
            except QueueFull:
                continue
            except StorageUnavailable:  # nothing happened
                unavailable += 1
                if unavailable > limits.PARTITIONS_TRIED_MAX:
                    raise
        return await self._send_to(others[-1] if others else first, part, send_to)

    async def _send_to(
        self, partition: Queue, part: SendPart, send_to: SendTo
    ) -> list[SentMessage]:
        sent = await self._executor.run(partition.name, partial(send_to, part), partition)
        return with_queue_offsets(partition, sent)

    def _divide(
        self, queue: Queue, keys: Sequence[str], numbers: Iterable[int]
    ) -> list[tuple[Queue, list[int]]]:
        """Group the numbers of items by partition; those without a key go together to one."""
        next_send = lru_cache(partial(self._order.next_send, queue))
        return divide(
            numbers,
            lambda number: partition_of(queue, keys[number]) if keys[number] else next_send(),
        )

    async def settle(
        self, queue: Queue, settlements: Sequence[Settlement], settle_in: SettleIn
    ) -> list[Settled | None]:
        """Settle deliveries in their partitions; None for a receipt handle of no partition.

        If a partition fails, its settlements have that error; if all do, it is raised.
        """
        logs = {partition.log_id: partition for partition in queue.partitions}
        verdicts: dict[int, Verdict] = {}
        for number, settlement in enumerate(settlements):
            with suppress(ReceiptHandleInvalid):
                handle = ReceiptHandle.decode_any(settlement.receipt_handle)
                if handle.log_id in logs:
                    verdicts[number] = settlement, handle
        shares = divide(verdicts, lambda number: logs[verdicts[number][1].log_id])
        results = await self._executor.attempt_all(
            (partition, partial(settle_in, [verdicts[number] for number in numbers]))
            for partition, numbers in shares
        )
        if all(isinstance(result, BaseException) for result in results):
            _all_of(results)  # raises, unless no handle names a partition
        settled: list[Settled | None] = [None] * len(settlements)
        for (_, numbers), result in zip(shares, results, strict=True):
            share = (
                [_failed(result)] * len(numbers) if isinstance(result, BaseException) else result
            )
            for number, result_of in zip(numbers, share, strict=True):
                settled[number] = result_of
        return settled


def _all_of(results: Sequence[T | BaseException]) -> list[T]:
    """Return the results of partitions, or raise a failure among them.

    It is an unknown outcome if another partition has added messages.
    """
    failures = [result for result in results if isinstance(result, BaseException)]
    if not failures:
        return [result for result in results if not isinstance(result, BaseException)]
    if any(isinstance(failure, PartitionsChanged) for failure in failures):
        raise PartitionsChanged  # what was added is found when the call is repeated
    for failure in failures:
        if not isinstance(failure, MillstreamError):
            raise failure
    if len(failures) < len(results):
        raise OutcomeUnknown(_PARTLY_SENT) from failures[0]
    unknown = [failure for failure in failures if isinstance(failure, OutcomeUnknown)]
    raise (unknown or failures)[0]


def _failed(failure: BaseException) -> Settled:
    if isinstance(failure, MillstreamError):
        return Settled(failure.code)
    raise failure
