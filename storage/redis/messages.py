"""A queue's messages: the typed side of the queue scripts."""

import hashlib
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.backoff import Backoff
from storage.domain.batches import (
    CONTENT_TYPE,
    DEAD_LETTER_SOURCE,
    DEDUP_ID,
    GROUP,
    MESSAGE_ID,
    RESERVED,
    Header,
    Record,
    decode_one,
    encode_batch,
)
from storage.domain.clock import ScriptTime
from storage.domain.errors import (
    ErrorCode,
    IdempotencyKeyReused,
    InFlightLimitReached,
    QueueFull,
)
from storage.domain.limits import Limits
from storage.domain.messages import (
    NewMessage,
    ReceiptHandle,
    ReceivedMessage,
    SentMessage,
    SettleAction,
    Settled,
    Settlement,
    message_id,
)
from storage.domain.names import LogId
from storage.domain.queue_rules import GroupWeight, PoisonPolicy
from storage.domain.queues import DedupScope, Queue, QueueType
from storage.domain.streams import LogRecord
from storage.redis.answers import checked, refusal_in
from storage.redis.client import Reply
from storage.redis.keys import queue_keys
from storage.redis.pipeline import Argument, Command, Pipeline, command_of
from storage.redis.scripts import script

_encoder = msgspec.msgpack.Encoder()


class SendPart(msgspec.Struct, frozen=True, gc=False):
    """One caller's messages, already encoded: (batch, options) for each."""

    encoded: Sequence[tuple[bytes, bytes]]
    idempotency_key: str = ""
    fingerprint: str = ""

    @property
    def size_bytes(self) -> int:
        """About: as if all were like the first."""
        return len(self.encoded) * len(self.encoded[0][0])


class PartSent(msgspec.Struct, frozen=True, gc=False):
    """Where a part's messages went. `left`: offsets that are reserved beyond the log's end."""

    messages: list[SentMessage]
    left: int


class HotReceive(msgspec.Struct, frozen=True):
    """What a receive found; `next_due_ms` says when to look again when it found nothing, -1 for never.

    `departed` messages are on their way to the dead-letter queue.
    """

    messages: list[ReceivedMessage]
    now_ms: int
    next_due_ms: int
    departed: int


