"""Copies of queues: typed wrappers of the scripts of origins and of copies."""

from collections.abc import Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.record_batch import decode_one, encode_one
from storage.domain.mirrors.mirror import MIRROR_FENCE
from storage.domain.names import LogId
from storage.domain.queues.copies import (
    CopiedMessage,
    CopiesApplied,
    CopyReached,
    CopyStart,
    CopyStep,
    DropCopies,
    PutCopy,
    RetainCopies,
    copied_headers,
)
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.contents import BrowsePage
from storage.hot_store.queues.copies import ChangeList, QueueCopyStore
from storage.redis.queues.queue_scripts import QueueScripts
from storage.redis.queues.script_args import fifo_arg, view_arg
from storage.redis.queues.stats import upkeep_arguments
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Argument

_SUPERSEDED, _UNFINISHED = 1, 2  # outcomes of apply_copies.lua

_encoder = msgspec.msgpack.Encoder()


class RedisQueueCopyStore(QueueScripts, QueueCopyStore):
    """Verbs of copies as one script each."""

    async def changes(
        self, queue: Queue, position: tuple[int, int] | None, next_offset: int, now: ScriptTime
    ) -> ChangeList:
        reply = await self._write(
            "read_changes",
            queue,
            now,
            *(position or ("", 0)),
            limits.COPY_CHANGES_MAX,
            limits.COPY_CHANGES_RETENTION_MS,
            next_offset,
        )
        _, now_ms, store_epoch, number, is_missing, next_offset, left, fence, *of = reply
        copy_of, copied_to, *changes = of
        return ChangeList(
            now_ms,
            store_epoch,
            number,
            not is_missing,
            next_offset,
            left,
            bool(fence),
            copy_of.decode() or None,
            copied_to,
            list(zip(changes[::2], changes[1::2], strict=True)),
        )

    async def at(
        self, queue: Queue, offsets: Sequence[int], now: ScriptTime
    ) -> tuple[list[CopiedMessage], int]:
        page = BrowsePage(-1, len(offsets))
        messages, examined = await self._export(queue, page, "0", offsets, now)
        return messages, len(offsets) if examined is None else examined

    async def contents(
        self, queue: Queue, page: BrowsePage, *, dead: bool, now: ScriptTime
    ) -> tuple[list[CopiedMessage], int | None]:
        return await self._export(queue, page, "1" if dead else "0", (), now)

    async def _export(
        self, queue: Queue, page: BrowsePage, dead: str, offsets: Sequence[int], now: ScriptTime
    ) -> tuple[list[CopiedMessage], int | None]:
        reply = await self._write(
            "export_messages",
            queue,
            *upkeep_arguments(queue, self._limits, now),
            *page,
            limits.BROWSE_BYTES_MAX,
            dead,
            *offsets,
        )
        return [_copied(row) for row in reply[3:]], None if reply[2] < 0 else reply[2]

    async def begin(
        self, copy: Queue, origin_id: LogId, own: tuple[LogId, int] | None, now: ScriptTime
    ) -> CopyStart | None:
        reply = await self._write(
            "begin_copy", copy, now, MIRROR_FENCE, origin_id, *(own or ("", 0))
        )
        _, session, *reached = reply
        if not session:
            return None
        position, next_offset = reached
        return CopyStart(session, position.decode(), next_offset)

    async def apply(
        self,
        copy: Queue,
        steps: Sequence[CopyStep],
        reached: CopyReached,
        store_epoch: int,
        now: ScriptTime,
    ) -> CopiesApplied | None:
        arguments: list[Argument] = []
        for step in steps:
            arguments += _step_arguments(step)
        reply = await self._write(
            "apply_copies",
            copy,
            now,
            store_epoch,
            fifo_arg(copy),
            view_arg(copy),
            reached.session,
            reached.position or "",
            -1 if reached.next_offset is None else reached.next_offset,
            limits.COPY_DROPS_MAX,
            *arguments,
        )
        _, _, outcome, left, next_offset, added = reply
        if outcome == _SUPERSEDED:
            return None
        return CopiesApplied(added, next_offset, left, outcome != _UNFINISHED)

    async def end(self, copy: Queue) -> bool:
        reply = await self._write("end_copy", copy, MIRROR_FENCE)
        return bool(reply[1])


def _step_arguments(step: CopyStep) -> tuple[bytes, bytes]:
    """Return a step as the script takes it: the step, and a batch."""
    match step:
        case PutCopy(message, replaces):
            packed: Sequence[Any] = ("put", "1" if replaces else "0", _row(message))
            return _encoder.encode(packed), encode_one(message.record)
        case DropCopies(offsets):
            return _encoder.encode(("drop", *offsets)), b""
        case RetainCopies(offsets, after, until, dead):
            last = -1 if until is None else until
            return _encoder.encode(("only", "1" if dead else "0", after, last, *offsets)), b""


def _row(message: CopiedMessage) -> tuple[Any, ...]:
    """Return a message as export_messages.lua has it, without its batch."""
    died_at_ms = message.died_at_ms
    return (
        message.offset,
        -1 if message.due_at_ms is None else message.due_at_ms,
        () if died_at_ms is None else (died_at_ms, message.reason),
        "",
        message.arrival_ms,
        message.retained_from_ms,
        message.group,
        message.receive_count,
        message.failures,
        message.crash_count,
        message.first_received_at_ms,
        message.expires_at_ms,
        message.priority,
        message.last_failure_reason,
        message.details,
    )


def _copied(row: Reply) -> CopiedMessage:
    offset, due_ms, death, batch, arrival_ms, retained_ms, group, *counts, reason, details = row
    receives, failures, crashes, first_ms, expires_ms, priority = counts
    record = decode_one(batch)
    return CopiedMessage(
        offset=offset,
        data=record.data,
        headers=copied_headers(record.headers),
        arrival_ms=arrival_ms,
        retained_from_ms=retained_ms,
        due_at_ms=None if due_ms < 0 else due_ms,
        expires_at_ms=expires_ms,
        group=group.decode(),
        priority=priority,
        receive_count=receives,
        failures=failures,
        crash_count=crashes,
        first_received_at_ms=first_ms,
        last_failure_reason=reason.decode(),
        details=details.decode(errors="replace"),
        died_at_ms=death[0] if death else None,
        reason=death[1].decode() if death else "",
    )
