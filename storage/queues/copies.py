"""Copies of queues of other deployments: changes of an origin, and steps of a copy.

    origin                         copy
    changes since a position  ──▶ drop removed messages, replace changed ones     one script call, with the
    messages behind an offset ──▶ add                                             position that is reached

Each partition of a queue is copied to the partition of the same number. A copy accepts and delivers nothing else until it is ended. Steps are idempotent: they state what the origin contains, not what
happened to it. A process that begins a session ends the previous one, whose steps are refused from then on (ADR 0091).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import attrs
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import FenceMismatch, ValidationFailed
from storage.domain.log.record_batch import MESSAGE_ID
from storage.domain.names import LogId, QueueName, check_fence
from storage.domain.queues.copies import (
    CopiedHeader,
    CopiedMessage,
    CopiesApplied,
    CopyReached,
    CopyStart,
    CopyStep,
    PutCopy,
    QueueChanges,
    QueueContentsPage,
)
from storage.domain.queues.message import message_id
from storage.domain.queues.queue import Queue
from storage.hot_store.log_store import LogStore
from storage.hot_store.queues.contents import BrowsePage
from storage.hot_store.queues.copies import ChangeList, QueueCopyStore
from storage.hot_store.wakeups import Wakeups
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor, address_of
from storage.quotas.memory_guard import MemoryGuard

T = TypeVar("T")


@attrs.define(eq=False, slots=False, kw_only=True)
class QueueCopies:
    """Copies of queues: of those of this deployment elsewhere, and of others here.

    Every verb raises QueueNotFound for a queue that does not exist.
    """

    _hot: QueueCopyStore
    _logs: LogStore
    _executor: QueueExecutor
    _provisioner: LogProvisioner
    _wakeups: Wakeups
    _clock: Clock
    _memory_guard: MemoryGuard

    # Of a queue that is copied

    async def changes(
        self,
        name: QueueName,
        position: str,
        *,
        partition: int = 0,
        next_offset: int = 0,
        wait_ms: int = 0,
    ) -> QueueChanges:
        """Return the changes of a partition since a position; empty: there is none yet.

        Waits until there is a change, or a message from `next_offset` on. Changes are recorded from the first call on, and until
        COPY_CHANGES_RETENTION_MS after the last one. Offsets are those of the partition's log. Raises ValidationFailed if the queue
        has no such partition.
        """
        since = _parsed(position)
        log = await self._log(name, partition)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / limits.SECOND_MS
        with self._wakeups.waiting([log.log_id], alone=False) as waiter:
            while True:
                waiter.reset()
                changes = await self._run(
                    name, partition, lambda log: self._changes(log, since, next_offset)
                )
                left_s = until - loop.time()
                if not changes.complete or _has_news(changes, next_offset) or left_s <= 0:
                    partitions = len((await self._executor.resolve(name)).logs)
                    return replace(changes, partitions=partitions)
                await waiter.wait(min(left_s, limits.COPY_POLL_MS / limits.SECOND_MS))

    async def _changes(
        self, queue: Queue, position: tuple[int, int] | None, next_offset: int
    ) -> QueueChanges:
        now = self._clock.script_time()
        listed = await self._hot.changes(queue, position, next_offset, now)
        offsets = list(dict.fromkeys(offset for field, offset in listed.changes if field == b"c"))
        messages, examined = await self._hot.at(queue, offsets, now) if offsets else ([], 0)
        listed = _without(listed, set(offsets[examined:]))
        removed = {offset for field, offset in listed.changes if field != b"p"}
        removed -= {message.offset for message in messages}
        return QueueChanges(
            queue_id=queue.log_id,
            position=_position_of(listed),
            complete=listed.is_complete,
            removed=tuple(sorted(removed)),
            changed=tuple(_with_id(queue, message) for message in messages),
            purged_before=max(
                (offset for field, offset in listed.changes if field == b"p"), default=0
            ),
            next_offset=listed.next_offset,
            truncated=listed.left > 0,
            now_ms=listed.now_ms,
            fenced=listed.is_fenced,
            copy_of=listed.copy_of,
            copied_to=listed.copied_to,
        )

    async def contents(
        self, name: QueueName, *, after: int, dead: bool, partition: int = 0
    ) -> QueueContentsPage:
        """Return a partition's messages behind an offset, or dead letters, by offset.

        Raises ValidationFailed if the queue has no such partition.
        """
        page, now = BrowsePage(after, limits.COPY_MESSAGES_MAX), self._clock.script_time()

        async def export(queue: Queue) -> QueueContentsPage:
            messages, following = await self._hot.contents(queue, page, dead=dead, now=now)
            return QueueContentsPage(
                queue_id=queue.log_id,
                messages=tuple(_with_id(queue, message) for message in messages),
                after=following,
            )

        return await self._run(name, partition, export)

    async def set_fence(self, name: QueueName, token: str, expected: str | None = None) -> None:
        """Fence a queue: it accepts no messages, and delivers none; an empty token ends that.

        Mirrors with this token still write it. Settlements are accepted. With `expected`, only if that is the current token: of any
        partition, if the others have the new one, as after a call that was interrupted. Raises FenceMismatch.
        """
        check_fence(token, expected)

        async def fence(log: Queue, unless_other: str | None) -> None:
            epoch = self._provisioner.store_epoch
            await self._logs.set_fence(address_of(log), token, unless_other, epoch)

        async def has_changed(log: Queue) -> bool:
            try:
                await fence(log, expected)
            except FenceMismatch:
                await fence(log, token)
                return False
            return True

        if not any(await self._executor.each(name, has_changed)):
            raise FenceMismatch

    # Of a copy

    async def begin(
        self,
        name: QueueName,
        origin_id: LogId,
        own: tuple[LogId, int] | None,
        *,
        partition: int = 0,
    ) -> CopyStart | None:
        """Begin or continue to copy the log `origin_id` to a partition.

        Returns None if that accepts messages of its own.

        `own`: the log that `origin_id` is a copy of itself, and up to which offset. If that is this one, and up to its end, the
        messages here are replaced; otherwise they stay, since the origin may not have them.
        """
        return await self._run(
            name,
            partition,
            lambda log: self._hot.begin(log, origin_id, own, self._clock.script_time()),
        )

    async def apply(
        self,
        name: QueueName,
        steps: Sequence[CopyStep],
        reached: CopyReached,
        *,
        partition: int = 0,
    ) -> CopiesApplied | None:
        """Apply steps to a partition in order; store the progress. None if the session has ended.

        Raises BacklogFull and QuotaExceeded for new messages if the store or the namespace has no capacity left.
        """
        adds = any(isinstance(step, PutCopy) and not step.replaces for step in steps)
        if adds and self._memory_guard.is_shedding:
            self._memory_guard.check(name.namespace)

        async def apply(queue: Queue) -> CopiesApplied | None:
            while True:
                epoch, now = self._provisioner.store_epoch, self._clock.script_time()
                applied = await self._hot.apply(queue, steps, reached, epoch, now)
                if applied is not None:
                    self._provisioner.reserve_ahead(
                        address_of(queue), applied.next_offset, applied.left
                    )
                if applied is None or applied.is_finished:
                    return applied

        return await self._run(name, partition, apply)

    async def end(self, name: QueueName) -> bool:
        """Let a copy accept and deliver messages; return False if it did before."""
        return any(await self._executor.each(name, self._hot.end))

    async def _run(
        self, name: QueueName, partition: int, verb: Callable[[Queue], Awaitable[T]]
    ) -> T:
        return await self._executor.run(name, verb, await self._log(name, partition))

    async def _log(self, name: QueueName, partition: int) -> Queue:
        logs = (await self._executor.resolve(name)).logs
        if not 0 <= partition < len(logs):
            raise ValidationFailed.at(
                "/partition",
                f"The queue has {len(logs)} partitions, numbered from 0",
                "out_of_range",
            )
        return logs[partition]


def _has_news(changes: QueueChanges, next_offset: int) -> bool:
    has_changes = changes.removed or changes.changed or changes.purged_before or changes.truncated
    return bool(has_changes) or changes.next_offset > next_offset


def _without(listed: ChangeList, offsets: set[int]) -> ChangeList:
    """Return the changes before the first one of these messages, which were not read."""
    for index, (field, offset) in enumerate(listed.changes):
        if field == b"c" and offset in offsets:
            cut = len(listed.changes) - index
            return listed._replace(
                changes=listed.changes[:index], number=listed.number - cut, left=listed.left + cut
            )
    return listed


def _position_of(listed: ChangeList) -> str:
    return f"{listed.store_epoch}-{listed.number}"


def _parsed(position: str) -> tuple[int, int] | None:
    """Return the store epoch and the number in a position; None for one of no known form."""
    epoch, _, number = position.partition("-")
    if not (epoch.isdecimal() and number.isdecimal() and len(position) <= _POSITION_MAX):
        return None
    return int(epoch), int(number)


_POSITION_MAX = 40


def _with_id(queue: Queue, message: CopiedMessage) -> CopiedMessage:
    """Return the message with its id, which a copy keeps."""
    if message.has_header(MESSAGE_ID):
        return message
    id_ = message_id(queue.log_id, message.offset).encode()
    header = CopiedHeader(MESSAGE_ID, "", id_)
    return replace(message, headers=(*message.headers, header))
