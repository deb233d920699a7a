"""Reshard planning: splits, merges, and the rounds that lead to a number of equal shards.

A shard has at most two parents, so a number of shards is reached in rounds of splits and merges:

    from 2 to 3     |─────────────────|─────────────────|
    splits          |───────────|─────|─────|───────────|     at the edges of the target that lie inside
    merges          |───────────|───────────|───────────|     of neighbours in one range of the target

Each round is planned from the shards that are open then, so that any process that finds a reshard half
done can continue it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from storage.domain import limits
from storage.domain.errors import ShardNotFound, ValidationFailed
from storage.domain.names import LogId
from storage.domain.streams.stream import RING_SIZE, Shard, Stream

Range = tuple[int, int]
"""Hash keys, both inclusive."""


class Change(msgspec.Struct, frozen=True):
    """One or two shards to close, and the ranges to open in their place."""

    parents: tuple[Shard, ...]
    ranges: tuple[Range, ...]


def split_of(stream: Stream, index: int, at_hash_key: int) -> Change:
    """Plan the split of a shard in two: keys from `at_hash_key` on go to the second.

    Raises ShardNotFound, and ValidationFailed for a closed shard, for a key that is not above its first
    plus one and below its last (as Kinesis), and beyond SHARDS_MAX open shards.
    """
    shard = _open_shard(stream, index, "/shard")
    if not _splits(shard, at_hash_key):
        detail = f"must be greater than {shard.first_hash_key + 1} and less than {shard.last_hash_key}, the bounds of shard {index}"
        raise ValidationFailed.at("/at_hash_key", detail, "out_of_range")
    if len(stream.open_shards) >= limits.SHARDS_MAX:
        detail = f"A stream can have at most {limits.SHARDS_MAX} open shards"
        raise ValidationFailed.at("/shard", detail, "too_many")
    return _split(shard, at_hash_key)


def merge_of(stream: Stream, first: int, second: int) -> Change:
    """Plan the merge of two neighbours on the ring, in either order.

    Raises ShardNotFound, and ValidationFailed for a closed shard or for two that are not neighbours.
    """
    first_shard, second_shard = (
        _open_shard(stream, first, "/first"),
        _open_shard(stream, second, "/second"),
    )
    low, high = sorted((first_shard, second_shard), key=lambda shard: shard.first_hash_key)
    if low.last_hash_key + 1 != high.first_hash_key:
        raise ValidationFailed.at(
            "/second", f"Shards {first} and {second} are not adjacent", "not_adjacent"
        )
    return Change((first_shard, second_shard), ((low.first_hash_key, high.last_hash_key),))


def _open_shard(stream: Stream, index: int, pointer: str) -> Shard:
    for shard in stream.open_shards:
        if shard.index == index:
            return shard
    if any(shard.index == index for shard in stream.shards):
        raise ValidationFailed.at(pointer, f"Shard {index} is closed", "closed")
    raise ShardNotFound(f"Stream '{stream.name.name}' has no shard {index}.")


def _splits(shard: Shard, hash_key: int) -> bool:
    return shard.first_hash_key + 1 < hash_key < shard.last_hash_key


def _split(shard: Shard, hash_key: int) -> Change:
    return Change((shard,), ((shard.first_hash_key, hash_key - 1), (hash_key, shard.last_hash_key)))


def round_towards(open_shards: Sequence[Shard], count: int) -> list[Change]:
    """Plan the next round from these shards, in hash-key order, towards `count` equal ones.

    Empty when they are equal already. No shard is in two changes. First all splits, each round halving
    the remaining ones, then all merges.
    """
    edges = [RING_SIZE // count * nth for nth in range(1, count)]
    splits = [split for shard in open_shards if (split := _middle_split(shard, edges))]
    return splits or _merges(open_shards, count)


def _middle_split(shard: Shard, edges: Sequence[int]) -> Change | None:
    inside = [edge for edge in edges if _splits(shard, edge)]
    return _split(shard, inside[len(inside) // 2]) if inside else None


def _merges(open_shards: Sequence[Shard], count: int) -> list[Change]:
    """Plan merges of neighbours whose middles lie in one range of the target, pair by pair."""
    width = RING_SIZE // count
    merges: list[Change] = []
    merged_upto = -1
    for position, (low, high) in enumerate(pairwise(open_shards)):
        homes = [
            min(count - 1, (shard.first_hash_key + shard.last_hash_key) // 2 // width)
            for shard in (low, high)
        ]
        if homes[0] == homes[1] and position > merged_upto:
            merges.append(Change((low, high), ((low.first_hash_key, high.last_hash_key),)))
            merged_upto = position + 1
    return merges


def children_of(
    stream: Stream, changes: Sequence[Change], now_ms: int, new_id: Callable[[], LogId]
) -> tuple[Shard, ...]:
    """Return the shards that the changes open, with the next indexes.

    Each opens in a later second than its parents did, so that its sequence numbers lie above theirs (S2).
    """
    index = max(shard.index for shard in stream.shards)
    children: list[Shard] = []
    for change in changes:
        opened_at_ms = max(now_ms, *(_next_second(parent) for parent in change.parents))
        parents = tuple(parent.index for parent in change.parents)
        for first, last in change.ranges:
            index += 1
            children.append(Shard(index, new_id(), first, last, opened_at_ms, None, parents))
    return tuple(children)


def _next_second(parent: Shard) -> int:
    return (parent.opened_at_ms // limits.SECOND_MS + 1) * limits.SECOND_MS
