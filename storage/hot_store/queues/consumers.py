"""Verbs of the consumers of queues."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import structs

from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.queues.consumer import ConsumerReport
from storage.domain.queues.queue import Queue


class ConsumerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The reports of all processes on a queue, and its messages in flight by consumer.

    `counted` of the `in_flight` messages were looked at; `by_key` has those of each consumer.
    """

    reports: Sequence[ConsumerReport]
    in_flight: int
    counted: int
    by_key: Mapping[bytes, int]

    def with_in_flight(self, others: Sequence["ConsumerSnapshot"]) -> "ConsumerSnapshot":
        """Add the messages in flight of a queue's other partitions; the first one has the reports."""
        by_key = Counter(self.by_key)
        for other in others:
            by_key.update(other.by_key)
        return structs.replace(
            self,
            in_flight=self.in_flight + sum(other.in_flight for other in others),
            counted=self.counted + sum(other.counted for other in others),
            by_key=by_key,
        )

    @property
    def is_estimate(self) -> bool:
        """Return whether not all messages in flight were looked at."""
        return self.counted < self.in_flight

    def in_flight_of(self, key: bytes) -> int:
        """Return how many messages in flight a consumer received."""
        counted = self.by_key.get(key, 0)
        return round(counted * self.in_flight / self.counted) if counted else 0


class QueueConsumerStore(Protocol):
    """Operations on the consumers of queues. They may be repeated: nothing is decided by them."""

    async def report(
        self, queue: LogAddress, process: bytes, reports: Sequence[ConsumerReport]
    ) -> None:
        """Publish the activity of consumers at a process, in place of what it published before."""
        ...

    async def snapshot(
        self, queue: Queue, now: ScriptTime, *, counted_max: int
    ) -> ConsumerSnapshot:
        """Return what was published lately, and count at most so many messages in flight.

        Raises LogNotReady where the log needs repair first.
        """
        ...

    async def add_acknowledge_times(self, queue: LogAddress, counts: Mapping[int, int]) -> None:
        """Add to the histogram of a queue's times from send to acknowledgement, by bucket.

        A repeat after a lost reply counts them twice.
        """
        ...
