"""Maintenance of queues: due and expired messages, and stragglers in the log."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import QueueNotFound
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue

# Shares of the idle queues: with a round every five seconds, each is visited within half a minute.
_SHARES = 6
_VISIT_CONCURRENCY_MAX = 50


async def sweep_queues(storage: Storage) -> int:
    """Visit every queue: move due messages, drop expired ones, remove stragglers from the log."""
    queues = [queue async for queue in storage.catalog.iter_queues()]
    return sum(await _visit_all(queues, partial(_sweep, storage)))


class ActiveQueueTracker:
    """Visits to the queues that may have work.

    Those that had some at the last visit, those that are new or were changed, and a share of the others, so that each is
    visited within half a minute. Ten thousand idle queues would keep a processor busy if all were visited each time. When
    another process takes the task over, the busy queues are unknown there, and wait for their turn.
    """

    def __init__(self) -> None:
        self._round = 0
        self._busy: set[QueueName] = set()

    async def __call__(self, storage: Storage) -> int:
        """Run one round; return the number of items of work done."""
        nth, self._round = self._round % _SHARES, self._round + 1
        queues = {queue.name: queue async for queue in storage.catalog.queues_in_turn(nth, _SHARES)}
        for name in self._busy - queues.keys():
            with suppress(QueueNotFound):
                queues[name] = await storage.catalog.queue(name)
        self._busy.clear()
        done = await _visit_all(queues.values(), partial(_sweep, storage))
        self._busy = {name for name, found in zip(queues, done, strict=True) if found}
        return sum(done)


async def _sweep(storage: Storage, queue: Queue) -> int:
    visit = partial(drain, partial(storage.queues.sweep, queue.name, queue))
    return await storage.isolation.visit("queues", f"queues/{queue.name}", visit, 0)


async def _visit_all(
    queues: Iterable[Queue], visit: Callable[[Queue], Coroutine[None, None, int]]
) -> list[int]:
    """Visit queues in batches, whose calls of the store share its flushes; return the results."""
    waiting = iter(queues)
    done: list[int] = []
    while batch := list(islice(waiting, _VISIT_CONCURRENCY_MAX)):
        done += await asyncio.gather(*map(visit, batch))
    return done


TASKS = (MaintenanceTask("queues", 5 * limits.SECOND_MS, ActiveQueueTracker()),)
