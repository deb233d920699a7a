"""What takes a message from one queue to another: the typed side of the scripts that two slots need.

    source                        target
    ready ─▶ moving ── take_in ─▶ ready          then the source clears what has arrived

A step may be repeated: the target remembers for `ARRIVAL_WINDOW_MS` what came, and from where.
"""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record, decode_one, encode_batch
from storage.domain.queues.queue import Queue
from storage.redis.queues.script_args import attempts_of, fifo_word, queue_keys_of, view_word
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked

_encoder = msgspec.msgpack.Encoder()


class Moving(msgspec.Struct, frozen=True, gc=False):
    """A message on its way. `move_id` is empty for one that was received too often."""

    offset: int
    arrival_ms: int
    group: str
    receives: int
    first_received_at_ms: int
    record: Record
    move_id: str
    priority: int


class Arriving(msgspec.Struct, frozen=True, gc=False):
    """A message as its target is to take it: `source` names its place before; counts go on from `receives`.

    `renewed`: its retention starts anew.
    """

    source: str
    record: Record
    arrival_ms: int
    renewed: bool
    group: str
    receives: int
    first_received_at_ms: int
    priority: int


class HotMoves:
    """The operations of a move. Raises LogNotReady where the log must be seen to first."""

    def __init__(self, pipeline: Pipeline, known: Limits) -> None:
        self._pipeline = pipeline
        self._limits = known

    async def moving(self, source: Queue, messages_max: int) -> list[Moving]:
        """What is on its way from `source`, in the order it was sent in."""
        reply = checked(
            await self._pipeline.write("list_transfers", queue_keys_of(source), messages_max)
        )
        return [_moving(row) for row in reply[1:]]

    async def depart(self, source: Queue, messages_max: int, move_id: str, now: ScriptTime) -> int:
        """Send ready messages on their way; gives how many. Fewer than asked: no more are ready."""
        spec = source.spec
        reply = checked(
            await self._pipeline.write(
                "start_transfer",
                queue_keys_of(source),
                now,
                messages_max,
                attempts_of(source),
                spec.retention_ms,
                self._limits.due_moves_per_call,
                fifo_word(source),
                move_id,
            )
        )
        return int(reply[1])

    async def take_in(
        self, target: Queue, arriving: Sequence[Arriving], store_epoch: int, now: ScriptTime
    ) -> tuple[int, int]:
        """Have `target` take messages; its next offset, and the offsets left below its ceiling."""
        arguments: list[Argument] = []
        for one in arriving:
            facts = (
                one.arrival_ms,
                0 if one.renewed else -1,
                one.group,
                one.receives,
                one.first_received_at_ms,
                one.priority,
            )
            arguments += (one.source, encode_batch((one.record,)), _encoder.encode(facts))
        reply = checked(
            await self._pipeline.write(
                "accept_transfer",
                queue_keys_of(target),
                now,
                store_epoch,
                fifo_word(target),
                limits.ARRIVAL_WINDOW_MS,
                view_word(target),
                *arguments,
            )
        )
        return reply[3], reply[2]

    async def clear(
        self, source: Queue, offsets: Sequence[int], now: ScriptTime, *, put_back: bool
    ) -> int:
        """Forget what has arrived, or make it ready again; gives how many were still moving."""
        back = "1" if put_back else "0"
        reply = checked(
            await self._pipeline.write(
                "finish_transfer", queue_keys_of(source), fifo_word(source), back, now, *offsets
            )
        )
        return int(reply[1])


def _moving(row: Reply) -> Moving:
    offset, arrival_ms, group, receives, first_ms, batch, move_id, priority = row
    record = decode_one(batch)
    return Moving(
        offset, arrival_ms, group.decode(), receives, first_ms, record, move_id.decode(), priority
    )
