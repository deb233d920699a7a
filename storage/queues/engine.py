"""Queue engine: send, receive, settle, count and purge.

`storage.queues.inspection` browses and changes messages. Each verb is one script call in the hot store, so it happens
whole or not at all.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from math import inf

import attrs

from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    BatchTooLarge,
    ErrorCode,
    FenceMismatch,
    MillstreamError,
    PurgeInProgress,
    QueueNotFound,
    ReceiptHandleInvalid,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.queues.consumer import QueueConsumer
from storage.domain.queues.message import (
    NewMessage,
    ReceiptHandle,
    ReceivedMessage,
    SentMessage,
    SettleAction,
    Settled,
    Settlement,
    check_settlement,
)
from storage.domain.queues.queue import (
    Queue,
    QueueStats,
    total,
)
from storage.domain.queues.stream_view import view_of
from storage.domain.streams.idempotence import (
    NO_WATERMARK,
    AppendCounts,
    PartialDuplicate,
    SequencedBatch,
    lasts_of,
)
from storage.hot_store.errors import LogNotReady, LogProblem
from storage.hot_store.log_store import LogStore, WatermarkStore
from storage.hot_store.queues.message_codec import encode_message
from storage.hot_store.queues.store import (
    HotReceive,
    PartSent,
    QueueStateStore,
    QueueStore,
    ReceivePart,
    SendPart,
    SweepResult,
    Verdict,
)
from storage.hot_store.wakeups import Waiter, Wakeups
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor, address_of
from storage.queues.acknowledge_times import AcknowledgeTimes
from storage.queues.consumers import QueueConsumers
from storage.queues.idempotency import fingerprint_of
from storage.queues.partitions.memory import PartitionMemory
from storage.queues.partitions.order import PartitionOrder
from storage.queues.partitions.receive import PartitionReceiver
from storage.queues.partitions.send import PartitionSender
from storage.queues.receive_request import ReceiveRequest, check_wait
from storage.queues.transfer import MessageTransfer
from storage.quotas.memory_guard import MemoryGuard


def _always() -> bool:
    return True


@attrs.define(eq=False, slots=False, kw_only=True)
class Queues:
    """The queues of a deployment.

    Every verb raises QueueNotFound for a queue that does not exist.
    """

    _hot: QueueStore
    _states: QueueStateStore
    _logs: LogStore
    _watermarks: WatermarkStore
    _executor: QueueExecutor
    _transfer: MessageTransfer
    _trimmer: HotTrimmer
    _catalog: Catalog
    _provisioner: LogProvisioner
    _wakeups: Wakeups
    _clock: Clock
    _limits: Limits
    _memory_guard: MemoryGuard
    _consumers: QueueConsumers
    _acknowledge_times: AcknowledgeTimes
    _releases: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _order: PartitionOrder = attrs.field(factory=PartitionOrder, init=False)
    _partition_sender: PartitionSender = attrs.field(init=False)
    _partition_receiver: PartitionReceiver = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        memory = PartitionMemory(self._hot, self._executor, self._clock)
        self._partition_sender = PartitionSender(self._executor, self._order, memory)
        self._partition_receiver = PartitionReceiver(self._executor, self._wakeups, self._order)

    async def close(self) -> None:
        """Wait for the releases in progress."""
        await asyncio.gather(*self._releases, return_exceptions=True)

    def send(
        self, name: QueueName, messages: Sequence[NewMessage], *, idempotency_key: str = ""
    ) -> Coroutine[None, None, list[SentMessage]]:
        """Add messages, all or none; return one result for each, in order.

        A repeat with the same idempotency key within ten minutes adds nothing and gets the first result.
        Raises MessageTooLarge, BatchTooLarge, ValidationFailed, IdempotencyKeyReused, QueueFull; BacklogFull and
        QuotaExceeded if the store or the namespace has no capacity left.
        """
        if self._memory_guard.is_shedding:
            self._memory_guard.check(name.namespace)
        _check_batch(messages)
        return self._executor.run(name, partial(self._send, messages, idempotency_key))

    def _send(
        self, messages: Sequence[NewMessage], key: str, queue: Queue
    ) -> Coroutine[None, None, list[SentMessage]]:
        encoded = _encoded(messages, queue)
        part = SendPart(encoded, key, fingerprint_of(messages, encoded, queue.spec) if key else "")
        if queue.partitions:
            return self._partition_sender.send(queue, messages, part, self._send_part)
        return self._send_part(part, queue)

    async def _send_part(self, part: SendPart, queue: Queue) -> list[SentMessage]:
        epoch, now = self._provisioner.store_epoch, self._clock.script_time()
        sent: PartSent = await self._hot.send(queue, part, epoch, now)
        if sent.messages:
            self._provisioner.reserve_ahead(
                address_of(queue), sent.messages[-1].offset + 1, sent.left
            )
        return sent.messages

    async def send_idempotent(
        self,
        name: QueueName,
        producer_id: str,
        sequences: Sequence[int],
        messages: Sequence[NewMessage],
    ) -> AppendCounts:
        """Add the messages of a monotonic producer, each once however often it is sent.

        Works as `Streams.append_idempotent`; `storage.streams.idempotent_append` has the rules for senders. How messages are split
        into calls does not matter. If they do not fit, nothing changes: all of a call is added or none. Raises what `send`
        does, TooManyProducers, and ProducerFenced once the producer is retired.
        """
        return await self.send_idempotent_batch(
            name, SequencedBatch.of(producer_id, sequences), messages
        )

    async def send_idempotent_batch(
        self, name: QueueName, batch: SequencedBatch, messages: Sequence[NewMessage]
    ) -> AppendCounts:
        """Add the messages of several monotonic producers, in the order given here.

        Otherwise like `send_idempotent`.
        """
        if self._memory_guard.is_shedding:
            self._memory_guard.check(name.namespace)
        batch.check(len(messages))
        added = await self._executor.run(name, partial(self._send_sequenced, batch, messages))
        return AppendCounts(added, len(messages) - added)

    async def _send_sequenced(
        self, batch: SequencedBatch, messages: Sequence[NewMessage], queue: Queue
    ) -> int:
        encoded = _encoded(messages, queue)
        send_above = partial(self._send_above, batch, encoded)
        if queue.partitions:
            return await self._partition_sender.send_sequenced(queue, messages, batch, send_above)
        return await send_above(range(len(messages)), 0, queue)

    async def _send_above(
        self,
        batch: SequencedBatch,
        encoded: Sequence[tuple[bytes, bytes]],
        numbers: Sequence[int],
        generation: int,
        log: Queue,
    ) -> int:
        """Add those of the messages that lie above their producers' marks; return how many."""
        left = numbers
        while left:
            claims = batch.claims(left)
            part = SendPart(
                [encoded[number] for number in left], claims=claims, generation=generation
            )
            try:
                sent = await self._send_part(part, log)
            except PartialDuplicate as partial_duplicate:
                left = batch.above(left, lasts_of(claims, partial_duplicate.lasts))
            else:
                return sum(not one.duplicate for one in sent)
        return 0

    async def last_sequences(
        self, name: QueueName, producer_ids: Sequence[str]
    ) -> Mapping[str, int]:
        """Return the highest sequence of each monotonic producer that the queue has, or had.

        A producer that it does not know is left out. In a FIFO queue with partitions, a lower one may be missing: the messages of
        a call are added partition by partition.
        """

        async def read(queue: Queue) -> Sequence[int]:
            return (await self._watermarks.get(address_of(queue), producer_ids)).lasts

        partitions = await self._executor.each(name, read)
        highest = map(max, zip(*partitions, strict=True))
        lasts = zip(producer_ids, highest, strict=True)
        return {producer_id: last for producer_id, last in lasts if last > NO_WATERMARK}

    async def retire_writers(self, name: QueueName, producer_ids: Sequence[str]) -> None:
        """Retire monotonic producers that have sent everything, like `Streams.retire_writers`."""

        async def retire(queue: Queue) -> None:
            await self._watermarks.retire(
                address_of(queue), producer_ids, self._clock.script_time()
            )

        with suppress(QueueNotFound):
            await self._executor.each(name, retire)

    def receive(
        self,
        name: QueueName,
        *,
        messages_max: int = 1,
        visibility_timeout_ms: int | None = None,
        wait_ms: int | None = None,
        attempt_id: str = "",
        strict_attempt: bool = False,
        bytes_max: int = limits.RECEIVE_BYTES_MAX,
        forever: bool = False,
        is_client_connected: Callable[[], bool] = _always,
        consumer: QueueConsumer | None = None,
    ) -> Coroutine[None, None, list[ReceivedMessage]]:
        """Receive up to `messages_max` ready messages, waiting for the first one.

        Waits up to `wait_ms`, by default the queue's wait time; with `forever`, until a message arrives. No further message is
        taken once those taken have `bytes_max`: the last one may exceed it.

        A FIFO queue returns the same messages again to the same `attempt_id` within five minutes, unless one of
        them was settled or extended or its lease expired: then others, or with `strict_attempt` it raises ValidationFailed
        until the visibility timeout has passed. After a wait, `is_client_connected` is called before anything is taken.
        Safe to cancel: before messages were taken nothing happens, after it they are released immediately. `consumer` is shown
        in the list of the queue's consumers. Raises InFlightLimitReached.
        """
        request = ReceiveRequest(
            messages_max, visibility_timeout_ms, attempt_id, strict_attempt, bytes_max, consumer
        )
        request.check()
        check_wait(wait_ms or 0)
        if forever:
            return self._long_poll(name, request, inf, is_client_connected)
        return self._receive_or_wait(name, request, wait_ms, is_client_connected)

    async def _receive(
        self, request: ReceiveRequest, waiter: Waiter | None, queue: Queue
    ) -> HotReceive:
        if queue.partitions:
            received = await self._partition_receiver.receive(
                queue,
                request,
                self._receive_from,
                partial(self._release_in_background, queue.name),
                waiter,
            )
        else:
            received = await self._receive_from(request, waiter is not None, queue)
        if request.consumer is not None:
            self._consumers.count(
                queue,
                request.consumer,
                receives=1 if waiter is None else 0,
                messages=len(received.messages),
            )
        if received.departed:
            await self._complete_transfers(queue.name)
        return received

    async def _receive_from(
        self, request: ReceiveRequest, register_waiter: bool, log: Queue
    ) -> HotReceive:
        if log.spec.paused:
            return _NOTHING
        timeout_ms = request.visibility_timeout_ms
        part = ReceivePart(
            request.messages_max,
            log.spec.visibility_timeout_ms if timeout_ms is None else timeout_ms,
            request.bytes_max,
            register_waiter,
            request.attempt_id,
            request.strict_attempt,
            partial(self._release_in_background, log.name),
            b"" if request.consumer is None else request.consumer.key,
        )
        return await self._hot.receive(
            log,
            part,
            receives_max=await self._receives_max(log) if log.spec.dead_letters else 0,
            now=self._clock.script_time(),
        )

    async def _receives_max(self, queue: Queue) -> int:
        """Return the receive count after which messages are dead-lettered.

        0, never, while their target does not exist.
        """
        target = queue.spec.dead_letters
        if target is None:
            return 0
        name = target.resolve(queue.name.namespace)
        try:
            if isinstance(name, QueueName):
                self._catalog.cached_queue(name) or await self._catalog.queue(name)
            else:
                await self._catalog.stream(name.stream)
        except (QueueNotFound, StreamNotFound):
            return 0
        return target.receives_max

    async def _complete_transfers(self, name: QueueName) -> None:
        """Transfer departed messages to their dead-letter queue; a sweep does what fails now."""
        with suppress(MillstreamError):
            await self._transfer.complete(name)

    async def _receive_or_wait(
        self,
        name: QueueName,
        request: ReceiveRequest,
        wait_ms: int | None,
        is_client_connected: Callable[[], bool],
    ) -> list[ReceivedMessage]:
        queue: Queue | None = None
        if wait_ms is None:
            queue = self._catalog.cached_queue(name) or await self._catalog.queue(name)
            wait_ms = queue.spec.receive_wait_ms
        if wait_ms:
            return await self._long_poll(name, request, wait_ms, is_client_connected)
        once = partial(self._receive, request, None)
        received = await self._executor.run(name, once, queue)
        return received.messages

    async def _long_poll(
        self,
        name: QueueName,
        request: ReceiveRequest,
        wait_ms: float,
        is_client_connected: Callable[[], bool],
    ) -> list[ReceivedMessage]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / limits.SECOND_MS
        consumer = request.consumer
        while True:
            queue = await self._catalog.queue(name)
            log_ids = tuple(log.log_id for log in queue.logs)
            waiting = (
                nullcontext() if consumer is None else self._consumers.waiting(queue, consumer)
            )
            del queue
            with waiting, self._wakeups.waiting(log_ids, alone=True) as waiter:
                while self._has_logs(name, len(log_ids)):
                    waiter.reset()
                    once = partial(self._receive, request, waiter)
                    received = await self._executor.run(name, once)
                    del once  # an idle wait holds as little memory as possible
                    if received.messages:
                        waiter.satisfied = True
                        return received.messages
                    if loop.time() >= until:
                        return []
                    if received.next_due_ms >= 0:
                        due_ms = received.next_due_ms - received.now_ms
                        self._wakeups.wake_after(log_ids[0], due_ms)
                    await waiter.wait(until - loop.time())
                    if not is_client_connected():
                        return []

    def _has_logs(self, name: QueueName, count: int) -> bool:
        """Return whether the queue still has so many logs, as far as is known."""
        queue = self._catalog.cached_queue(name)
        return queue is None or len(queue.logs) == count

    def _release_in_background(self, name: QueueName, messages: list[ReceivedMessage]) -> None:
        task = asyncio.create_task(self.release(name, messages))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def release(self, name: QueueName, messages: Iterable[ReceivedMessage]) -> None:
        """Release messages received for a client that disconnected.

        Their leases expire by themselves if this fails.
        """
        verdicts = [
            Settlement(message.receipt_handle, SettleAction.RELEASE) for message in messages
        ]
        try:
            await self.settle(name, verdicts)
        except MillstreamError:
            return

    def settle(
        self, name: QueueName, settlements: Sequence[Settlement], *, any_delivery: bool = False
    ) -> Coroutine[None, None, list[Settled]]:
        """Settle deliveries; return one result for each, in order.

        Acknowledging a message again is no error. `any_delivery` gives SQS semantics: on a standard queue the handle of any
        delivery settles a message that still exists, and extends it also after its lease; an extension past the longest
        delivery is rejected (VALIDATION_FAILED) rather than shortened, and one of 0 is no failure.
        """
        if not 1 <= len(settlements) <= limits.SETTLEMENTS_MAX:
            raise BatchTooLarge(f"A call must settle 1 to {limits.SETTLEMENTS_MAX} deliveries.")
        for settlement in settlements:
            if settlement.action is not _ACK:
                check_settlement(settlement)
        return self._executor.run(name, partial(self._settle, settlements, any_delivery))

    async def _settle(
        self, settlements: Sequence[Settlement], any_delivery: bool, queue: Queue
    ) -> list[Settled]:
        if queue.partitions:
            settle_in = partial(self._settle_in, any_delivery)
            settled = await self._partition_sender.settle(queue, settlements, settle_in)
            return [one or _INVALID for one in settled]
        verdicts: list[Verdict] = []
        invalid: list[int] = []
        for index, settlement in enumerate(settlements):
            try:
                handle = ReceiptHandle.decode(settlement.receipt_handle, queue.log_id)
            except ReceiptHandleInvalid:
                invalid.append(index)
            else:
                verdicts.append((settlement, handle))
        if not verdicts:
            return [_INVALID] * len(settlements)
        results = await self._settle_in(any_delivery, verdicts, queue)
        for index in invalid:  # in order from the first, so each returns to its old position
            results.insert(index, _INVALID)
        return results

    async def _settle_in(
        self, any_delivery: bool, verdicts: Sequence[Verdict], log: Queue
    ) -> list[Settled]:
        settled = await self._hot.settle(log, verdicts, any_delivery, self._clock.script_time())
        self._acknowledge_times.count(log, verdicts, settled)
        return settled

    async def stats(self, name: QueueName) -> QueueStats:
        """Return exact counts by state, as of now; each partition's at a moment of its own."""
        return total(
            await self._executor.each(
                name, lambda log: self._states.stats(log, self._clock.script_time())
            )
        )

    async def purge(self, name: QueueName, *, at_most_every_ms: int = 0) -> int:
        """Delete every message except dead letters; return their number.

        Raises PurgeInProgress when the last purge of each partition is more recent than `at_most_every_ms`.
        """

        async def purge(log: Queue) -> int | None:
            try:
                return await self._states.purge(log, at_most_every_ms, self._clock.script_time())
            except PurgeInProgress:
                return None

        purged = [count for count in await self._executor.each(name, purge) if count is not None]
        if not purged:
            raise PurgeInProgress
        return sum(purged)

    async def sweep(self, name: QueueName, definition: Queue | None = None) -> int:
        """Run one bounded round of maintenance; return the number of items of work done.

        For the sweeper. `definition`: the queue's definition, if it was just read.
        """
        queue = definition or await self._executor.resolve(name)
        results = await self._executor.each(name, self._sweep, queue)
        if moving := sum(result.moving for result in results):
            with suppress(FenceMismatch):  # the dead-letter queue is read-only: they wait
                await self._transfer.complete(name)
            await self._transfer.complete_routed(name)
        freed = 0
        if queue.spec.stream_view and any(result.has_view for result in results):
            freed = await self._trimmer.trim(view_of(queue), self._limits.expired_per_call)
        return sum(result.work for result in results) + moving + freed

    async def _sweep(self, log: Queue) -> SweepResult:
        try:
            result = await self._states.sweep(log, self._clock.script_time())
        except LogNotReady as problem:
            if problem.problem is not LogProblem.UNKNOWN_LOG:
                raise
            return _NEVER_USED  # or lost by the store: the next message creates its log
        if result.has_view != log.spec.stream_view:
            await self._logs.switch_view(address_of(log), on=log.spec.stream_view)
        return result


_ACK = SettleAction.ACK  # has no times and no reason
_NOTHING = HotReceive([], 0, -1, 0)
_NEVER_USED = SweepResult(0, 0, False)
_INVALID = Settled(ErrorCode.RECEIPT_HANDLE_INVALID)


def _encoded(messages: Sequence[NewMessage], queue: Queue) -> list[tuple[bytes, bytes]]:
    for message in messages:
        queue.check_message(message)
    return [encode_message(message, queue.spec) for message in messages]


def _check_batch(messages: Sequence[NewMessage]) -> None:
    if not messages:
        raise ValidationFailed.at("/messages", "A batch must have at least one message", "too_few")
    if len(messages) > limits.BATCH_MESSAGES_MAX:
        raise BatchTooLarge(f"A call can send at most {limits.BATCH_MESSAGES_MAX} messages.")
