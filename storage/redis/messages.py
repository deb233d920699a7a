"""A queue's messages: the typed side of the queue scripts."""

import random
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from storage.domain import limits
from storage.domain.backoff import Backoff
from storage.domain.batches import (
    decode_one,
)
from storage.domain.clock import ScriptTime
from storage.domain.errors import (
    ErrorCode,
    InFlightLimitReached,
)
from storage.domain.limits import Limits
from storage.domain.messages import (
    ReceiptHandle,
    ReceivedMessage,
    SettleAction,
    Settled,
    Settlement,
    message_id,
)
from storage.domain.names import LogId
from storage.domain.queues import Queue
from storage.redis.answers import checked, refusal_in
from storage.redis.client import Reply
from storage.redis.pipeline import Argument, Pipeline
from storage.redis.queue_words import (
    attempts_of,
    encode_weights,
    fifo_word,
    queue_keys_of,
    words_of,
)
from storage.redis.sends import PartSent, SendPart, Sends

_encoder = msgspec.msgpack.Encoder()


class HotReceive(msgspec.Struct, frozen=True):
    """What a receive found; `next_due_ms` says when to look again when it found nothing, -1 for never.

    `departed` messages are on their way to the dead-letter queue.
    """

    messages: list[ReceivedMessage]
    now_ms: int
    next_due_ms: int
    departed: int


class HotQueues:
    """The operations of a queue. Raises LogNotReady where the log must be seen to first."""

    def __init__(self, pipeline: Pipeline, known: Limits) -> None:
        self._pipeline = pipeline
        self._limits = known

    def send(self, gatherer: Sends, part: SendPart) -> Awaitable[PartSent]:
        """Add a part together with others of the same flush."""
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def receive(
        self,
        queue: Queue,
        *,
        messages_max: int,
        visibility_timeout_ms: int,
        ask_to_wake: bool,
        receives_max: int,
        attempt_id: str,
        bytes_max: int,
        now: ScriptTime,
        abandoned: Callable[[list[ReceivedMessage]], None],
    ) -> HotReceive:
        """Hand out messages that are ready; `abandoned` gets them when the caller was gone by then."""

        def give_up(reply: Reply) -> None:
            if refusal_in(reply) is None and len(reply) > _RECEIVE_HEAD:
                abandoned(_received_all(queue.log_id, reply, visibility_timeout_ms))

        reply = checked(
            await self._pipeline.write(
                "receive_messages",
                queue_keys_of(queue),
                now,
                visibility_timeout_ms,
                messages_max,
                min(bytes_max, limits.RECEIVE_BYTES_MAX),
                attempts_of(queue),
                queue.spec.retention_ms,
                self._limits.due_moves_per_call,
                self._limits.skips_per_call,
                "1" if ask_to_wake else "0",
                fifo_word(queue),
                receives_max,
                queue.spec.in_flight_max,
                attempt_id,
                limits.ATTEMPT_WINDOW_MS,
                encode_weights(queue.spec.group_weights),
                abandoned=give_up,
            )
        )
        if reply[2] == _FULL:
            raise InFlightLimitReached
        messages = _received_all(queue.log_id, reply, visibility_timeout_ms)
        return HotReceive(messages, reply[1], reply[2], reply[3])

    async def settle(
        self,
        queue: Queue,
        verdicts: Sequence[tuple[Settlement, ReceiptHandle]],
        any_delivery: bool,
        now: ScriptTime,
    ) -> list[Settled]:
        """Take verdicts; one answer for each."""
        acks = [nth for nth, (said, _) in enumerate(verdicts) if said.action is SettleAction.ACK]
        others = [
            nth for nth, (said, _) in enumerate(verdicts) if said.action is not SettleAction.ACK
        ]
        arguments: list[Argument] = [len(acks)]
        for nth in acks:
            arguments += _encode_ack(verdicts[nth][1])
        arguments += [_encode_verdict(*verdicts[nth]) for nth in others]
        reply = checked(
            await self._pipeline.write(
                "settle_messages",
                queue_keys_of(queue),
                now,
                attempts_of(queue),
                limits.VISIBILITY_TIMEOUT_MS_MAX,
                fifo_word(queue),
                "1" if any_delivery else "0",
                _encode_backoff(queue.spec.backoff) if others else b"",
                *arguments,
            )
        )
        settled = [_settled(result, -1) for result in reply[2 : 2 + len(acks)]]
        if not others:
            return settled
        settled += [_settled(result, time) for result, time in reply[2 + len(acks) :]]
        by_place = dict(zip([*acks, *others], settled, strict=True))
        return [by_place[nth] for nth in range(len(verdicts))]


