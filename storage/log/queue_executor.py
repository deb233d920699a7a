"""Execution of verbs on a queue, with its definition, and with repair of its log."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from storage.catalog.catalog import Catalog
from storage.domain.errors import QueueNotFound, StorageUnavailable
from storage.domain.log.address import LogAddress
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue
from storage.hot_store.errors import LogNotReady, LogProblem, StoreChanged
from storage.log.provisioner import LogDeleted, LogProvisioner

T = TypeVar("T")


@attrs.define(eq=False, slots=False)
class QueueExecutor:
    """Executor of hot-store verbs on queues, which retries after repairing the log."""

    _catalog: Catalog
    _provisioner: LogProvisioner

    async def run(
        self,
        name: QueueName,
        verb: Callable[[Queue], Awaitable[T]],
        definition: Queue | None = None,
    ) -> T:
        """Run a verb on the queue, repairing its log first when the script requires that.

        `definition`: the queue's definition, if the caller has just read it. Raises QueueNotFound, StorageUnavailable, and
        what the verb raises.
        """
        queue = definition or self._catalog.cached_queue(name) or await self._catalog.queue(name)
        for _ in self._provisioner.attempts():
            try:
                return await verb(queue)
            except StoreChanged:
                continue
            except LogNotReady as problem:
                queue = await self._repair(queue, problem)
        raise StorageUnavailable("The queue is being created or moved; try again.")

    async def _repair(self, queue: Queue, problem: LogNotReady) -> Queue:
        if problem.problem in (LogProblem.UNKNOWN_LOG, LogProblem.DELETED):
            current = await self._catalog.fresh_queue(queue.name)
            if current.log_id != queue.log_id:
                return current
        try:
            await self._provisioner.repair(address_of(queue), problem)
        except LogDeleted:
            raise QueueNotFound(f"Queue '{queue.name.name}' does not exist.") from None
        return queue


def address_of(queue: Queue) -> LogAddress:
    """Return the address of a queue's log."""
    return LogAddress(queue.name.namespace, queue.log_id)
