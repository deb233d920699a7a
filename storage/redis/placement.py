"""Placement of the logs of a queue's partitions in the hash slots of a cluster.

Primaries have ranges of slots. Random ids would put two of three partitions on one of three primaries more often than
not; logs at even distances are on different ones where the ranges are even.
"""

from collections.abc import Sequence

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from storage.domain.names import LogId, new_log_id

_TOLERANCE = REDIS_CLUSTER_HASH_SLOTS // 256  # slots beside the one that is wanted
_TRIES_MAX = 4_000  # one in 128 ids fits


def spread_log_ids(existing: Sequence[LogId], total: int) -> list[LogId]:
    """Return ids of new logs, at even distances from one another and from those that exist."""
    ids = list(existing) or [new_log_id()]
    slots = [_slot(log_id) for log_id in ids]
    even = [
        (slots[0] + REDIS_CLUSTER_HASH_SLOTS * nth // total) % REDIS_CLUSTER_HASH_SLOTS
        for nth in range(total)
    ]
    for slot in slots:
        if even:
            even.remove(min(even, key=lambda even_slot: _distance(even_slot, slot)))
    added = [_id_near(slot) for slot in even[: total - len(ids)]]
    return [*ids, *added][len(existing) :]


def _id_near(slot: int) -> LogId:
    """Return an id in a slot, or one near it; another place costs balance, not correctness."""
    for _ in range(_TRIES_MAX):
        log_id = new_log_id()
        if _distance(_slot(log_id), slot) <= _TOLERANCE:
            return log_id
    return log_id


def _slot(log_id: LogId) -> int:
    return int(key_slot(log_id.encode()))


def _distance(slot: int, other: int) -> int:
    """Return how many slots lie between two, around the end."""
    apart = abs(slot - other)
    return min(apart, REDIS_CLUSTER_HASH_SLOTS - apart)