def _encode_verdict(settlement: Settlement, handle: ReceiptHandle) -> bytes:
    extends = settlement.action is SettleAction.EXTEND
    delay_ms = -1 if settlement.delay_ms is None else settlement.delay_ms
    time_ms = settlement.visibility_timeout_ms if extends else delay_ms
    times = (handle.arrival_ms, handle.delivery, handle.received_ms)
    return _encoder.encode((settlement.action, handle.offset, *times, time_ms, settlement.reason))


def _encode_backoff(policy: Backoff | None) -> bytes:
    """The policy as lib/backoff.lua takes it, with a seed for its jitter."""
    if policy is None:
        return b""
    shape = (policy.kind, policy.initial_ms, policy.multiplier, policy.max_ms, policy.delays_ms)
    return _encoder.encode((*shape, policy.jitter, random.getrandbits(53)))


def _encode_ack(handle: ReceiptHandle) -> tuple[Argument, ...]:
    """The offset, the first bytes of the record it must have, and its entry's id."""
    known = (handle.delivery, handle.received_ms, handle.arrival_ms)
    record = _RECORD_OF_TWELVE + _encoder.encode(known)[1:]
    return handle.offset, record, f"{handle.offset}-{handle.arrival_ms}"


_RECORD_OF_TWELVE = b"\x9c"  # MessagePack's word for twelve items


_DONE = Settled()


def _settled(result: int, visible_at_ms: int) -> Settled:
    """The numbers are those of settle_messages.lua."""
    match result:
        case 0:
            return _DONE if visible_at_ms < 0 else Settled(None, visible_at_ms)
        case 1:
            return Settled(ErrorCode.RECEIPT_HANDLE_EXPIRED)
        case 3:
            return Settled(ErrorCode.VALIDATION_FAILED)
        case _:
            return Settled(ErrorCode.MESSAGE_NOT_FOUND)


_RECEIVE_HEAD = 4
_FULL = -2
_FIRST_DELIVERY = 2  # items of its row


def _received_all(log_id: LogId, reply: Reply, visibility_timeout_ms: int) -> list[ReceivedMessage]:
    now_ms = reply[1]
    visible_at_ms = now_ms + visibility_timeout_ms
    return [
        _first_received(log_id, now_ms, visible_at_ms, *row)
        if len(row) == _FIRST_DELIVERY
        else _received(log_id, visible_at_ms, row)
        for row in reply[_RECEIVE_HEAD:]
    ]


def _first_received(
    log_id: LogId, now_ms: int, visible_at_ms: int, entry_id: bytes, batch: bytes
) -> ReceivedMessage:
    """A message's first delivery, which most are: its counts are known, and mostly it has no headers."""
    place, _, arrival = entry_id.partition(b"-")
    offset, arrival_ms = int(place), int(arrival)
    record = decode_one(batch)
    if record.headers:
        row = (offset, arrival_ms, batch, 1, 0, 0, now_ms, 1, now_ms)
        return _received(log_id, visible_at_ms, row)
    return ReceivedMessage(
        message_id(log_id, offset),
        offset,
        record.data,
        (),
        "",
        "",
        "",
        ReceiptHandle(log_id, offset, arrival_ms, 1, now_ms).encode(),
        arrival_ms,
        now_ms,
        visible_at_ms,
        1,
        0,
        0,
    )


def _received(log_id: LogId, visible_at_ms: int, row: Reply) -> ReceivedMessage:
    offset, arrival_ms, batch, receives, failures, crashes, first_ms, delivery, received_ms = row
    record = decode_one(batch)
    words = words_of(record)
    return ReceivedMessage(
        words.message_id or message_id(log_id, offset),
        offset,
        record.data,
        words.headers,
        words.content_type,
        words.group,
        words.dedup_id,
        ReceiptHandle(log_id, offset, arrival_ms, delivery, received_ms).encode(),
        arrival_ms,
        first_ms,
        visible_at_ms,
        receives,
        failures,
        crashes,
        words.system,
        words.dead_letter_source,
    )