class Sends(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Gathers the sends of one flush to one queue. Compared by identity: one object, one gathering."""

    namespace: str
    log_id: LogId
    fifo: bool
    store_epoch: int
    now: ScriptTime
    limits: Limits
    rules: tuple[int, int, str, str]

    def commands(self, parts: Sequence[SendPart]) -> list[tuple[Command, int]]:
        """One script call for each BATCH_MESSAGES_MAX messages or so."""
        return [(self._command(some), len(some)) for some in _calls_of(parts)]

    def _command(self, parts: Sequence[SendPart]) -> Command:
        arguments: list[Argument] = []
        for part in parts:
            arguments += (len(part.encoded), part.idempotency_key, part.fingerprint)
            for pair in part.encoded:
                arguments += pair
        return command_of(
            script("send_messages"),
            queue_keys(self.namespace, self.log_id),
            self.now,
            self.store_epoch,
            "1" if self.fifo else "0",
            limits.IDEMPOTENCY_WINDOW_MS,
            self.limits.idempotency_keys_max,
            limits.DEDUP_WINDOW_MS,
            *self.rules,
            *arguments,
        )

    def answers(self, parts: Sequence[SendPart], reply: Reply) -> Sequence[Any]:
        """A PartSent for each part, or the error that its caller is to see."""
        refusal = refusal_in(reply)
        if refusal is not None:
            return [refusal] * len(parts)
        left = reply[2]
        return [
            self._answer(part, verdict, left)
            for part, verdict in zip(parts, reply[3:], strict=True)
        ]

    def _answer(
        self, part: SendPart, verdict: Reply, left: int
    ) -> PartSent | IdempotencyKeyReused | QueueFull:
        match verdict:
            case [0, first]:
                offsets: Iterable[int] = range(first, first + len(part.encoded))
            case [1, *found]:
                offsets = found
            case [2]:
                return IdempotencyKeyReused()
            case _:
                return QueueFull()
        return PartSent([self._sent(offset) for offset in offsets], left)

    def _sent(self, offset: int) -> SentMessage:
        if offset < 0:
            return SentMessage(message_id(self.log_id, -1 - offset), -1 - offset, duplicate=True)
        return SentMessage(message_id(self.log_id, offset), offset)


def rules_of(queue: Queue) -> tuple[int, int, str, str]:
    """What a send is told: how many messages and bytes the queue may hold, 0 for no limit, what happens beyond them,
    and whether it is shown as a stream."""
    spec = queue.spec
    return spec.messages_max or 0, spec.bytes_max or 0, spec.overflow, view_word(queue)


def view_word(queue: Queue) -> str:
    """What scripts are told of a queue's stream view."""
    return "1" if queue.spec.stream_view else "0"


def encode_message(message: NewMessage, queue: Queue) -> tuple[bytes, bytes]:
    """A message as the log keeps it, and its options for the script."""
    spec, dedup_id = queue.spec, message.dedup_id
    if spec.deduplicate_by_content and not dedup_id:
        dedup_id = hashlib.sha256(message.body).hexdigest()
    reserved: list[Header] = list(message.system)
    if message.content_type:
        reserved.append((CONTENT_TYPE, "", message.content_type.encode()))
    if message.group:
        reserved.append((GROUP, "", message.group.encode()))
    if dedup_id:
        reserved.append((DEDUP_ID, "", dedup_id.encode()))
    batch = encode_batch((Record(message.body, "", (*message.headers, *reserved)),))
    delay_ms = spec.delay_ms if message.delay_ms is None else message.delay_ms
    ttl_ms = message.ttl_ms or spec.ttl_ms
    if spec.type is QueueType.FIFO:
        scope = message.group if spec.dedup_scope is DedupScope.GROUP else ""
        key = f"{scope}\0{dedup_id}" if dedup_id and scope else dedup_id
        return batch, _encoder.encode((spec.delay_ms, message.group, key, ttl_ms, 0))
    if not (delay_ms or message.group or ttl_ms or message.priority):
        return batch, b""
    return batch, _encoder.encode((delay_ms, message.group, "", ttl_ms, message.priority))


def _calls_of(parts: Sequence[SendPart]) -> list[list[SendPart]]:
    runs: list[list[SendPart]] = [[]]
    messages = 0
    for part in parts:
        messages += len(part.encoded)
        if runs[-1] and messages > limits.BATCH_MESSAGES_MAX:
            runs.append([])
            messages = len(part.encoded)
        runs[-1].append(part)
    return runs


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
                limits.RECEIVE_BYTES_MAX,
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
                _encode_weights(queue.spec.group_weights),
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


def queue_keys_of(queue: Queue) -> tuple[bytes, ...]:
    """The keys of a queue, in the scripts' order."""
    return queue_keys(queue.name.namespace, queue.log_id)


def fifo_word(queue: Queue) -> str:
    """What scripts are told of a queue's type."""
    return "1" if queue.spec.type is QueueType.FIFO else "0"


def attempts_of(queue: Queue) -> int:
    """What scripts are told of a queue's attempts: 0 for no limit, negative when they end with a parked group."""
    attempts_max = queue.spec.attempts_max or 0
    match queue.spec.on_poison:
        case PoisonPolicy.SKIP:
            return attempts_max
        case PoisonPolicy.BLOCK:
            return 0
        case PoisonPolicy.PARK_GROUP:
            return -(attempts_max or _NEVER)


_NEVER = 2**40  # attempts that no message will have: its group is parked only when it is rejected


@lru_cache(1024)
def _encode_weights(weights: tuple[GroupWeight, ...]) -> bytes:
    return _encoder.encode([(one.match, one.weight) for one in weights]) if weights else b""


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


class Words(msgspec.Struct, gc=False):
    """The reserved headers of a message, apart from its own ones."""

    headers: tuple[Header, ...]
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    message_id: str = ""
    dead_letter_source: str = ""
    system: tuple[Header, ...] = ()


def words_of(record: Record) -> Words:
    """A message's reserved headers as words, apart from its own ones."""
    if not record.headers:
        return _NO_WORDS
    own = tuple(header for header in record.headers if not header[0].startswith(RESERVED))
    if len(own) == len(record.headers):
        return Words(own)
    reserved = [header for header in record.headers if header[0].startswith(RESERVED)]
    known = {name: value.decode() for name, _, value in reserved if name in _OURS}
    return Words(
        own,
        known.get(CONTENT_TYPE, ""),
        known.get(GROUP, ""),
        known.get(DEDUP_ID, ""),
        known.get(MESSAGE_ID, ""),
        known.get(DEAD_LETTER_SOURCE, ""),
        tuple(header for header in reserved if header[0] not in _OURS),
    )


def as_stream_record(log_id: LogId, at: LogRecord) -> LogRecord:
    """A message as its queue's stream view shows it: its key is its group, or else its id."""
    words = words_of(at.record)
    headers = words.headers
    if words.content_type:
        headers = (*headers, (CONTENT_TYPE, "", words.content_type.encode()))
    known_as = words.message_id or message_id(log_id, at.offset)
    record = Record(at.record.data, words.group or known_as, headers)
    return LogRecord(at.offset, at.arrival_ms, record)


_OURS = frozenset((CONTENT_TYPE, GROUP, DEDUP_ID, MESSAGE_ID, DEAD_LETTER_SOURCE))
_NO_WORDS = Words(())


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
