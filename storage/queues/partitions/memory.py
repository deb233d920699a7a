"""Memory of earlier sends in the partitions of a queue, across changes of their number.

A key or a producer is remembered by the partition that its hash chose. After a change the hash chooses another one, so
first the partition that it chose before is asked. It refuses sends of the former generation from then on: a process that
has not heard of the change cannot add a message there that this process did not find. Keys are remembered under their
generation too, so that what is left of a divided call is a call of its own.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import attrs
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import IdempotencyKeyReused, ProducerFenced
from storage.domain.queues.message import SentMessage, message_id
from storage.domain.queues.partitions import divide, former_sets, partition_of
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
        for former_set in former_sets(queue, since_ms):
            left = [number for number in range(len(keys)) if number not in sent]
            shares = divide(left, _by_hash(queue, keys, former_set.count))
            keyed = replace(part, idempotency_key=key_of(part, former_set.generation))
            answers = await self._recall(
                queue.generation, keyed, [(partition, ()) for partition, _ in shares]
            )
            for (partition, numbers), answer in zip(shares, answers, strict=True):
                sent.update(zip(numbers, _messages_of(answer, partition, numbers), strict=False))
        return sent

    async def not_sent(
        self, queue: Queue, keys: Sequence[str], batch: SequencedBatch
    ) -> Sequence[int]:
        """Return the numbers of a batch's messages that no former partition has.

        Raises ProducerFenced.
        """
        left: Sequence[int] = range(len(keys))
        for count in _former_counts(queue):
            shares = divide(left, _by_hash(queue, keys, count))
            producers = [
                list(dict.fromkeys(batch.producer_ids[n] for n in numbers)) for _, numbers in shares
            ]
            requests = [
                (partition, ids) for (partition, _), ids in zip(shares, producers, strict=True)
            ]
            answers = await self._recall(queue.generation, SendPart(()), requests)
            unsent: list[int] = []
            for (_, numbers), ids, answer in zip(shares, producers, answers, strict=True):
                if WRITER_RETIRED in answer.lasts:
                    raise ProducerFenced("This producer is retired: it has sent all its records.")
                unsent += batch.above(numbers, dict(zip(ids, answer.lasts, strict=True)))
            left = sorted(unsent)
        return left

    async def _recall(
        self,
        generation: int,
        part: SendPart,
        requests: Sequence[tuple[Queue, Sequence[str]]],
    ) -> list[SentBefore]:
        """Ask each partition for a part's key and for its producers, concurrently."""

        async def recall(producer_ids: Sequence[str], log: Queue) -> SentBefore:
            now = self._clock.script_time()
            return await self._hot.sent_before(log, generation, part, producer_ids, now)

        return await asyncio.gather(
            *(
                self._executor.run(partition.name, partial(recall, producer_ids), partition)
                for partition, producer_ids in requests
            )
        )


def _messages_of(
    answer: SentBefore, partition: Queue, numbers: Sequence[int]
) -> Iterator[SentMessage]:
    """Yield the messages that a partition remembers of a call's share.

    Raises IdempotencyKeyReused if their number differs.
    """
    if answer.offsets is not None and len(answer.offsets) != len(numbers):
        raise IdempotencyKeyReused
    for offset in answer.offsets or ():
        id_ = message_id(partition.log_id, offset)
        yield SentMessage(id_, partition.first_offset + offset, duplicate=True)


def _by_hash(queue: Queue, keys: Sequence[str], count: int) -> Callable[[int], Queue]:
    """Return the choice of `count` partitions by the hash of each item's key."""
    return lambda number: partition_of(queue, keys[number], count)


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
