"""Expiry of queues that nobody uses: they are deleted with their messages.

    is_expired ──no──▶ later                     the hot store decides: sends and receives are noted beside the log
        └─yes─▶ lock the definition ─▶ delete the log, if it is still idle ─▶ delete the definition

A send or receive is either noted before the log is deleted, which so stays, or finds no queue. A crash between the two
deletions leaves a definition without its log; the next round deletes it.
"""

import attrs

from storage.catalog.catalog import Catalog
from storage.domain.clock import Clock
from storage.domain.errors import QueueNotFound
from storage.domain.queues.queue import Queue
from storage.hot_store.errors import LogNotReady, LogProblem
from storage.hot_store.queues.store import QueueStateStore
from storage.log.queue_executor import QueueExecutor


@attrs.define(eq=False, slots=False)
class QueueExpiry:
    """Expiry of the queues of a deployment."""

    _states: QueueStateStore
    _executor: QueueExecutor
    _catalog: Catalog
    _clock: Clock

    async def idle(self) -> list[Queue]:
        """Return the queues that have such a setting and can expire."""
        queues = (await self._catalog.all_queues()).values()
        return [queue for queue in queues if _can_expire(queue)]

    async def is_expired(self, queue: Queue) -> bool:
        """Return whether nobody has used the queue for its time; the first call begins it."""
        try:
            return await self._executor.run(queue.name, self._is_idle, queue)
        except QueueNotFound:
            return False

    async def delete_expired(self, queue: Queue) -> bool:
        """Delete the queue unless it is used or changed; return whether it did so."""
        try:
            return await self._catalog.delete_queue_if(queue.name, self._delete_log) is not None
        except QueueNotFound:
            return False

    async def _is_idle(self, queue: Queue) -> bool:
        try:
            return await self._states.is_idle(queue, _idle_ms(queue), self._clock.script_time())
        except LogNotReady as problem:
            if problem.problem is LogProblem.DELETED:
                return True  # a round was interrupted, or the definition is not current
            raise

    async def _delete_log(self, queue: Queue) -> bool:
        """Delete the log of a locked definition; return whether the definition is to follow."""
        if not _can_expire(queue):
            return False
        idle_ms, now_ms = _idle_ms(queue), self._clock.now_ms()
        try:
            if now_ms - queue.changed_at_ms < idle_ms:
                return False
            return await self._states.delete_idle(queue, idle_ms, self._clock.script_time())
        except LogNotReady as problem:
            return problem.problem is LogProblem.DELETED


def _can_expire(queue: Queue) -> bool:
    spec = queue.spec
    return spec.expires_after_idle_ms is not None and not spec.paused and not queue.partitions


def _idle_ms(queue: Queue) -> int:
    assert queue.spec.expires_after_idle_ms is not None
    return queue.spec.expires_after_idle_ms
