"""Sending messages: coalesces the sends of one flush to one queue."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import (
    IdempotencyKeyReused,
    ProducerFenced,
    QueueFull,
    TooManyProducers,
)
from storage.domain.limits import Limits
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    DEDUP_ID,
    GROUP,
    Header,
    Record,
    encode_batch,
)
from storage.domain.names import LogId
from storage.domain.queues.message import NewMessage, SentMessage, message_id
from storage.domain.queues.queue import DedupScope, Queue, QueueType
from storage.domain.streams.idempotence import PartialDuplicate, SequenceRange
from storage.redis.queues.script_args import (
    QueueCoalescingKey,
    fifo_arg,
    history_arg,
    queue_keys_of,
    view_arg,
)
from storage.redis.scripts import script
from storage.redis.transport.client import Reply
from storage.redis.transport.coalescing import runs_of
from storage.redis.transport.command import Argument, Command, command_of
from storage.redis.transport.script_status import refusal_in

_encoder = msgspec.msgpack.Encoder()


class SendPart(msgspec.Struct, frozen=True, gc=False):
    """One caller's messages, already encoded: (batch, options) for each.

    `claims` are those of monotonic producers, without a key; then the result may be PartialDuplicate.
    """

    encoded: Sequence[tuple[bytes, bytes]]
    idempotency_key: str = ""
    fingerprint: str = ""
    claims: tuple[SequenceRange, ...] = ()

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


class Sends(QueueCoalescingKey):
    """Coalescer of the sends of one flush to one queue, by definition, epoch and time."""

    __slots__ = ("limits", "store_epoch")

    def __init__(self, queue: Queue, store_epoch: int, now: ScriptTime, limits: Limits) -> None:
        super().__init__(queue, now, store_epoch)
        self.store_epoch = store_epoch
        self.limits = limits

    def commands(self, parts: Sequence[SendPart]) -> list[tuple[Command, int]]:
        """Return one script call for about every BATCH_MESSAGES_MAX messages."""
        runs = runs_of(parts, lambda part: len(part.encoded), limits.BATCH_MESSAGES_MAX)
        return [(self._command(run), len(run)) for run in runs]

    def _command(self, parts: Sequence[SendPart]) -> Command:
        spec = self.queue.spec
        arguments: list[Argument] = []
        for part in parts:
            claims = _encoder.encode(part.claims) if part.claims else b""
            arguments += (len(part.encoded), part.idempotency_key, part.fingerprint, claims)
            for pair in part.encoded:
                arguments += pair
        return command_of(
            script("send_messages"),
            queue_keys_of(self.queue),
            self.now,
            self.store_epoch,
            fifo_arg(self.queue),
            limits.IDEMPOTENCY_WINDOW_MS,
            self.limits.idempotency_keys_max,
            limits.DEDUP_WINDOW_MS,
            spec.messages_max or 0,
            spec.bytes_max or 0,
            spec.overflow,
            view_arg(self.queue),
            history_arg(self.queue),
            self.limits.monotonic_writers_max,
            *arguments,
        )

    def answers(self, parts: Sequence[SendPart], reply: Reply) -> Sequence[Any]:
        """Return a PartSent for each part, or the error to raise to its caller."""
        refusal = refusal_in(reply)
        if refusal is not None:
            return [refusal] * len(parts)
        left = reply[2]
        return [
            self._answer(part, verdict, left)
            for part, verdict in zip(parts, reply[3:], strict=True)
        ]

    def abandoned(self, part: SendPart, answer: PartSent) -> None:
        """Do nothing: sent messages stay."""

    def _answer(self, part: SendPart, verdict: Reply, left: int) -> PartSent | Exception:
        match verdict:
            case [0, first]:
                offsets: Iterable[int] = range(first, first + len(part.encoded))
            case [1, *stored_offsets]:
                offsets = stored_offsets
            case [2]:
                return IdempotencyKeyReused()
            case [4]:
                offsets = ()
            case [5, lasts]:
                return PartialDuplicate(lasts)
            case [6]:
                return ProducerFenced("This producer is retired: it has sent all its records.")
            case [7]:
                return TooManyProducers()
            case _:
                return QueueFull()
        return PartSent([_sent(self.queue.log_id, offset) for offset in offsets], left)


def _sent(log_id: LogId, offset: int) -> SentMessage:
    if offset < 0:
        return SentMessage(message_id(log_id, -1 - offset), -1 - offset, duplicate=True)
    return SentMessage(message_id(log_id, offset), offset)


def encode_message(message: NewMessage, queue: Queue) -> tuple[bytes, bytes]:
    """Encode a message as the log stores it, and its options for the script."""
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
