"""On-demand streams: which shards to split and merge, from the load that each one carries.

    load of a shard, in parts of what one is meant to carry

    0 ─────────────── 0.2 ────────────── 0.4 ─────────────────────────── 0.8 ─────────────▶
      quiet: merged                      two that carry less than        hot: split in its
      after COLD_MS, if                  this together may merge         middle
      the neighbour is

Two shards that were merged carry at most half of what would split them again, and a shard that was split
is measured anew for a whole window; so a steady load comes to rest.
"""

from collections.abc import Mapping
from itertools import pairwise

import msgspec

from storage.domain import limits
from storage.domain.streams.reshard_plan import Change, merge_of, split_of
from storage.domain.streams.stream import Shard, Stream


class Load(msgspec.Struct, frozen=True):
    """What a shard took per second over the last window, and for how long it has been quiet."""

    records: int
    bytes: int
    quiet_ms: int = 0

    @property
    def parts(self) -> float:
        """1 is what a shard is meant to carry."""
        return max(
            self.records / limits.ON_DEMAND_SHARD_RECORDS,
            self.bytes / limits.ON_DEMAND_SHARD_BYTES,
        )


def changes_for(stream: Stream, loads: Mapping[int, Load]) -> list[Change]:
    """What the loads of open shards, by index, call for; no shard is in two changes.

    A shard whose load is not known yet is left alone. The stream never has fewer open shards than it was
    made with, nor more than ON_DEMAND_SHARDS_MAX.
    """
    room = limits.ON_DEMAND_SHARDS_MAX - len(stream.open_shards)
    hot = [shard for shard in stream.open_shards if _is_hot(shard, loads.get(shard.index))]
    hot.sort(key=lambda shard: -loads[shard.index].parts)
    splits = [split_of(stream, shard.index, _middle(shard)) for shard in hot[: max(0, room)]]
    return splits + _merges(stream, loads)


def _is_hot(shard: Shard, load: Load | None) -> bool:
    """A narrow shard stays: what makes it hot is most likely one key, which no split takes apart."""
    width = shard.last_hash_key - shard.first_hash_key + 1
    return (
        load is not None
        and load.parts > limits.ON_DEMAND_HOT
        and width >= limits.ON_DEMAND_RANGE_MIN
    )


def _middle(shard: Shard) -> int:
    return (shard.first_hash_key + shard.last_hash_key + 1) // 2


def _merges(stream: Stream, loads: Mapping[int, Load]) -> list[Change]:
    spare = len(stream.open_shards) - stream.spec.shards
    merges: list[Change] = []
    taken = -1
    for place, (low, high) in enumerate(pairwise(stream.open_shards)):
        pair = [load for shard in (low, high) if (load := loads.get(shard.index))]
        if place > taken and len(merges) < spare and len(pair) == 2 and _may_merge(*pair):
            merges.append(merge_of(stream, low.index, high.index))
            taken = place + 1
    return merges


def _may_merge(low: Load, high: Load) -> bool:
    quiet_ms = min(low.quiet_ms, high.quiet_ms)
    return quiet_ms >= limits.ON_DEMAND_COLD_MS and (
        low.parts + high.parts < limits.ON_DEMAND_HOT / 2
    )
