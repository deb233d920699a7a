"""Receiving messages: coalesces the receives of one flush from one queue."""

from collections.abc import Sequence
from typing import Any

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import InFlightLimitReached, ValidationFailed
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record, decode_columns, decode_one
from storage.domain.names import LogId
from storage.domain.queues.message import ReceiptHandle, ReceivedMessage, message_id
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.store import HotReceive, ReceivePart
from storage.redis.queues.script_args import (
    QueueCoalescingKey,
    attempts_of,
    encode_weights,
    fifo_arg,
    letters_arg,
    parse_headers,
    queue_keys_of,
)
from storage.redis.scripts import script
from storage.redis.transport.client import Reply
from storage.redis.transport.coalescing import runs_of
from storage.redis.transport.command import Argument, Command, command_of
from storage.redis.transport.script_status import refusal_in


class Receives(QueueCoalescingKey):
    """Coalescer of the receives of one flush from one queue, by definition and time."""

    __slots__ = ("_limits", "receives_max")

    def __init__(self, queue: Queue, receives_max: int, now: ScriptTime, limits: Limits) -> None:
        super().__init__(queue, now, receives_max)
        self.receives_max = receives_max
        self._limits = limits

    def commands(self, parts: Sequence[ReceivePart]) -> list[tuple[Command, int]]:
        """Return one script call for about every RECEIVE_MESSAGES_MAX messages."""
        counts = [part.messages_max for part in parts]
        runs = runs_of(parts, counts, limits.RECEIVE_MESSAGES_MAX)
        return [(self._command(run), len(run)) for run in runs]

    def _command(self, parts: Sequence[ReceivePart]) -> Command:
        spec = self.queue.spec
        arguments: list[Argument] = []
        for part in parts:
            arguments += (
                part.visibility_timeout_ms,
                part.messages_max,
                min(part.bytes_max, limits.RECEIVE_BYTES_MAX),
                "1" if part.register_waiter else "0",
                part.attempt_id,
                "1" if part.strict_attempt else "0",
                part.consumer,
            )
        return command_of(
            script("receive_messages"),
            queue_keys_of(self.queue),
            self.now,
            attempts_of(self.queue),
            spec.retention_ms,
            self._limits.due_moves_per_call,
            self._limits.skips_per_call,
            fifo_arg(self.queue),
            self.receives_max,
            spec.in_flight_max,
            limits.ATTEMPT_WINDOW_MS,
            encode_weights(spec.group_weights),
            limits.RECEIVE_BYTES_MAX,
            letters_arg(self.queue),
            *arguments,
        )

    def answers(self, parts: Sequence[ReceivePart], reply: Reply) -> Sequence[Any]:
        """Return a HotReceive for each part, or the error to raise to its caller."""
        refusal = refusal_in(reply)
        if refusal is not None:
            return [refusal] * len(parts)
        return [
            self._answer(part, reply[1], answer)
            for part, answer in zip(parts, reply[2:], strict=True)
        ]

    def _answer(
        self, part: ReceivePart, now_ms: int, answer: Reply
    ) -> HotReceive | InFlightLimitReached | ValidationFailed:
        next_due_ms, departed, *rows = answer
        if next_due_ms == _FULL:
            return InFlightLimitReached()
        if next_due_ms == _REFUSED:
            return ValidationFailed.at("/attempt_id", _ATTEMPT_CHANGED, "changed")
        messages = _received_all(self.queue.log_id, now_ms, part.visibility_timeout_ms, rows)
        return HotReceive(messages, now_ms, next_due_ms, departed, next_due_ms != _NOT_SERVED)

    def abandoned(self, part: ReceivePart, answer: HotReceive) -> None:
        """Release messages whose caller no longer waits."""
        if answer.messages:
            part.abandoned(answer.messages)


_FULL, _NOT_SERVED, _REFUSED = -2, -3, -4
_ATTEMPT_CHANGED = "The messages of this attempt were settled or extended"
_FIRST_DELIVERY = 2  # number of items of its row
_BATCH = 2  # place of the batch in the row of any other delivery


def _received_all(
    log_id: LogId, now_ms: int, visibility_timeout_ms: int, rows: Sequence[Reply]
) -> list[ReceivedMessage]:
    visible_at_ms = now_ms + visibility_timeout_ms
    return [
        _first_received(log_id, now_ms, visible_at_ms, *row)
        if len(row) == _FIRST_DELIVERY
        else _received(log_id, visible_at_ms, decode_one(row[_BATCH]), row)
        for row in rows
    ]


def _first_received(
    log_id: LogId, now_ms: int, visible_at_ms: int, entry_id: bytes, batch: bytes
) -> ReceivedMessage:
    """Build a message's first delivery, the common case.

    Its counts are known, and mostly it has no headers.
    """
    place, _, arrival = entry_id.partition(b"-")
    offset, arrival_ms = int(place), int(arrival)
    columns = decode_columns(batch)
    if columns.headers:
        record = Record(columns.data, "", columns.headers[0])
        row = (offset, arrival_ms, batch, 1, 0, 0, now_ms, 1, now_ms)
        return _received(log_id, visible_at_ms, record, row)
    return ReceivedMessage(
        message_id(log_id, offset),
        offset,
        columns.data,
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


def _received(log_id: LogId, visible_at_ms: int, record: Record, row: Reply) -> ReceivedMessage:
    offset, arrival_ms, _, receives, failures, crashes, first_ms, delivery, received_ms = row
    parsed = parse_headers(record.headers)
    return ReceivedMessage(
        parsed.message_id or message_id(log_id, offset),
        offset,
        record.data,
        parsed.headers,
        parsed.content_type,
        parsed.group,
        parsed.dedup_id,
        ReceiptHandle(log_id, offset, arrival_ms, delivery, received_ms).encode(),
        arrival_ms,
        first_ms,
        visible_at_ms,
        receives,
        failures,
        crashes,
        parsed.system,
        parsed.dead_letter_source,
    )
