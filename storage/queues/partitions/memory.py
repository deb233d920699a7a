"""Memory of earlier sends in the partitions of a queue, across changes of their number.

A key or a producer is remembered by the partition that its hash chose. After a change the hash chooses another one, so
first the partition that it chose before is asked. It refuses sends of the former generation from then on: a process that
has not heard of the change cannot add a message there that this process did not find. Keys are remembered under their
generation too, so that what is left of a divided call is a call of its own.
"""

from collections.abc import Iterable, Sequence

import attrs
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import IdempotencyKeyReused, ProducerFenced
from storage.domain.names import LogId
from storage.domain.queues.message import SentMessage, message_id
from storage.domain.queues.partitions import former_sets, partition_of
from storage.domain.queues.queue import PartitionSet, Queue
from storage.domain.streams.idempotence import WRITER_RETIRED, SequencedBatch
from storage.hot_store.queues.store import QueueStore, SendPart, SentBefore
from storage.log.queue_executor import QueueExecutor

_SEPARATOR = "\0"


@attrs.define(eq=False, slots=False)
class PartitionMemory:
    """Memory of a deployment's queues with partitions."""

    _hot: QueueStore
    _executor: QueueExecutor
    _clock: Clock

    async def sent_before(
        self, queue: Queue, keys: Sequence[str], part: SendPart
    ) -> dict[int, SentMessage]:
        """Return the messages of a part, by number, that were sent to former partitions.

        `keys`: the group of each message, or what else chose its partition. Raises IdempotencyKeyReused.
        """
        sent: dict[int, SentMessage] = {}
        since_ms = self._clock.now_ms() - limits.PARTITION_MEMORY_MS
        for partition_set in former_sets(queue, since_ms):
            left = [number for number in range(len(keys)) if number not in sent]
            for partition, numbers in _shares(queue, partition_set.count, keys, left):
                keyed = replace(part, idempotency_key=key_of(part, partition_set.generation))
                before = await self._recall(partition, queue.generation, keyed, ())
                if before.offsets is None:
                    continue
                if len(before.offsets) != len(numbers):
                    raise IdempotencyKeyReused
                for number, offset in zip(numbers, before.offsets, strict=True):
                    sent[number] = SentMessage(
                        message_id(partition.log_id, offset),
                        partition.first_offset + offset,
                        duplicate=True,
                    )
        return sent

    async def not_sent(
        self, queue: Queue, keys: Sequence[str], batch: SequencedBatch
    ) -> Sequence[int]:
        """Return the numbers of a batch's messages that no former partition has.

        Raises ProducerFenced.
        """
        left: Sequence[int] = range(len(keys))
        for count in _former_counts(queue):
            unsent: list[int] = []
            for partition, numbers in _shares(queue, count, keys, left):
                producers = list(dict.fromkeys(batch.producer_ids[number] for number in numbers))
                before = await self._recall(partition, queue.generation, SendPart(()), producers)
                if WRITER_RETIRED in before.lasts:
                    raise ProducerFenced("This producer is retired: it has sent all its records.")
                lasts = dict(zip(producers, before.lasts, strict=True))
                unsent += batch.above(numbers, lasts)
            left = sorted(unsent)
        return left

    async def _recall(
        self, partition: Queue, generation: int, part: SendPart, producer_ids: Sequence[str]
    ) -> SentBefore:
        async def recall(log: Queue) -> SentBefore:
            now = self._clock.script_time()
            return await self._hot.sent_before(log, generation, part, producer_ids, now)

        return await self._executor.run(partition.name, recall, partition)


def key_of(part: SendPart, generation: int) -> str:
    """Return the idempotency key of a part as partitions of a generation remember it."""
    key = part.idempotency_key
    return f"{key}{_SEPARATOR}{generation}" if key and generation else key


def _former_counts(queue: Queue) -> list[int]:
    """Return the numbers of partitions the queue had before, except its present one."""
    former: Iterable[PartitionSet] = queue.partition_sets[:-1]
    return [
        count
        for count in dict.fromkeys(former_set.count for former_set in former)
        if count != queue.spec.partitions
    ]


def _shares(
    queue: Queue, count: int, keys: Sequence[str], numbers: Iterable[int]
) -> list[tuple[Queue, list[int]]]:
    """Return the numbers of the messages of each of `count` partitions."""
    shares: dict[LogId, tuple[Queue, list[int]]] = {}
    for number in numbers:
        partition = partition_of(queue, keys[number], count)
        shares.setdefault(partition.log_id, (partition, []))[1].append(number)
    return list(shares.values())
