"""Partitions of a queue: logs with lease state, each in a hash slot of its own.

    queue ─┬─ partition 0   log, leases, records …   offsets 0 …
           ├─ partition 1   log, leases, records …   offsets PARTITION_OFFSETS …
           └─ …

Messages with a group belong to the partition of the group's hash, as a stream's records belong to the shard of their
key: so order and fairness within a group hold. Others go to the partitions in turn. The offset of a message in its queue
names its partition too, and partition 0 has the offsets of its log: a queue that gets more partitions keeps its offsets.

A standard queue may get more or fewer partitions. Closed ones are received from, and are opened again before others are
added. What a partition remembers of earlier sends stays where it is: after a change, it is asked first whether it knows
a send (`storage.queues.partitions.memory`).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.names import LogId, new_log_id
from storage.domain.queues.message import MessageContent, SentMessage
from storage.domain.queues.queue import PartitionSet, Queue, QueueSpec
from storage.domain.streams.stream import RING_SIZE, hash_key

M = TypeVar("M", bound=MessageContent | SentMessage)


class PartitionLog(NamedTuple):
    """A partition beyond the first: its number, its log, and when it was added."""

    number: int
    log_id: LogId
    opened_at_ms: int


NewLogs = Callable[[Sequence[LogId], int], list[LogId]]
"""Returns ids of a queue's new logs, given those that exist and the number of all."""


def random_logs(existing: Sequence[LogId], total: int) -> list[LogId]:
    """Return ids of new logs, which lie anywhere."""
    return [new_log_id() for _ in range(total - len(existing))]


def with_partitions(queue: Queue, logs: Sequence[PartitionLog]) -> Queue:
    """Return the queue with its partitions: its own log, and these."""
    if not logs:
        return queue
    spec = share_of(queue.spec, queue.spec.partitions)
    first = PartitionLog(0, queue.log_id, queue.created_at_ms)
    partitions = tuple(
        replace(
            queue,
            log_id=log.log_id,
            spec=spec,
            created_at_ms=log.opened_at_ms,
            partition=log.number,
            partitions=(),
            partition_sets=(),
        )
        for log in (first, *sorted(logs))
    )
    return replace(queue, partitions=partitions)


def logs_beyond_first(queue: Queue) -> list[PartitionLog]:
    """Return what `with_partitions` was given."""
    return [
        PartitionLog(entry.partition, entry.log_id, entry.created_at_ms)
        for entry in queue.partitions[1:]
    ]


def with_spec(queue: Queue, spec: QueueSpec, now_ms: int, new_logs: NewLogs) -> Queue:
    """Return the queue with a specification, and with new partitions if that needs more."""
    logs = logs_beyond_first(queue)
    if spec.partitions > len(logs) + 1:
        existing = [queue.log_id, *(log.log_id for log in logs)]
        added = new_logs(existing, spec.partitions)
        logs += [
            PartitionLog(number, log_id, now_ms)
            for number, log_id in enumerate(added, len(existing))
        ]
    sets = queue.partition_sets
    if spec.partitions != queue.spec.partitions:
        sets = _with_set(queue, spec.partitions, now_ms)
    return with_partitions(replace(queue, spec=spec, partition_sets=sets), logs)


def _with_set(queue: Queue, count: int, now_ms: int) -> tuple[PartitionSet, ...]:
    """Add a set to those of a queue, and drop what nobody asks for any more."""
    sets = queue.partition_sets or (PartitionSet(0, queue.spec.partitions, queue.created_at_ms),)
    sets = (*sets, PartitionSet(sets[-1].generation + 1, count, max(now_ms, sets[-1].since_ms)))
    recent = {entry.generation for entry in _former(sets, now_ms - limits.PARTITION_MEMORY_MS)}
    last_of_count = {entry.count: entry.generation for entry in sets}
    return (
        sets[0],  # the home of keys (`home_of`), which never changes
        *(
            entry
            for entry in sets[1:]
            if entry.generation in recent or last_of_count[entry.count] == entry.generation
        ),
    )


def former_sets(queue: Queue, since_ms: int) -> list[PartitionSet]:
    """Return the sets that were replaced at that time or later, oldest first."""
    return _former(queue.partition_sets, since_ms)


def _former(sets: Sequence[PartitionSet], since_ms: int) -> list[PartitionSet]:
    return [entry for entry, following in pairwise(sets) if following.since_ms >= since_ms]


def share_of(spec: QueueSpec, partitions: int) -> QueueSpec:
    """Return a partition's part of what a queue may hold, rounded up."""
    return replace(
        spec,
        in_flight_max=-(-spec.in_flight_max // partitions),
        messages_max=_share(spec.messages_max, partitions),
        bytes_max=_share(spec.bytes_max, partitions),
    )


def _share(cap: int | None, partitions: int) -> int | None:
    return None if cap is None else -(-cap // partitions)


def partition_of(queue: Queue, key: str, count: int | None = None) -> Queue:
    """Return the partition of a key by its hash, of the open ones or of the first `count`."""
    count = count or queue.spec.partitions
    return queue.partitions[min(hash_key(key) // (RING_SIZE // count), count - 1)]


def divide(numbers: Iterable[int], choose: Callable[[int], Queue]) -> list[tuple[Queue, list[int]]]:
    """Group the numbers of items by the partition that is chosen for each."""
    shares: dict[int, tuple[Queue, list[int]]] = {}
    for number in numbers:
        partition = choose(number)
        shares.setdefault(partition.partition, (partition, []))[1].append(number)
    return list(shares.values())


def with_queue_offsets(partition: Queue, messages: list[M]) -> list[M]:
    """Return messages of a partition with their offsets in the queue."""
    base = partition.first_offset
    if not base:
        return messages
    return [replace(message, offset=base + message.offset) for message in messages]


def home_of(queue: Queue, key: str) -> Queue:
    """Return the partition of a key among those the queue was created with: always the same."""
    sets = queue.partition_sets
    return partition_of(queue, key, sets[0].count if sets else None)
