"""Receives from a queue with partitions.

    receive ──▶ the partition whose turn it is, then those known to have messages, until the receive is full
        └─ nothing there ──▶ ask all others at once whether they have messages ──▶ receive from those that have

So a receive that finds messages asks at most one partition more than have some, and an empty result is never wrong: it
says that each partition was empty. A receive that waits asks all of them once; then a wake-up names the partition.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs
from msgspec.structs import replace

from storage.domain.errors import (
    InFlightLimitReached,
    MillstreamError,
    OutcomeUnknown,
    StorageBusy,
    StorageUnavailable,
)
from storage.domain.queues.message import ReceivedMessage
from storage.domain.queues.partitions import with_queue_offsets
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.store import HotReceive
from storage.hot_store.wakeups import Waiter, Wakeups
from storage.log.queue_executor import QueueExecutor
from storage.queues.partitions.order import PartitionOrder, beside
from storage.queues.receive_request import ReceiveRequest

ReceiveFromLog = Callable[[ReceiveRequest, bool, Queue], Awaitable[HotReceive]]
"""Receives from one partition; the second argument registers for a wake-up if it has no messages."""

Release = Callable[[list[ReceivedMessage]], None]
"""Releases messages whose caller disconnected, in the background."""


@attrs.define(eq=False, slots=False)
class PartitionReceiver:
    """Receiver from the partitions of queues."""

    _executor: QueueExecutor
    _wakeups: Wakeups
    _order: PartitionOrder

    async def receive(
        self,
        queue: Queue,
        request: ReceiveRequest,
        receive_from: ReceiveFromLog,
        release: Release,
        waiter: Waiter | None = None,
    ) -> HotReceive:
        """Receive messages; with a `waiter` that was woken, from the partitions that woke it.

        A failure of a partition is raised if no other has messages. If the caller disconnects, what was taken is released.
        """
        reception = _Reception(self, queue, request, receive_from, waiter)
        try:
            await reception.run()
        except BaseException:
            if reception.messages:
                release(reception.messages)
            raise
        if not reception.messages and reception.failures:
            raise reception.failures[0]
        return HotReceive(reception.messages, 0, -1, reception.departed)


class _Reception:
    """One receive, with what it has taken so far."""

    def __init__(
        self,
        receiver: PartitionReceiver,
        queue: Queue,
        request: ReceiveRequest,
        receive_from: ReceiveFromLog,
        waiter: Waiter | None,
    ) -> None:
        self._receiver = receiver
        self._queue = queue
        self._request = request
        self._receive_from = receive_from
        self._waiter = waiter
        self.messages: list[ReceivedMessage] = []
        self.departed = 0
        self.failures: list[MillstreamError] = []
        self._bytes_left = request.bytes_max

    async def run(self) -> None:
        """Take messages from one partition after the other."""
        queue, order = self._queue, self._receiver._order
        if self._request.attempt_id and await self._recall():
            return
        woken = self._waiter.take_woken() if self._waiter is not None else set()
        if woken:
            first = [partition for partition in queue.partitions if partition.log_id in woken]
            others: list[Queue] = []
        else:
            first = order.next_receives(queue)
            others = beside(queue, first)
        await self._take_all(first)
        if not self.messages and others:
            await self._take_all(await self._with_messages(others))

    @property
    def _is_full(self) -> bool:
        return len(self.messages) >= self._request.messages_max or self._bytes_left <= 0

    async def _take_all(self, partitions: Sequence[Queue]) -> None:
        for nth, partition in enumerate(partitions):
            if self._is_full:
                self._pass_on(partitions[nth:])
                return
            await self._take(partition)

    def _pass_on(self, partitions: Sequence[Queue]) -> None:
        """Let another caller that waits ask the partitions that this one did not."""
        if self._waiter is not None:
            for partition in partitions:
                self._waiter.note(partition.log_id)

    async def _take(self, partition: Queue) -> None:
        messages_max = self._request.messages_max - len(self.messages)
        request = replace(self._request, messages_max=messages_max, bytes_max=self._bytes_left)
        received = await self._receive(partition, request)
        if received is None:
            return
        self.messages += with_queue_offsets(partition, received.messages)
        self._bytes_left -= sum(len(message.body) for message in received.messages)
        self.departed += received.departed
        self._receiver._order.note(self._queue, partition, has_messages=self._is_full)
        if self._waiter is not None and received.messages:
            self._waiter.note(partition.log_id)

    async def _with_messages(self, partitions: Sequence[Queue]) -> list[Queue]:
        """Return the partitions that have messages, and register for the wake-ups of all."""
        nothing = replace(self._request, messages_max=0, attempt_id="")
        answers = await asyncio.gather(
            *(self._receive(partition, nothing) for partition in partitions)
        )
        having = [
            partition
            for partition, answer in zip(partitions, answers, strict=True)
            if answer is not None and 0 <= answer.next_due_ms <= answer.now_ms
        ]
        for partition in having:
            self._receiver._order.note(self._queue, partition, has_messages=True)
        return having

    async def _recall(self) -> bool:
        """Take what an earlier receive with the same attempt id took; return whether it took any."""
        recall = replace(self._request, messages_max=0)
        answers = await asyncio.gather(
            *(self._receive(partition, recall) for partition in self._queue.partitions)
        )
        for partition, answer in zip(self._queue.partitions, answers, strict=True):
            if answer is not None:
                self.messages += with_queue_offsets(partition, answer.messages)
        return bool(self.messages)

    async def _receive(self, partition: Queue, request: ReceiveRequest) -> HotReceive | None:
        """Receive from one partition; None if that failed."""
        is_waiting = self._waiter is not None
        receive = partial(self._receive_from, request, is_waiting)
        try:
            received = await self._receiver._executor.run(partition.name, receive, partition)
        except (InFlightLimitReached, StorageUnavailable, StorageBusy, OutcomeUnknown) as error:
            self.failures.append(error)
            return None
        if is_waiting and not received.messages and received.next_due_ms >= 0:
            self._receiver._wakeups.wake_after(
                partition.log_id, received.next_due_ms - received.now_ms
            )
        return received
