"""Sends and settlements of a queue with partitions: each call is divided among them.

Messages with a group go to the partition of the group. Others of a call stay together: in the partition of its
idempotency key, so that a repeat meets the memory of the first call, or in the partition whose turn it is. A call whose
messages have groups of several partitions is not one step: all or none of each partition's messages are added.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

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
from storage.domain.queues.partitions import partition_of
from storage.domain.queues.queue import Queue
from storage.domain.streams.idempotence import SequencedBatch
from storage.hot_store.errors import PartitionsChanged
from storage.hot_store.queues.store import SendPart, Verdict
from storage.log.queue_executor import QueueExecutor
from storage.queues.partitions.memory import PartitionMemory, key_of
from storage.queues.partitions.order import PartitionOrder

SendTo = Callable[[SendPart, Queue], Awaitable[list[SentMessage]]]
SettleIn = Callable[[Sequence[Verdict], Queue], Awaitable[list[Settled]]]

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
        if not any(keys):
            return dict(enumerate(await self._send_anywhere(queue, part, send_to)))
        shares = self.shares_of(queue, keys, left)
        results = await asyncio.gather(
            *(
                self._send_to(
                    partition,
                    replace(part, encoded=[part.encoded[number] for number in numbers]),
                    send_to,
                )
                for partition, numbers in shares
            ),
            return_exceptions=True,
        )
        _raise_failure(results)
        sent: dict[int, SentMessage] = {}
        for (_, numbers), result in zip(shares, results, strict=True):
            if not isinstance(result, BaseException):
                sent.update(zip(numbers, result, strict=True))
        return sent

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
        async def send(log: Queue) -> list[SentMessage]:
            return await send_to(part, log)

        sent = await self._executor.run(partition.name, send, partition)
        base = partition.first_offset
        return (
            [replace(message, offset=base + message.offset) for message in sent] if base else sent
        )

    def shares_of(
        self, queue: Queue, keys: Sequence[str], numbers: Iterable[int]
    ) -> list[tuple[Queue, list[int]]]:
        """Return the numbers of the items of each partition, by the items' keys.

        Those without a key go together to one partition.
        """
        shares: dict[int, list[int]] = {}
        together: int | None = None
        for number in numbers:
            key = keys[number]
            if key:
                partition = partition_of(queue, key).partition
            else:
                if together is None:
                    together = self._order.next_send(queue).partition
                partition = together
            shares.setdefault(partition, []).append(number)
        return [(queue.partitions[partition], numbers) for partition, numbers in shares.items()]

    async def not_sent(
        self, queue: Queue, keys: Sequence[str], batch: SequencedBatch
    ) -> Sequence[int]:
        """Return the numbers of a batch's messages that no former partition has."""
        if not queue.partition_sets:
            return range(len(keys))
        return await self._memory.not_sent(queue, keys, batch)

    async def settle(
        self, queue: Queue, settlements: Sequence[Settlement], settle_in: SettleIn
    ) -> list[Settled | None]:
        """Settle deliveries in their partitions; None for a receipt handle of no partition.

        If a partition fails, its settlements have that error; if all do, it is raised.
        """
        logs = {partition.log_id: partition for partition in queue.partitions}
        shares: dict[str, list[tuple[int, Verdict]]] = {}
        for number, settlement in enumerate(settlements):
            try:
                handle = ReceiptHandle.decode_any(settlement.receipt_handle)
            except ReceiptHandleInvalid:
                continue
            if handle.log_id in logs:
                shares.setdefault(handle.log_id, []).append((number, (settlement, handle)))
        results = await asyncio.gather(
            *(
                self._settle_in(logs[log_id], [verdict for _, verdict in share], settle_in)
                for log_id, share in shares.items()
            ),
            return_exceptions=True,
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures and len(failures) == len(results):
            raise failures[0]
        settled: list[Settled | None] = [None] * len(settlements)
        for share, result in zip(shares.values(), results, strict=True):
            for nth, (number, _) in enumerate(share):
                settled[number] = (
                    _failed(result) if isinstance(result, BaseException) else result[nth]
                )
        return settled

    async def _settle_in(
        self, partition: Queue, verdicts: Sequence[Verdict], settle_in: SettleIn
    ) -> list[Settled]:
        async def settle(log: Queue) -> list[Settled]:
            return await settle_in(verdicts, log)

        return await self._executor.run(partition.name, settle, partition)


def _raise_failure(results: Sequence[object]) -> None:
    """Raise the failure of a partition, as unknown outcome if another may have added messages."""
    failures = [result for result in results if isinstance(result, BaseException)]
    if not failures:
        return
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
