"""Sending messages: coalesces the sends of one flush to one queue."""

from collections.abc import Sequence
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
from storage.domain.names import LogId
from storage.domain.queues.message import SentMessage, message_id
from storage.domain.queues.queue import Queue
from storage.domain.streams.idempotence import PartialDuplicate
from storage.hot_store.errors import PartitionsChanged
from storage.hot_store.queues.store import PartSent, SendPart
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


class Sends(QueueCoalescingKey):
    """Coalescer of the sends of one flush to one queue, by definition, epoch and time."""

    __slots__ = ("limits", "store_epoch")

    def __init__(self, queue: Queue, store_epoch: int, now: ScriptTime, limits: Limits) -> None:
        super().__init__(queue, now, store_epoch)
        self.store_epoch = store_epoch
        self.limits = limits

    def commands(self, parts: Sequence[SendPart]) -> list[tuple[Command, int]]:
        """Return one script call for about every BATCH_MESSAGES_MAX messages."""
        counts = [len(part.encoded) for part in parts]
        runs = runs_of(parts, counts, limits.BATCH_MESSAGES_MAX)
        return [(self._command(run), len(run)) for run in runs]

    def _command(self, parts: Sequence[SendPart]) -> Command:
        spec = self.queue.spec
        arguments: list[Argument] = []
        for part in parts:
            count = len(part.encoded)
            if part.idempotency_key or part.claims:
                claims = _encoder.encode(part.claims) if part.claims else b""
                arguments += (
                    -count,
                    part.idempotency_key,
                    part.fingerprint,
                    claims,
                    part.generation,
                )
            else:
                arguments.append(count)
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
        log_id = self.queue.log_id
        if verdict[0] == _SENT:
            first = verdict[1]
            offsets = range(first, first + len(part.encoded))
            return PartSent([SentMessage(message_id(log_id, one), one) for one in offsets], left)
        match verdict:
            case [1, *stored_offsets]:
                return PartSent([_sent(log_id, offset) for offset in stored_offsets], left)
            case [2]:
                return IdempotencyKeyReused()
            case [4]:
                return PartSent([], left)
            case [5, lasts]:
                return PartialDuplicate(lasts)
            case [6]:
                return ProducerFenced("This producer is retired: it has sent all its records.")
            case [7]:
                return TooManyProducers()
            case [8]:
                return PartitionsChanged()
            case _:
                return QueueFull()


_SENT = 0  # added, at offsets that follow one another: most verdicts


def _sent(log_id: LogId, offset: int) -> SentMessage:
    if offset < 0:
        return SentMessage(message_id(log_id, -1 - offset), -1 - offset, duplicate=True)
    return SentMessage(message_id(log_id, offset), offset)
