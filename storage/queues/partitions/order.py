"""Order in which a process visits the partitions of a queue.

Sends that arrive together, in one turn of the event loop, go to one partition: its store adds them in one script call.
Each receive begins with another partition, so every partition comes first in one of as many receives as there are
partitions, whatever the others hold. After it come those that are known to have messages: the last receive from them was
full, or a wake-up named them. What a process knows here costs only time if it is wrong.
"""

import asyncio
import random
from collections.abc import Iterable

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.names import LogId
from storage.domain.queues.queue import Queue


class PartitionOrder:
    """Turns of the partitions of a process's queues, and which of them have messages."""

    def __init__(self) -> None:
        self._queues: BoundedCache[LogId, _Turns] = BoundedCache(limits.PARTITION_TURNS_CACHED_MAX)

    def next_send(self, queue: Queue) -> Queue:
        """Return the partition whose turn it is to take a message."""
        turns = self._turns(queue)
        if not turns.is_shared:
            turns.sends += 1
            turns.is_shared = True
            asyncio.get_running_loop().call_soon(turns.end_share)
        return queue.partitions[turns.sends % queue.spec.partitions]

    def next_receives(self, queue: Queue) -> list[Queue]:
        """Return the partition whose turn it is, then those known to have messages."""
        turns = self._turns(queue)
        count = len(queue.partitions)
        turns.receives += 1
        first = turns.receives % count
        others = (number % count for number in range(first + 1, first + count))
        numbers = [first, *(number for number in others if number in turns.backlog)]
        return [queue.partitions[number] for number in numbers]

    def note(self, queue: Queue, partition: Queue, *, has_messages: bool) -> None:
        """Note whether a partition has messages."""
        backlog = self._turns(queue).backlog
        if has_messages:
            backlog.add(partition.partition)
        else:
            backlog.discard(partition.partition)

    def _turns(self, queue: Queue) -> "_Turns":
        turns = self._queues.get(queue.log_id)
        if turns is None:
            turns = self._queues[queue.log_id] = _Turns(len(queue.partitions))
        return turns


class _Turns:
    """Turns of one queue, which begin anywhere so that processes do not go in step."""

    __slots__ = ("backlog", "is_shared", "receives", "sends")

    def __init__(self, partitions: int) -> None:
        self.sends = random.randrange(partitions)  # noqa: S311  any partition will do
        self.receives = random.randrange(partitions)  # noqa: S311
        self.backlog: set[int] = set()
        self.is_shared = False
        """True while the last turn takes further sends."""

    def end_share(self) -> None:
        """Give the next send another turn."""
        self.is_shared = False


def beside(queue: Queue, visited: Iterable[Queue]) -> list[Queue]:
    """Return the other partitions of the queue."""
    numbers = {partition.partition for partition in visited}
    return [partition for partition in queue.partitions if partition.partition not in numbers]
