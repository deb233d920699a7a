"""Delivery of a queue's messages: receive, post and settle.

    2xx ─▶ ack     410, or not sent ─▶ release     anything else ─▶ nack, for as long as the schedule says
                                                    the last time ─▶ reject: dead letters

A killed deliverer's messages are redelivered under the same id when their leases expire.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from consumers.webhooks.endpoint import Endpoint, EndpointUnavailable
from storage.bootstrap import Storage
from storage.concurrency.batcher import Batcher
from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.names import QueueName
from storage.domain.queues.consumer import ConsumerProtocol, queue_consumer
from storage.domain.queues.message import ReceivedMessage, SettleAction, Settled, Settlement
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.trace_context import with_noted
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    DeliveryLogEntry,
    DeliveryStatus,
    Event,
    Payload,
    PayloadLocation,
    WebhookSpec,
)

logger = logging.getLogger(__name__)

KIND = "queue.message"


class QueueSource:
    """Delivery of one queue to one receiver."""

    def __init__(self, endpoint: Endpoint, storage: Storage) -> None:
        self._endpoint = endpoint
        self._storage = storage
        webhook = endpoint.webhook
        self._queue = QueueName(webhook.spec.source.name, webhook.name.namespace)
        self._spec = QueueSpec()
        self._consumer = queue_consumer(webhook.name.name, ConsumerProtocol.WEBHOOK, "", b"")
        self._settlements = Batcher[Settlement, Settled](
            self._settle_batch,
            batch_max=limits.SETTLEMENTS_MAX,
            subject="the queue",
        )
        self._leased: dict[str, ReceivedMessage] = {}
        self._lanes: set[asyncio.Task[None]] = set()
        self._capacity_freed = asyncio.Event()

    async def run(self) -> None:
        """Deliver until cancelled; then let deliveries in flight end, and release the rest."""
        extending = asyncio.create_task(self._keep_leases())
        try:
            while True:
                await self._wait_for_capacity()
                await self._take_or_wait()
        finally:
            await self._wind_up()
            await end(extending)
            await self._settlements.close()

    async def round(self) -> int:
        """Deliver the messages that are ready now, once; return their number."""
        if self._endpoint.wait_ms != 0:
            return 0
        count = await self._take(wait_ms=0)
        await asyncio.gather(*self._lanes)
        return count

    async def _wait_for_capacity(self) -> None:
        while self._endpoint.wait_ms != 0 or not self._batch_size():
            self._capacity_freed.clear()
            if self._endpoint.wait_ms != 0:
                await self._endpoint.wait_until_closed()
            else:
                await self._capacity_freed.wait()

    def _batch_size(self) -> int:
        """Return how many more messages to receive; few at a time would cost a call each."""
        capacity = self._endpoint.capacity
        count = min(capacity - len(self._leased), limits.WEBHOOK_RECEIVE_MAX)
        return count if count >= min(capacity, limits.WEBHOOK_RECEIVE_MAX) / 4 else 0

    async def _take_or_wait(self) -> None:
        try:
            await self._take(wait_ms=limits.WAIT_MS_MAX)
        except MillstreamError as error:
            self._endpoint.report_source_error(error.detail)
            await asyncio.sleep(limits.WEBHOOK_SOURCE_RETRY_MS / limits.SECOND_MS)

    async def _take(self, wait_ms: int) -> int:
        queue = await self._storage.catalog.queue(self._queue)
        messages = await self._storage.queues.receive(
            self._queue,
            messages_max=max(1, self._batch_size()),
            visibility_timeout_ms=limits.WEBHOOK_MESSAGE_LEASE_MS,
            wait_ms=wait_ms,
            consumer=self._consumer,
        )
        self._spec = queue.spec
        in_order = queue.spec.type is QueueType.FIFO
        for lane in lanes(messages, in_order=in_order):
            for message in lane:
                self._leased[message.receipt_handle] = message
            task = asyncio.create_task(self._deliver(lane))
            self._lanes.add(task)
            task.add_done_callback(self._lanes.discard)
        return len(messages)

    async def _deliver(self, lane: Sequence[ReceivedMessage]) -> None:
        """Deliver one after another; after a failure, release the rest, so that none overtakes it.

        A bug in Millstream drops them all: their leases expire, which counts as a failure, and so is bounded.
        """
        try:
            await self._deliver_in_turn(lane)
        except Exception:
            logger.exception("webhook_failed", extra={"queue": str(self._queue)})
            for message in lane:
                self._leased.pop(message.receipt_handle, None)
            self._capacity_freed.set()

    async def _deliver_in_turn(self, lane: Sequence[ReceivedMessage]) -> None:
        for place, message in enumerate(lane):
            if not await self._deliver_one(message):
                rest = lane[place + 1 :]
                await asyncio.gather(*(self._settle(one, SettleAction.RELEASE) for one in rest))
                return

    async def _deliver_one(self, message: ReceivedMessage) -> bool:
        """Return whether the message was delivered, and is certain not to be redelivered.

        Otherwise the messages behind it must not overtake it.
        """
        failures = message.failures + message.crash_count
        try:
            attempt = await self._endpoint.attempt(self._event(message), failures + 1)
        except EndpointUnavailable:
            await self._settle(message, SettleAction.RELEASE)
            return False
        action, delay_ms = verdict(self._endpoint.spec, attempt, failures, self._endpoint.chance())
        settled = await self._settle(message, action, delay_ms, attempt)
        await self._endpoint.log(self._entry(message, attempt, action, delay_ms))
        return attempt.succeeded and settled

    async def _settle(
        self,
        message: ReceivedMessage,
        action: SettleAction,
        delay_ms: int | None = None,
        attempt: Attempt | None = None,
    ) -> bool:
        """Settle a message; return whether that took effect.

        If it did not, it is as if the deliverer had died: the message is redelivered.
        """
        reason, details = ("", "") if attempt is None else (attempt.error, attempt.response_head)
        settlement = Settlement(message.receipt_handle, action, delay_ms, 0, reason, details)
        counts = False
        try:
            counts = (await self._settlements.submit(settlement)).error is None
        except MillstreamError as error:
            self._endpoint.report_source_error(error.detail)
        self._leased.pop(message.receipt_handle, None)
        self._capacity_freed.set()
        return counts

    def _event(self, message: ReceivedMessage) -> Event:
        return Event(
            event_id=message.message_id,
            kind=KIND,
            source=str(self._endpoint.spec.source),
            payload=message.body,
            content_type=message.content_type,
            headers=with_noted(message.headers, message.system),
            at_ms=message.sent_at_ms,
            location=PayloadLocation(message.offset),
            group=message.group,
        )

    def _entry(
        self, message: ReceivedMessage, attempt: Attempt, action: SettleAction, delay_ms: int | None
    ) -> DeliveryLogEntry:
        payload = Payload(
            message.body, message.content_type, with_noted(message.headers, message.system)
        )
        keeps = (
            action is SettleAction.ACK and len(message.body) <= limits.WEBHOOK_LOG_PAYLOAD_BYTES_MAX
        )
        status = _STATUS[action]
        if action is SettleAction.NACK and gives_up(self._spec, message):
            status, delay_ms = DeliveryStatus.FAILED, None
        return DeliveryLogEntry(
            event_id=message.message_id,
            status=status,
            attempts=1,
            attempt=attempt,
            at_ms=attempt.at_ms,
            next_at_ms=None if delay_ms is None else self._endpoint.clock.now_ms() + delay_ms,
            location=PayloadLocation(message.offset),
            event_at_ms=message.sent_at_ms,
            group=message.group,
            payload=payload if keeps else None,
        )

    # Leases of messages

    async def _settle_batch(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        return await self._storage.queues.settle(self._queue, settlements)

    async def _keep_leases(self) -> None:
        """Extend the leases of held messages, so that none is redelivered during its delivery."""
        interval_s = limits.WEBHOOK_EXTEND_MS / limits.SECOND_MS
        await periodic(interval_s, self.extend, f"leases of {self._queue}", delay_first=True)

    async def extend(self) -> None:
        """Extend the leases of all messages that are held now."""
        extensions = [
            Settlement(handle, SettleAction.EXTEND, None, limits.WEBHOOK_MESSAGE_LEASE_MS)
            for handle in self._leased
        ]
        for first in range(0, len(extensions), limits.SETTLEMENTS_MAX):
            batch = extensions[first : first + limits.SETTLEMENTS_MAX]
            await self._storage.queues.settle(self._queue, batch)

    async def _wind_up(self) -> None:
        """Let deliveries end, for a moment; release the others, which are then redelivered."""
        if self._lanes:
            await asyncio.wait(self._lanes, timeout=limits.WEBHOOK_STOP_MS / limits.SECOND_MS)
        await end(*self._lanes)
        left = list(self._leased.values())
        for first in range(0, len(left), limits.SETTLEMENTS_MAX):
            with suppress(MillstreamError):
                await self._storage.queues.release(
                    self._queue, left[first : first + limits.SETTLEMENTS_MAX]
                )


_STATUS = {
    SettleAction.ACK: DeliveryStatus.DELIVERED,
    SettleAction.REJECT: DeliveryStatus.FAILED,
    SettleAction.NACK: DeliveryStatus.RETRYING,
    SettleAction.RELEASE: DeliveryStatus.RETRYING,
}


def lanes(messages: Sequence[ReceivedMessage], *, in_order: bool) -> list[list[ReceivedMessage]]:
    """Partition messages for parallel delivery.

    In a FIFO queue, one message of each group at a time.
    """
    if not in_order:
        return [[message] for message in messages]
    groups: dict[str, list[ReceivedMessage]] = {}
    for message in messages:
        groups.setdefault(message.group, []).append(message)
    return list(groups.values())


def gives_up(spec: QueueSpec, message: ReceivedMessage) -> bool:
    """Return whether the queue's own rules dead-letter a message that fails once more."""
    attempts = message.failures + message.crash_count + 1
    if spec.attempts_max is not None and attempts >= spec.attempts_max:
        return True
    return spec.dead_letters is not None and message.receive_count >= spec.dead_letters.receives_max


def verdict(
    spec: WebhookSpec, attempt: Attempt, failures: int, chance: float
) -> tuple[SettleAction, int | None]:
    """Return how to settle a message after an attempt, and its delay before the next one.

    `failures` is how often it had failed before.
    """
    if attempt.succeeded:
        return SettleAction.ACK, None
    if attempt.outcome is AttemptOutcome.GONE:
        return SettleAction.RELEASE, None
    delay_ms = spec.retry_delay_ms(failures + 1, chance)
    if delay_ms is None:
        return SettleAction.REJECT, None
    return SettleAction.NACK, max(delay_ms, attempt.wait_ms or 0)
