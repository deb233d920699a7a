"""Time from send to acknowledgement: counted by each process, added up in the hot store.

    acknowledge ──▶ buckets in memory ──every CONSUMER_REPORT_MS──▶ hot store ──▶ percentiles of each sample

What a process has counted since its last report is lost when it is killed. Times are by the clock of the process, from
the message's arrival by the clock of the store.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable

import attrs

from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.domain.histogram import bucket_of
from storage.domain.log.address import LogAddress
from storage.domain.queues.message import Settled
from storage.domain.queues.queue import Queue
from storage.hot_store.queue_consumers import QueueConsumerStore
from storage.hot_store.queue_store import Verdict
from storage.log.queue_executor import address_of


@attrs.define(eq=False, slots=False)
class AcknowledgeTimes:
    """Times of the acknowledgements at this process since the last report, by queue."""

    _hot: QueueConsumerStore
    _clock: Clock
    _queues: dict[LogAddress, Counter[int]] = attrs.field(factory=dict, init=False)

    def count(self, queue: Queue, verdicts: Iterable[Verdict], settled: Iterable[Settled]) -> None:
        """Count the acknowledgements among these verdicts that were accepted."""
        address, now_ms = address_of(queue), self._clock.now_ms()
        counts = self._queues.get(address)
        if counts is None:
            if len(self._queues) >= limits.ACKNOWLEDGE_TIMES_QUEUES_MAX:
                return
            counts = self._queues[address] = Counter()
        for (settlement, handle), result in zip(verdicts, settled, strict=True):
            if settlement.action == "ack" and result.error is None:
                elapsed_ms = max(0, now_ms - handle.arrival_ms)
                counts[bucket_of(elapsed_ms, limits.ACKNOWLEDGE_TIMES_SUB_BITS)] += 1

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
        await asyncio.gather(*map(self._report, queues, queues.values()))
        return len(queues)

    async def _report(self, queue: LogAddress, counts: Counter[int]) -> None:
        """Add the counts of one queue; those that cannot be added wait for the next report."""
        try:
            await self._hot.add_acknowledge_times(queue, counts)
        except MillstreamError:
            self._queues.setdefault(queue, Counter()).update(counts)
