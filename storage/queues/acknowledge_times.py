"""Time from send to acknowledgement: counted by each process, added up in the hot store.

    acknowledge ──▶ buckets in memory ──every CONSUMER_REPORT_MS──▶ hot store ──▶ percentiles of each sample

What a process has counted since its last report is lost when it is killed. Times are by the clock of the process, from
the message's arrival by the clock of the store.
"""

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from operator import add

import attrs

from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.domain.histogram import bucket_of
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.queues.message import SETTLED, SettleAction, Settled
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.consumers import QueueConsumerStore
from storage.hot_store.queues.store import Verdict
from storage.log.queue_executor import address_of


@attrs.define(eq=False, slots=False)
class AcknowledgeTimes:
    """Times of the acknowledgements at this process since the last report, by queue."""

    _hot: QueueConsumerStore
    _clock: Clock
    _queues: dict[LogId, "_Counts"] = attrs.field(factory=dict, init=False)

    def count(self, queue: Queue, verdicts: Iterable[Verdict], settled: Iterable[Settled]) -> None:
        """Count the acknowledgements among these verdicts that were accepted."""
        now_ms = self._clock.now_ms()
        counts = self._queues.get(queue.log_id) or self._add(queue)
        if counts is None:
            return
        buckets = counts.buckets
        for (settlement, handle), result in zip(verdicts, settled, strict=True):
            if result is SETTLED and settlement.action is SettleAction.ACK:
                buckets[_bucket_of(now_ms - handle.arrival_ms)] += 1

    def _add(self, queue: Queue) -> "_Counts | None":
        """Begin to count for a queue; None if as many are counted as may be."""
        if len(self._queues) >= limits.ACKNOWLEDGE_TIMES_QUEUES_MAX:
            return None
        counts = self._queues[queue.log_id] = _Counts(address_of(queue))
        return counts

    async def report_loop(self) -> None:
        """Add what was counted to the hot store, periodically, until cancelled."""
        await periodic(
            limits.CONSUMER_REPORT_MS / limits.SECOND_MS,
            self.report,
            "acknowledge-times",
            delay_first=True,
        )

    async def report(self) -> int:
        """Add what was counted since the last report; return the number of queues."""
        queues, self._queues = self._queues, {}
        await asyncio.gather(*(self._report(log_id, counts) for log_id, counts in queues.items()))
        return len(queues)

    async def _report(self, log_id: LogId, counts: "_Counts") -> None:
        """Add the counts of one queue; those that cannot be added wait for the next report."""
        try:
            await self._hot.add_acknowledge_times(counts.queue, counts.counted())
        except MillstreamError:
            waiting = self._queues.setdefault(log_id, _Counts(counts.queue))
            waiting.buckets = list(map(add, waiting.buckets, counts.buckets))


class _Counts:
    """Acknowledgements of one queue by bucket of their time."""

    __slots__ = ("buckets", "queue")

    def __init__(self, queue: LogAddress) -> None:
        self.queue = queue
        self.buckets = [0] * (_bucket_of(_LONGEST_MS) + 1)

    def counted(self) -> dict[int, int]:
        """Return the counts that are not 0, by bucket."""
        return {bucket: count for bucket, count in enumerate(self.buckets) if count}


@lru_cache(2**13)
def _bucket_of(elapsed_ms: int) -> int:
    """Return the bucket of a time; times repeat, and a look-up costs a third of computing it."""
    return bucket_of(min(max(0, elapsed_ms), _LONGEST_MS), limits.ACKNOWLEDGE_TIMES_SUB_BITS)


_LONGEST_MS = 2**40
