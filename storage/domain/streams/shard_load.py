"""Load of a shard, its hottest keys, and the split that divides the load best.

    hash keys   ├──────────┬──┬───────────────────┬───────┤   a key's records all have one hash key, so a split lies
    records     ▏ user-7   ▏u3▏ user-9            ▏ …     ▏   between keys, nearest to half of the sampled records

Records without a key are spread evenly over the open shards, so they are counted evenly over the shard's hash keys.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.streams.stream import LogRecord, Shard, hash_key


class KeyLoad(msgspec.Struct, frozen=True):
    """A partition key and its share of the sampled records, from 0 to 1."""

    key: str
    share: float


class LoadSplit(msgspec.Struct, frozen=True):
    """A split point, and the share of the sampled records that the larger child takes."""

    at_hash_key: int
    larger_share: float


class ShardLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Recent load of an open shard.

    `sampled`: records that were looked at, 0 for a shard that had none or is not among the busiest. `split`: None if one
    key makes so much of the load that no split divides it, or without a sample.
    """

    shard: int
    records_per_second: float
    bytes_per_second: float = 0.0
    sampled: int = 0
    keyless_share: float = 0.0
    keys: tuple[KeyLoad, ...] = ()
    split: LoadSplit | None = None


def shard_load(shard: Shard, records_per_second: float, sample: Sequence[LogRecord]) -> ShardLoad:
    """Return the load of a shard from its rate and a sample of its recent records."""
    if not sample:
        return ShardLoad(shard=shard.index, records_per_second=records_per_second)
    keys = Counter(item.record.key for item in sample)
    keyless = keys.pop("", 0)
    mean_bytes = sum(item.record.size_bytes for item in sample) / len(sample)
    return ShardLoad(
        shard=shard.index,
        records_per_second=records_per_second,
        bytes_per_second=records_per_second * mean_bytes,
        sampled=len(sample),
        keyless_share=keyless / len(sample),
        keys=tuple(
            KeyLoad(key, count / len(sample))
            for key, count in keys.most_common(limits.SHARD_LOAD_KEYS_MAX)
        ),
        split=_best_split(shard, keys, keyless),
    )


def _best_split(shard: Shard, keys: Counter[str], keyless: int) -> LoadSplit | None:
    """Return the split that divides the records most evenly, None if none divides them."""
    candidates = [_middle(shard)] if keyless else []
    hashes = _hash_keys(shard, keys)
    candidates += [key for key in hashes if shard.first_hash_key + 1 < key < shard.last_hash_key]
    if not candidates:
        return None
    total = hashes.total() + keyless
    splits = [
        LoadSplit(point, _larger(shard, hashes, keyless, point) / total) for point in candidates
    ]
    best = min(splits, key=lambda split: split.larger_share)
    return best if best.larger_share < limits.SHARD_LOAD_SPLIT_SHARE_MAX else None


def _hash_keys(shard: Shard, keys: Counter[str]) -> Counter[int]:
    """Return records by hash key, without those whose producer set another hash key."""
    hashes: Counter[int] = Counter()
    for key, count in keys.items():
        position = hash_key(key)
        if shard.takes(position):
            hashes[position] += count
    return hashes


def _larger(shard: Shard, hashes: Counter[int], keyless: int, split_at: int) -> float:
    """Return the records of the child that takes more of them."""
    width = shard.last_hash_key - shard.first_hash_key + 1
    first = sum(count for position, count in hashes.items() if position < split_at)
    first_keyless = keyless * (split_at - shard.first_hash_key) / width
    total = hashes.total() + keyless
    return max(first + first_keyless, total - first - first_keyless)


def _middle(shard: Shard) -> int:
    return (shard.first_hash_key + shard.last_hash_key + 1) // 2
