"""Transfer of messages between queues: typed wrappers of the scripts that two slots need.

    source                        target
    ready ─▶ moving ── accept ──▶ ready          then the source clears what has arrived

A step may be repeated: the target remembers for `ARRIVAL_WINDOW_MS` what arrived, and from where.
"""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.record_batch import decode_one, encode_batch
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.transfers import (
    Arriving,
    Departure,
    Departures,
    Moving,
    TransferStore,
)
from storage.redis.queues.queue_scripts import QueueScripts
from storage.redis.queues.script_args import attempts_of, fifo_arg, view_arg
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Argument

_encoder = msgspec.msgpack.Encoder()
_ARRIVED, _PUT_BACK = "", "1"  # what finish_transfer.lua does with messages that are not dead
_BY_ROUTES = "routes"  # move id of what routes take


class RedisTransferStore(QueueScripts, TransferStore):
    """Transfer verbs as one script each."""

    async def moving(self, source: Queue, messages_max: int) -> Departures:
        return await self._list(source, messages_max, "0")

    async def routed(self, source: Queue, messages_max: int) -> Departures:
        return await self._list(source, messages_max, "1")

    async def _list(self, source: Queue, messages_max: int, by_routes: str) -> Departures:
        reply = await self._write("list_transfers", source, messages_max, by_routes)
        return _departures(reply[1:])

    async def depart(self, source: Queue, messages_max: int, move_id: str, now: ScriptTime) -> int:
        return int((await self._start(source, messages_max, now, move_id, ""))[1])

    async def depart_routed(
        self, source: Queue, messages_max: int, bytes_max: int, now: ScriptTime
    ) -> Departure:
        reply = await self._start(source, messages_max, now, _BY_ROUTES, "1", bytes_max)
        return Departure(_departures(reply[4:]), *reply[2:4])

    async def _start(
        self, source: Queue, messages_max: int, now: ScriptTime, *arguments: Argument
    ) -> Reply:
        spec = source.spec
        return await self._write(
            "start_transfer",
            source,
            now,
            messages_max,
            attempts_of(source),
            spec.retention_ms,
            self._limits.due_moves_per_call,
            fifo_arg(source),
            *arguments,
        )

    async def accept(
        self, target: Queue, arriving: Sequence[Arriving], store_epoch: int, now: ScriptTime
    ) -> tuple[int, int]:
        arguments: list[Argument] = []
        for message in arriving:
            facts = (
                message.arrival_ms,
                0 if message.renewed else -1,
                message.group,
                message.receive_count,
                message.first_received_at_ms,
                message.priority,
            )
            arguments += (message.source, encode_batch((message.record,)), _encoder.encode(facts))
        reply = await self._write(
            "accept_transfer",
            target,
            now,
            store_epoch,
            fifo_arg(target),
            limits.ARRIVAL_WINDOW_MS,
            view_arg(target),
            *arguments,
        )
        return reply[3], reply[2]

    async def clear(
        self, source: Queue, positions: Sequence[int], now: ScriptTime, *, put_back: bool
    ) -> int:
        return await self._finish(source, positions, _PUT_BACK if put_back else _ARRIVED, now)

    async def reject(
        self, source: Queue, positions: Sequence[int], reason: str, now: ScriptTime
    ) -> int:
        return await self._finish(source, positions, reason, now)

    async def _finish(
        self, source: Queue, positions: Sequence[int], what: str, now: ScriptTime
    ) -> int:
        reply = await self._write(
            "finish_transfer", source, fifo_arg(source), what, now, *positions
        )
        return int(reply[1])


def _departures(reply: Reply) -> Departures:
    name, *rows = reply
    return Departures(name.decode(), [_moving(row) for row in rows])


def _moving(row: Reply) -> Moving:
    position, offset, arrival_ms, group, receives, first_ms, batch, move_id, *others = row
    priority, expires_at_ms, failures, crashes, *words = others
    return Moving(
        position,
        offset,
        arrival_ms,
        group.decode(),
        receives,
        first_ms,
        decode_one(batch),
        move_id.decode(),
        priority,
        expires_at_ms,
        failures,
        crashes,
        *(word.decode() for word in words),
    )
