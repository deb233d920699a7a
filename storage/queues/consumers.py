"""Consumers of queues: activity counted by each process, and shown over all processes.

    receive ──▶ counted in memory ──every CONSUMER_REPORT_MS──▶ hot store: seen by every process of the deployment

A receive costs a few additions. What a process has counted since its last report is lost when it is killed; nothing is
decided by it.
"""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Protocol

import attrs

from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId, QueueName
from storage.domain.queues.consumer import (
    ConsumerActivity,
    ConsumerList,
    ConsumerReport,
    QueueConsumer,
    ReceiveCounts,
)
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.consumers import ConsumerSnapshot, QueueConsumerStore
from storage.log.queue_executor import QueueExecutor, address_of

_MINUTES = limits.CONSUMER_WINDOW_MS // limits.MINUTE_MS


class ReceivedBy(Protocol):
    """A message or a delivery; the key of its consumer is empty if that is unknown."""

    @property
    def consumer_key(self) -> bytes: ...


@attrs.define(eq=False)
class _Activity:
    """Activity of one consumer of one queue at this process.

    As a context it counts a receive that waits, which so needs no object of its own.
    """

    consumer: QueueConsumer
    first_ms: int
    last_ms: int
    waiting: int = 0
    changed: bool = True
    reported_ms: int = 0
    minutes: dict[int, ReceiveCounts] = attrs.field(factory=dict)

    def __enter__(self) -> None:
        self.waiting += 1

    def __exit__(self, *error: object) -> None:
        self.waiting -= 1
        self.changed = True

    def count(self, receives: int, messages: int, now_ms: int) -> None:
        """Count a receive, or the messages that it returned."""
        minute = now_ms // limits.MINUTE_MS
        counts = self.minutes.get(minute)
        if counts is None:
            counts = self.minutes[minute] = ReceiveCounts()
        counts.receives += receives
        counts.messages += messages
        self.last_ms = now_ms
        self.changed = True

    def is_due(self, now_ms: int) -> bool:
        """Return whether it is to be reported: it changed, or still waits."""
        refresh_ms = limits.CONSUMER_REFRESH_MS
        return self.changed or (self.waiting > 0 and now_ms - self.reported_ms >= refresh_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether the consumer has not received throughout the window."""
        return not self.waiting and now_ms - self.last_ms > limits.CONSUMER_WINDOW_MS

    def report(self, now_ms: int) -> ConsumerReport:
        """Return what to publish."""
        if self.waiting:
            self.last_ms = now_ms
        first_minute = now_ms // limits.MINUTE_MS - _MINUTES
        self.minutes = {
            minute: counts for minute, counts in self.minutes.items() if minute > first_minute
        }
        self.changed, self.reported_ms = False, now_ms
        return ConsumerReport(
            consumer=self.consumer,
            first_received_at_ms=self.first_ms,
            last_received_at_ms=self.last_ms,
            waiting=self.waiting,
            minutes=self.minutes,
        )


@attrs.define(eq=False, slots=False)
class QueueConsumers:
    """The consumers of a deployment's queues."""

    _hot: QueueConsumerStore
    _executor: QueueExecutor
    _clock: Clock
    _process: bytes = attrs.field(factory=lambda: secrets.token_bytes(4), init=False)
    _queues: dict[LogId, dict[bytes, _Activity]] = attrs.field(factory=dict, init=False)
    _addresses: dict[LogId, LogAddress] = attrs.field(factory=dict, init=False)
    tracked: int = attrs.field(default=0, init=False)
    """Number of consumers that this process tracks."""

    # Count

    def count(self, queue: Queue, consumer: QueueConsumer, *, receives: int, messages: int) -> None:
        """Count a receive of a consumer, or the messages that it returned."""
        now_ms = self._clock.now_ms()
        activity = self._activity(queue, consumer, now_ms)
        if activity is not None:
            activity.count(receives, messages, now_ms)

    def waiting(self, queue: Queue, consumer: QueueConsumer) -> AbstractContextManager[None]:
        """Count a receive, and that it waits while the returned context is open."""
        now_ms = self._clock.now_ms()
        activity = self._activity(queue, consumer, now_ms)
        if activity is None:
            return nullcontext()
        activity.count(1, 0, now_ms)
        return activity

    def _activity(self, queue: Queue, consumer: QueueConsumer, now_ms: int) -> _Activity | None:
        of_queue = self._queues.get(queue.log_id)
        activity = None if of_queue is None else of_queue.get(consumer.key)
        return activity or self._track(queue, consumer, now_ms)

    def _track(self, queue: Queue, consumer: QueueConsumer, now_ms: int) -> _Activity | None:
        """Return the activity of a new consumer; None if as many are tracked as may be."""
        if self.tracked >= limits.CONSUMERS_TRACKED_MAX:
            return None
        of_queue = self._queues.setdefault(queue.log_id, {})
        if len(of_queue) >= limits.QUEUE_CONSUMERS_MAX:
            return None
        self._addresses[queue.log_id] = address_of(queue)
        self.tracked += 1
        activity = of_queue[consumer.key] = _Activity(consumer, now_ms, now_ms)
        return activity

    # Publish

    async def report_loop(self) -> None:
        """Publish what changed, periodically, until cancelled."""
        await periodic(
            limits.CONSUMER_REPORT_MS / limits.SECOND_MS,
            self.report,
            "queue-consumers",
            delay_first=True,
        )

    async def report(self) -> int:
        """Publish what changed since the last report; return the number of queues.

        What cannot be published is published with the next report.
        """
        now_ms = self._clock.now_ms()
        self._drop_idle(now_ms)
        results = await asyncio.gather(*(self._report(log_id, now_ms) for log_id in self._queues))
        return sum(results)

    async def _report(self, log_id: LogId, now_ms: int) -> bool:
        """Publish what changed of one queue; return whether anything did."""
        of_queue = self._queues.get(log_id, {})
        activities = [activity for activity in of_queue.values() if activity.is_due(now_ms)]
        if not activities:
            return False
        reports = [activity.report(now_ms) for activity in activities]
        try:
            await self._hot.report(self._addresses[log_id], self._process, reports)
        except MillstreamError:
            for activity in activities:
                activity.changed = True
        return True

    def _drop_idle(self, now_ms: int) -> None:
        for log_id, of_queue in list(self._queues.items()):
            idle = [key for key, activity in of_queue.items() if activity.is_idle(now_ms)]
            for key in idle:
                del of_queue[key]
            self.tracked -= len(idle)
            if not of_queue:
                del self._queues[log_id], self._addresses[log_id]

    # Show

    async def active(self, name: QueueName) -> ConsumerList:
        """Return the consumers of the last five minutes, and those with messages in flight.

        Raises QueueNotFound.
        """
        first, *others = await self._executor.each(name, self._snapshot)
        snapshot = first.with_in_flight(others)
        now_ms = self._clock.now_ms()
        by_consumer: defaultdict[bytes, list[ConsumerReport]] = defaultdict(list)
        for report in snapshot.reports:
            by_consumer[report.consumer.key].append(report)
        activities = [
            _activity_of(reports, snapshot.in_flight_of(key), now_ms)
            for key, reports in by_consumer.items()
        ]
        visible = [activity for activity in activities if _is_visible(activity, now_ms)]
        visible.sort(key=lambda activity: activity.consumer.key)
        visible.sort(key=lambda activity: activity.messages_per_second, reverse=True)
        return ConsumerList(tuple(visible), snapshot.is_estimate)

    async def receivers_of(
        self, name: QueueName, received: Iterable[ReceivedBy]
    ) -> Mapping[bytes, QueueConsumer]:
        """Return the known consumers that received these messages, by key."""
        keys = {item.consumer_key for item in received if item.consumer_key}
        if not keys:
            return {}
        consumers = await self._executor.run(name, partial(self._consumers_of, keys))
        return {consumer.key: consumer for consumer in consumers if consumer.key in keys}

    async def _consumers_of(self, keys: set[bytes], queue: Queue) -> list[QueueConsumer]:
        """Return the consumers of this process, and those of all if any key is missing."""
        of_queue = self._queues.get(queue.log_id, {})
        consumers = [activity.consumer for activity in of_queue.values()]
        if keys <= of_queue.keys():
            return consumers
        now = self._clock.script_time()
        snapshot = await self._hot.snapshot(queue, now, counted_max=0)
        return consumers + [report.consumer for report in snapshot.reports]

    async def _snapshot(self, queue: Queue) -> ConsumerSnapshot:
        """Return what all processes published, this one just now."""
        await self._report(queue.log_id, self._clock.now_ms())
        counted_max = limits.CONSUMER_IN_FLIGHT_COUNTED_MAX
        return await self._hot.snapshot(queue, self._clock.script_time(), counted_max=counted_max)


def _activity_of(
    reports: Sequence[ConsumerReport], in_flight: int, now_ms: int
) -> ConsumerActivity:
    """Return the activity of one consumer from the reports of all processes."""
    first_minute = now_ms // limits.MINUTE_MS - _MINUTES + 1
    counts = [
        minute_counts
        for report in reports
        for number, minute_counts in report.minutes.items()
        if number >= first_minute
    ]
    since_ms = max(
        first_minute * limits.MINUTE_MS, min(report.first_received_at_ms for report in reports)
    )
    seconds = max(1.0, (now_ms - since_ms) / limits.SECOND_MS)
    return ConsumerActivity(
        consumer=reports[0].consumer,
        receives_per_second=sum(minute.receives for minute in counts) / seconds,
        messages_per_second=sum(minute.messages for minute in counts) / seconds,
        last_received_at_ms=max(report.last_received_at_ms for report in reports),
        waiting=sum(
            report.waiting for report in reports if _is_recent(report.last_received_at_ms, now_ms)
        ),
        in_flight=in_flight,
    )


def _is_visible(activity: ConsumerActivity, now_ms: int) -> bool:
    return activity.in_flight > 0 or _is_recent(activity.last_received_at_ms, now_ms)


def _is_recent(received_at_ms: int, now_ms: int) -> bool:
    return now_ms - received_at_ms <= limits.CONSUMER_WINDOW_MS
