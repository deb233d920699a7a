"""Queue subscriptions: deliver within credit, settle each message by its receipt handle."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import assert_never

import msgspec
from msgspec import UNSET

from api.native.fields import optional_ms, to_ms
from api.native.messages import ReceivedMessageOut
from api.native.problems import error_of
from api.native.settlements import count_settled, replying_settlement, settle_results
from api.observability.metric_buffers import ProtocolMetrics
from api.observability.tracing import RECEIVE, Tracing, contexts_of
from api.websocket.connection import SocketClosed
from api.websocket.frames import (
    Ack,
    Extend,
    Messages,
    Mode,
    Nack,
    Reject,
    Release,
    ServerOk,
    Settling,
    Subscribe,
)
from api.websocket.session import PushSession
from api.websocket.subscriptions.backoff import QUEUE, STORAGE, RetryBackoff
from consumers.subscriptions.credit import SubscriptionCredit
from consumers.subscriptions.leased_deliveries import LeasedDeliveries
from storage.catalog.catalog import Catalog
from storage.concurrency.batcher import Batcher
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import ErrorCode, MillstreamError, QueueNotFound, ValidationFailed
from storage.domain.names import LogId, QueueName
from storage.domain.queues.consumer import ConsumerProtocol, QueueConsumer, queue_consumer
from storage.domain.queues.message import (
    ReceivedMessage,
    SettleAction,
    Settled,
    Settlement,
    check_settlement,
)
from storage.queues.engine import Queues
from storage.requests.engine import Requests
from storage.requests.settlements import settle

_RELEASE_BATCH_MAX = limits.SETTLEMENTS_MAX


class QueueSubscriptionServices(msgspec.Struct, frozen=True):
    """Services shared by all queue subscriptions."""

    queues: Queues
    requests: Requests
    catalog: Catalog
    clock: Clock
    count: ProtocolMetrics
    tracing: Tracing | None = None


class QueueSubscription:
    """Subscription that delivers a queue's messages to one session.

    Small: there are thousands, and most of them idle.
    """

    __slots__ = (
        "_again",
        "_auto_extend",
        "_backoff",
        "_engine",
        "_leased",
        "_paused",
        "_pump",
        "_queue",
        "_session",
        "_verdicts",
        "_visibility_timeout_ms",
        "credit",
        "name",
    )

    def __init__(
        self,
        session: PushSession,
        request: Subscribe,
        queue: QueueName,
        engine: QueueSubscriptionServices,
    ) -> None:
        self.name = request.sub
        self.credit = SubscriptionCredit(request.credit.messages, request.credit.bytes)
        self._session = session
        self._queue = queue
        self._engine = engine
        self._visibility_timeout_ms = optional_ms(request.visibility_timeout_seconds)
        self._auto_extend = request.auto_extend
        self._leased = LeasedDeliveries[ReceivedMessageOut]()
        self._again: Sequence[Sequence[str]] = ()  # frames that a broken socket lost
        self._verdicts: Batcher[Settling, None] | None = None
        self._backoff = RetryBackoff(session, self.name)
        self._paused = False
        self._pump: asyncio.Task[None] | None = None

    @property
    def source(self) -> str:
        return f"queue:{self._queue.name}"

    @property
    def stream_id(self) -> LogId | None:
        return None

    @property
    def mode(self) -> Mode:
        return Mode.WORK

    @property
    def group(self) -> None:
        return None

    # Delivery

    def start(self) -> None:
        self._pump = asyncio.create_task(self._deliver_all())

    async def stop(self) -> None:
        """Stop delivery; a pending receive releases what it still obtains."""
        pump, self._pump = self._pump, None
        if pump is not None and pump is not asyncio.current_task():
            await end(pump)

    async def _deliver_all(self) -> None:
        """Deliver until cancelled, or until the socket is closed or the queue deleted.

        While idle, it keeps as little memory as it can.
        """
        try:
            await self._deliver_lost()
            while True:
                if not self.credit.is_there:
                    await self.credit.wait()
                try:
                    messages = await self._engine.queues.receive(
                        self._queue,
                        messages_max=min(self.credit.messages, limits.PUSH_RECORDS_MAX),
                        bytes_max=min(self.credit.bytes, limits.PUSH_BYTES_MAX),
                        visibility_timeout_ms=self._timeout_ms()
                        if self._auto_extend
                        else self._visibility_timeout_ms,
                        forever=True,
                        consumer=self._consumer(),
                    )
                except MillstreamError as error:
                    if not await self._backoff.wait_and_retry(error):
                        await self._fail(error)
                        return
                    continue
                await self._backoff.resume(STORAGE)
                if messages and self._paused:  # received after the client was notified of the pause
                    await self._engine.queues.release(self._queue, messages)
                elif messages:
                    await self._deliver(messages)
                del messages
        except SocketClosed:
            return

    def _consumer(self) -> QueueConsumer | None:
        connection = self._session.connection
        if connection is None:
            return None
        principal, address = self._session.principal.name, connection.address
        return queue_consumer(principal, ConsumerProtocol.WS, address, connection.client)

    async def _deliver(self, messages: list[ReceivedMessage]) -> None:
        size_bytes = sum([len(message.body) for message in messages])
        self.credit.take(len(messages), size_bytes)
        self._leased.hold(self._session.next_seq, messages, self._session.wire.message_out)
        self._engine.count.delivered(messages)
        if self._engine.tracing is not None:
            trace = self._engine.tracing.start_span(RECEIVE, "deliver", self._queue.name, b"")
            trace.add_links(contexts_of(messages), len(messages))
            trace.end(200)
        handles = [message.receipt_handle for message in messages]
        await self._send(handles, size_bytes)

    async def _deliver_lost(self) -> None:
        again, self._again = self._again, ()
        for nth, handles in enumerate(again):
            try:
                await self._send(handles, 0)
            except SocketClosed:
                self._again = again[nth + 1 :]  # this one is known to the session
                raise

    async def _send(self, handles: Sequence[str], size_bytes: int) -> None:
        seq = self._session.next_seq
        deliveries = self._leased.again(handles, seq)
        if not deliveries:
            return
        await self._session.deliver(
            self,
            handles,
            size_bytes,
            lambda number: self._session.wire.encode(Messages(self.name, number, deliveries)),
        )

    async def _fail(self, error: MillstreamError) -> None:
        """Report to the client that the queue is deleted or forbidden, and end the subscription."""
        with suppress(SocketClosed):
            await self._session.send_bytes(self._session.wire.failure(error, sub=self.name))
        await self._session.unsubscribe(self)

    def arrived(self, what: Sequence[str]) -> None:
        self._leased.arrived(what)

    def lost(self, what: Sequence[Sequence[str]]) -> None:
        self._again = [*self._again, *what]

    # Settlements

    async def settle(self, frame: Settling) -> None:
        """Queue a settlement, to be applied in a batch with others.

        Raises ValidationFailed for one that is not valid here.
        """
        if isinstance(frame, Ack) and frame.receipt_handles is None:
            raise ValidationFailed.at(
                "/receipt_handles", "Settle messages of a queue with 'receipt_handle'", "required"
            )
        for settlement in self._settlements(frame):
            check_settlement(settlement)
        if self._verdicts is None:
            self._verdicts = Batcher(
                self._settle,
                batch_max=limits.SETTLEMENTS_MAX,
                backlog_max=limits.PUSH_PENDING_MAX,
                weigh=lambda frame: len(_handles(frame)),
            )
        await self._verdicts.add(frame)

    async def _settle(self, frames: Sequence[Settling]) -> None:
        settlements = [settlement for frame in frames for settlement in self._settlements(frame)]
        engine = self._engine
        try:
            settled = await settle(engine.requests, engine.queues, self._queue, settlements)
        except MillstreamError as error:
            for frame in frames:
                await self._answer_failure(frame, error)
            return
        count_settled(engine.count, settlements, settled)
        answers = iter(settled)
        for frame in frames:
            handles = _handles(frame)
            own = [next(answers) for _ in handles]
            self._note(frame, own)
            await self._answer(frame, own)

    def _settlements(self, frame: Settling) -> list[Settlement]:
        """Return the settlements of a frame. Raises ValidationFailed, MessageTooLarge."""
        handles = _handles(frame)
        if not isinstance(frame, Ack) or frame.reply is UNSET:
            return [_settlement(frame, handle) for handle in handles]
        if len(handles) != 1:
            raise ValidationFailed.at("/reply", "A reply is to one message", "conflict")
        return [replying_settlement(handles[0], self._session.wire.reply(frame.reply))]

    def _note(self, frame: Settling, settled: Sequence[Settled]) -> None:
        for handle, answer in zip(_handles(frame), settled, strict=True):
            if (seq := self._leased.seq_of(handle)) is not None:
                self._session.confirm(seq)
            if answer.error is None and isinstance(frame, Extend) and answer.visible_at_ms:
                self._leased.extended(handle, answer.visible_at_ms)
            elif answer.error is None or not _has_reply(frame):
                self._leased.discard(handle)

    async def _answer(self, frame: Settling, settled: Sequence[Settled]) -> None:
        try:
            if frame.id is not None:
                results = settle_results(settled)
                failed = sum(one.error is not None for one in settled)
                await self._session.send(ServerOk(frame.id, list(results), failed))
                return
            refused: dict[ErrorCode, list[str]] = {}
            for handle, answer in zip(_handles(frame), settled, strict=True):
                if (code := answer.error or answer.reply_error) is not None:
                    refused.setdefault(code, []).append(handle)
            for code, handles in refused.items():
                await self._send_refused(code, handles)
        except SocketClosed:
            return

    async def _send_refused(self, code: ErrorCode, handles: list[str]) -> None:
        error = error_of(code)
        payload = self._session.wire.failure(error, sub=self.name, receipt_handles=handles)
        await self._session.send_bytes(payload)

    async def _answer_failure(self, frame: Settling, error: MillstreamError) -> None:
        try:
            await self._session.send_bytes(
                self._session.wire.failure(
                    error, id_=frame.id, sub=self.name, receipt_handles=list(_handles(frame))
                )
            )
        except SocketClosed:
            return

    # Time

    @property
    def is_due(self) -> bool:
        """Return whether deliveries are held or the queue's definition may have changed."""
        queue = self._engine.catalog.cached_queue(self._queue)
        return len(self._leased) > 0 or queue is None or queue.spec.paused is not self._paused

    async def tick(self) -> None:
        """Extend expiring deliveries, forget expired ones, and check the queue's definition."""
        now_ms = self._engine.clock.now_ms()
        await self._check_queue()
        if self._auto_extend and self._pump is not None:
            await self._extend(now_ms)
        for handle in self._leased.lapsed(now_ms):
            self._leased.discard(handle)

    async def _check_queue(self) -> None:
        try:
            queue = self._engine.catalog.cached_queue(
                self._queue
            ) or await self._engine.catalog.queue(self._queue)
        except QueueNotFound as error:
            await self._fail(error)
            return
        except MillstreamError:
            return  # the next tick tries again
        if queue.spec.paused is not self._paused and self._pump is not None:
            self._paused = queue.spec.paused
            with suppress(SocketClosed):
                if self._paused:
                    await self._backoff.pause(QUEUE)
                else:
                    await self._backoff.resume(QUEUE)
                    await self.stop()  # its receive waits for new messages
                    self.start()

    async def _extend(self, now_ms: int) -> None:
        timeout_ms = self._timeout_ms()
        ending = self._leased.ending(now_ms + max(timeout_ms // 2, 2 * limits.PUSH_TICK_MS))
        for start in range(0, len(ending), limits.SETTLEMENTS_MAX):
            handles = ending[start : start + limits.SETTLEMENTS_MAX]
            settlements = [
                Settlement(handle, SettleAction.EXTEND, visibility_timeout_ms=timeout_ms)
                for handle in handles
            ]
            try:
                settled = await self._engine.queues.settle(self._queue, settlements)
            except MillstreamError:
                return  # the next tick tries again
            await self._note_extended(handles, settled)

    async def _note_extended(self, handles: Sequence[str], settled: Sequence[Settled]) -> None:
        lost: list[str] = []
        for handle, answer in zip(handles, settled, strict=True):
            if answer.error is None and answer.visible_at_ms:
                self._leased.extended(handle, answer.visible_at_ms)
            else:
                self._leased.discard(handle)
                lost.append(handle)
        if lost:
            try:
                await self._send_refused(ErrorCode.RECEIPT_HANDLE_EXPIRED, lost)
            except SocketClosed:
                return

    def _timeout_ms(self) -> int:
        queue = self._engine.catalog.cached_queue(self._queue)
        default_ms = limits.VISIBILITY_TIMEOUT_MS_DEFAULT
        own_ms = default_ms if queue is None else queue.spec.visibility_timeout_ms
        timeout_ms = self._visibility_timeout_ms or own_ms
        return (
            max(timeout_ms, limits.AUTO_EXTEND_TIMEOUT_MS_MIN) if self._auto_extend else timeout_ms
        )

    async def end(self, *, release: bool) -> None:
        await self.stop()
        if self._verdicts is not None:
            await self._verdicts.finish()
        handles = self._leased.handles if release else []
        for start in range(0, len(handles), _RELEASE_BATCH_MAX):
            batch = handles[start : start + _RELEASE_BATCH_MAX]
            try:
                await self._engine.queues.settle(
                    self._queue, [Settlement(handle, SettleAction.RELEASE) for handle in batch]
                )
            except MillstreamError:
                return  # they return when their visibility timeout ends


def _handles(frame: Settling) -> Sequence[str]:
    return frame.receipt_handles or ()


def _has_reply(frame: Settling) -> bool:
    """Return whether a failure may be that of a reply, so that it settled nothing."""
    return isinstance(frame, Ack) and frame.reply is not UNSET


def _settlement(frame: Settling, handle: str) -> Settlement:
    match frame:
        case Ack():
            return Settlement(handle, SettleAction.ACK)
        case Nack(delay_seconds=delay, reason=reason, details=details):
            delay_ms = optional_ms(delay)
            return Settlement(handle, SettleAction.NACK, delay_ms, reason=reason, details=details)
        case Release():
            return Settlement(handle, SettleAction.RELEASE)
        case Extend(visibility_timeout_seconds=seconds):
            return Settlement(handle, SettleAction.EXTEND, visibility_timeout_ms=to_ms(seconds))
        case Reject(reason=reason, details=details):
            return Settlement(handle, SettleAction.REJECT, reason=reason, details=details)
        case _:
            assert_never(frame)
