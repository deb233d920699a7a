"""Settling deliveries: coalesces the settlements of one flush on one queue."""

import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import ErrorCode
from storage.domain.queues.backoff import Backoff
from storage.domain.queues.message import (
    SETTLED,
    ReceiptHandle,
    SettleAction,
    Settled,
    Settlement,
)
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.store import Verdict
from storage.redis.queues.script_args import (
    QueueCoalescingKey,
    attempts_of,
    fifo_arg,
    queue_keys_of,
)
from storage.redis.scripts import script
from storage.redis.transport.client import Reply
from storage.redis.transport.coalescing import runs_of
from storage.redis.transport.command import Command, command_of
from storage.redis.transport.script_status import refusal_in

_encoder = msgspec.msgpack.Encoder()


class SettlePart(msgspec.Struct, frozen=True, gc=False):
    """One caller's settlements: acknowledgements and others, and their positions in the call.

    `positions` has the position of each, acknowledgements first; it is empty if there are acknowledgements only.
    """

    acks: Sequence[bytes]
    others: Sequence[bytes]
    positions: Sequence[int]

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> "SettlePart":
        """Encode the settlements of one call."""
        acks: list[int] = []
        others: list[int] = []
        for nth, (settlement, _) in enumerate(verdicts):
            (acks if settlement.action is SettleAction.ACK else others).append(nth)
        return cls(
            [_encode_ack(verdicts[nth][1]) for nth in acks],
            [_encode_verdict(*verdicts[nth]) for nth in others],
            [*acks, *others] if others else (),
        )

    @property
    def count(self) -> int:
        """Number of settlements."""
        return len(self.acks) + len(self.others)


class Settles(QueueCoalescingKey):
    """Coalescer of the settlements of one flush on one queue, by definition and time."""

    __slots__ = ("any_delivery",)

    def __init__(self, queue: Queue, any_delivery: bool, now: ScriptTime) -> None:
        super().__init__(queue, now, any_delivery)
        self.any_delivery = any_delivery

    def commands(self, parts: Sequence[SettlePart]) -> list[tuple[Command, int]]:
        """Return one script call for about every SETTLEMENTS_MAX settlements."""
        runs = runs_of(parts, [part.count for part in parts], limits.SETTLEMENTS_MAX)
        return [(self._command(run), len(run)) for run in runs]

    def _command(self, parts: Sequence[SettlePart]) -> Command:
        acks = [ack for part in parts for ack in part.acks]
        others = [verdict for part in parts for verdict in part.others]
        return command_of(
            script("settle_messages"),
            queue_keys_of(self.queue),
            self.now,
            attempts_of(self.queue),
            limits.VISIBILITY_TIMEOUT_MS_MAX,
            fifo_arg(self.queue),
            "1" if self.any_delivery else "0",
            _encode_backoff(self.queue.spec.backoff) if others else b"",
            b"".join((_ARRAY_32, (_ACK_ITEMS * len(acks)).to_bytes(4, "big"), *acks)),
            *others,
        )

    def answers(self, parts: Sequence[SettlePart], reply: Reply) -> Sequence[Any]:
        """Return a list of Settled for each part, or the error to raise to its caller.

        The list is in the order of the part's settlements.
        """
        refusal = refusal_in(reply)
        if refusal is not None:
            return [refusal] * len(parts)
        results = iter(reply[2:])
        acks = [list(map(_acknowledged, islice(results, len(part.acks)))) for part in parts]
        others = [[_settled(*next(results)) for _ in part.others] for part in parts]
        return [
            _in_order(part.positions, [*first, *rest])
            for part, first, rest in zip(parts, acks, others, strict=True)
        ]

    def abandoned(self, part: SettlePart, answer: list[Settled]) -> None:
        """Do nothing: settled deliveries stay settled."""


def _in_order(positions: Sequence[int], settled: list[Settled]) -> list[Settled]:
    if not positions:
        return settled
    by_position = dict(zip(positions, settled, strict=True))
    return [by_position[nth] for nth in range(len(settled))]


def _encode_verdict(settlement: Settlement, handle: ReceiptHandle) -> bytes:
    extends = settlement.action is SettleAction.EXTEND
    delay_ms = -1 if settlement.delay_ms is None else settlement.delay_ms
    time_ms = settlement.visibility_timeout_ms if extends else delay_ms
    times = (handle.arrival_ms, handle.delivery, handle.received_ms)
    details = (settlement.details,) if settlement.details else ()
    return _encoder.encode(
        (settlement.action, handle.offset, *times, time_ms, settlement.reason, *details)
    )


def _encode_backoff(policy: Backoff | None) -> bytes:
    """Encode the policy for lib/backoff.lua, with a seed for its jitter."""
    if policy is None:
        return b""
    shape = (policy.kind, policy.initial_ms, policy.multiplier, policy.max_ms, policy.delays_ms)
    return _encoder.encode((*shape, policy.jitter, random.getrandbits(53)))


def _encode_ack(handle: ReceiptHandle) -> bytes:
    """Encode an acknowledgement.

    The offset, the first items of the record that it must match, and its entry's id, each as MessagePack's str 8: the
    store's Lua does not support bin.
    """
    record = _encoder.encode((handle.delivery, handle.received_ms, handle.arrival_ms))[1:]
    offset = b"%d" % handle.offset
    entry = b"%b-%d" % (offset, handle.arrival_ms)
    return _ACK % (len(offset), offset, len(record), record, len(entry), entry)


_ACK_ITEMS = 3
_ACK = b"\xd9%c%b" * _ACK_ITEMS
_ARRAY_32 = b"\xdd"


def _acknowledged(result: int) -> Settled:
    return SETTLED if result == 0 else _settled(result, -1)


def _settled(result: int, visible_at_ms: int) -> Settled:
    """Convert a result number of settle_messages.lua."""
    match result:
        case 0:
            return SETTLED if visible_at_ms < 0 else Settled(None, visible_at_ms)
        case 1:
            return Settled(ErrorCode.RECEIPT_HANDLE_EXPIRED)
        case 3:
            return Settled(ErrorCode.VALIDATION_FAILED)
        case _:
            return Settled(ErrorCode.MESSAGE_NOT_FOUND)
