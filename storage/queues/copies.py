"""Copies of queues of other deployments: changes of an origin, and steps of a copy.

    origin                         copy
    changes since a position  ──▶ drop removed messages, replace changed ones     one script call, with the
    messages behind an offset ──▶ add                                             position that is reached

A copy accepts and delivers nothing else until it is ended. Steps are idempotent: they state what the origin contains, not what
happened to it. A process that begins a session ends the previous one, whose steps are refused from then on (ADR 0091).
"""

import asyncio
from collections.abc import Sequence

import attrs
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
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
        self, name: QueueName, position: str, *, next_offset: int = 0, wait_ms: int = 0
    ) -> QueueChanges:
        """Return the changes since a position; empty: there is none yet.

        Waits until there is a change, or a message from `next_offset` on. Changes are recorded from the first call on, and until
        COPY_CHANGES_RETENTION_MS after the last one.
        """
        since = _parsed(position)
        queue = await self._executor.run(name, _itself)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / limits.SECOND_MS
        with self._wakeups.waiting([queue.log_id], alone=False) as waiter:
            while True:
                waiter.reset()
                changes = await self._executor.run(
                    name, lambda queue: self._changes(queue, since, next_offset)
                )
                left_s = until - loop.time()
                if not changes.complete or _has_news(changes, next_offset) or left_s <= 0:
                    return changes
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

    async def contents(self, name: QueueName, *, after: int, dead: bool) -> QueueContentsPage:
        """Return messages behind an offset, or dead letters, in the order of their offsets."""
        page, now = BrowsePage(after, limits.COPY_MESSAGES_MAX), self._clock.script_time()

        async def export(queue: Queue) -> QueueContentsPage:
            messages, following = await self._hot.contents(queue, page, dead=dead, now=now)
            return QueueContentsPage(
                queue_id=queue.log_id,
                messages=tuple(_with_id(queue, message) for message in messages),
                after=following,
            )

        return await self._executor.run(name, export)

    async def set_fence(self, name: QueueName, token: str, expected: str | None = None) -> None:
        """Fence a queue: it accepts no messages, and delivers none; an empty token ends that.

        Mirrors with this token still write it. Settlements are accepted. With `expected`, only if that is the current token.
        Raises FenceMismatch.
        """
        check_fence(token, expected)
        await self._executor.run(
            name,
            lambda queue: self._logs.set_fence(
                address_of(queue), token, expected, self._provisioner.store_epoch
            ),
        )

    # Of a copy

    async def begin(
        self, name: QueueName, origin_id: LogId, own: tuple[LogId, int] | None
    ) -> CopyStart | None:
        """Begin or continue to copy the queue `origin_id`; None if the queue accepts own messages.

        `own`: the queue that `origin_id` is a copy of itself, and up to which offset. If that is this queue, and up to its end, the
        messages here are replaced; otherwise they stay, since the origin may not have them.
        """
        return await self._executor.run(
            name, lambda queue: self._hot.begin(queue, origin_id, own, self._clock.script_time())
        )

    async def apply(
        self, name: QueueName, steps: Sequence[CopyStep], reached: CopyReached
    ) -> CopiesApplied | None:
        """Apply steps in order, and store the progress; None if the session has ended.

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

        return await self._executor.run(name, apply)

    async def end(self, name: QueueName) -> bool:
        """Let a copy accept and deliver messages; return False if it did before."""
        return await self._executor.run(name, self._hot.end)


async def _itself(queue: Queue) -> Queue:
    return queue


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
