"""Queues: due and expired messages, and stragglers in the log."""

from functools import partial

from consumers.maintenance.task import drain, maintenance_task
from storage.bootstrap import Storage
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.names import QueueName
from storage.domain.presence import LeaseStore
from storage.domain.queues.queue import Queue

IDLE_SHARES = 6
"""Shares of the idle queues: with a round every five seconds, each is visited within half a minute."""


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
        nth, self._round = self._round % IDLE_SHARES, self._round + 1
        due = dict(await storage.catalog.queues_in_turn(nth, IDLE_SHARES))
        queues = await storage.catalog.all_queues()
        due |= {name: queues[name] for name in self._busy if name in queues}
        done = await in_batches(
            due.values(), partial(_sweep, storage), limits.MAINTENANCE_CONCURRENCY_MAX
        )
        self._busy = {name for name, count in zip(due, done, strict=True) if count}
        return sum(done)


async def _sweep(storage: Storage, queue: Queue) -> int:
    visit = partial(drain, partial(storage.queues.sweep, queue.name, queue))
    return await storage.isolation.visit("queues", f"queues/{queue.name}", visit, 0)


sweep_due_queues = maintenance_task("queues", LeaseStore.HOT_STORE, period_ms=5 * limits.SECOND_MS)(
    ActiveQueueTracker()
)
