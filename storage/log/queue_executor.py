"""Execution of verbs on a queue, with its definition, and with repair of its log."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import attrs

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import InvalidCursor, MessageNotFound, QueueNotFound, StorageUnavailable
from storage.domain.log.address import LogAddress
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue
from storage.hot_store.errors import LogNotReady, LogProblem, PartitionsChanged, StoreChanged
from storage.log.provisioner import LogDeleted, LogProvisioner

T = TypeVar("T")


@attrs.define(eq=False, slots=False)
class QueueExecutor:
    """Executor of hot-store verbs on queues, which retries after repairing the log."""

    _catalog: Catalog
    _provisioner: LogProvisioner

    async def resolve(self, name: QueueName) -> Queue:
        """Return the queue's definition, from the cache if possible. Raises QueueNotFound."""
        return self._catalog.cached_queue(name) or await self._catalog.queue(name)

    async def run(
        self,
        name: QueueName,
        verb: Callable[[Queue], Awaitable[T]],
        definition: Queue | None = None,
    ) -> T:
        """Run a verb on the queue, repairing its log first when the script requires that.

        `definition`: the queue's definition, if the caller has just read it, or one of its partitions; then PartitionsChanged
        is raised to the caller. Raises QueueNotFound, StorageUnavailable, and what the verb raises.
        """
        queue = definition or self._catalog.cached_queue(name) or await self._catalog.queue(name)
        for _ in self._provisioner.attempts():
            try:
                return await verb(queue)
            except StoreChanged:
                continue
            except PartitionsChanged:
                if definition is not None:
                    raise
                queue = await self._catalog.fresh_queue(name)
            except LogNotReady as problem:
                queue = await self._repair(queue, problem)
        raise StorageUnavailable("The queue is being created or moved; try again.")

    async def each(
        self,
        name: QueueName,
        verb: Callable[[Queue], Awaitable[T]],
        definition: Queue | None = None,
    ) -> list[T]:
        """Run a verb on each partition of the queue, concurrently; return the results in order.

        One partition's failure is raised when all others have ended.
        """
        queue = definition or await self.resolve(name)
        if not queue.partitions:
            return [await self.run(name, verb, queue)]
        results = await self.attempt_all((partition, verb) for partition in queue.partitions)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def attempt_all(
        self, verbs: Iterable[tuple[Queue, Callable[[Queue], Awaitable[T]]]]
    ) -> list[T | BaseException]:
        """Run verbs on partitions, concurrently; a failure is a result, so that all have ended."""
        runs = (self.run(partition.name, verb, partition) for partition, verb in verbs)
        return await asyncio.gather(*runs, return_exceptions=True)

    async def run_at(
        self, name: QueueName, offset: int, verb: Callable[[Queue, int], Awaitable[T]]
    ) -> T:
        """Run a verb on the partition that has an offset of the queue, with the offset in its log.

        Raises MessageNotFound if there is no such partition.
        """
        queue = await self.resolve(name)
        location = queue.locate(offset)
        if location is None:
            raise MessageNotFound
        partition, own = location
        return await self.run(name, lambda log: verb(log, own), partition)

    async def page(
        self,
        name: QueueName,
        after: int,
        verb: Callable[[Queue, int], Awaitable[tuple[T, int | None]]],
    ) -> tuple[T, int | None]:
        """Run a verb that reads a page of the queue, behind the offset `after`, -1 for all.

        The verb gets a partition and the offset in its log; the offset that it returns to continue after, None at its end,
        becomes one of the queue.
        """
        queue = await self.resolve(name)
        location = queue.locate(after + 1)
        if location is None:
            raise InvalidCursor
        partition, own = location
        result, last = await self.run(name, lambda log: verb(log, own - 1), partition)
        if last is not None:
            return result, partition.first_offset + last
        is_last = partition.partition + 1 >= len(queue.logs)
        return result, None if is_last else partition.first_offset + limits.PARTITION_OFFSETS - 1

    async def _repair(self, queue: Queue, problem: LogNotReady) -> Queue:
        if problem.problem in (LogProblem.UNKNOWN_LOG, LogProblem.DELETED):
            current = await self._catalog.fresh_queue(queue.name)
            if current.partitions and queue.partition < len(current.partitions):
                current = current.partitions[queue.partition]
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
