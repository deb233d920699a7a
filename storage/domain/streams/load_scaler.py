"""On-demand streams: choose the shards to split and merge by the load of each.

    load of a shard, as a fraction of its target load

    0 ─────────────── 0.2 ────────────── 0.4 ─────────────────────────── 0.8 ─────────────▶
      quiet: merged                      two whose loads add up to       hot: split in its
      after ON_DEMAND_MERGE_AFTER_MS,    less than this may merge        middle
      if the neighbour is

Two shards that were merged have at most half of the load that would split them again, and a shard that
was split is measured for a whole new window; so the number of shards converges under a steady load.
"""

from collections.abc import Mapping
from itertools import pairwise

import msgspec

from storage.domain import limits
from storage.domain.streams.reshard_plan import Change, merge_of, split_of
from storage.domain.streams.stream import Shard, Stream


class Load(msgspec.Struct, frozen=True):
    """Load of a shard per second over the last window, and how long it has been quiet."""

    records: int
    bytes: int
    quiet_ms: int = 0

    @property
    def parts(self) -> float:
        """Load as a fraction of the target load of a shard: 1 is the target."""
        return max(
            self.records / limits.ON_DEMAND_SHARD_RECORDS,
            self.bytes / limits.ON_DEMAND_SHARD_BYTES,
        )


def changes_for(stream: Stream, loads: Mapping[int, Load]) -> list[Change]:
    """Return the splits and merges that the loads of open shards, by index, call for.

    No shard is in two changes. A shard whose load is not known yet is left alone. The stream never has
    fewer open shards than it was created with, nor more than ON_DEMAND_SHARDS_MAX.
    """
    spare = limits.ON_DEMAND_SHARDS_MAX - len(stream.open_shards)
    hot = [shard for shard in stream.open_shards if _is_hot(shard, loads.get(shard.index))]
    hot.sort(key=lambda shard: -loads[shard.index].parts)
    splits = [split_of(stream, shard.index, _middle(shard)) for shard in hot[: max(0, spare)]]
    return splits + _merges(stream, loads)


def _is_hot(shard: Shard, load: Load | None) -> bool:
    """Return whether to split a shard.

    A narrow shard stays: most likely a single key makes it hot, which no split divides.
    """
    width = shard.last_hash_key - shard.first_hash_key + 1
    return (
        load is not None
        and load.parts > limits.ON_DEMAND_SPLIT_LOAD
        and width >= limits.ON_DEMAND_RANGE_MIN
    )


def _middle(shard: Shard) -> int:
    return (shard.first_hash_key + shard.last_hash_key + 1) // 2


def _merges(stream: Stream, loads: Mapping[int, Load]) -> list[Change]:
    spare = len(stream.open_shards) - stream.spec.shards
    merges: list[Change] = []
    merged_upto = -1
    for position, (low, high) in enumerate(pairwise(stream.open_shards)):
        pair = [load for shard in (low, high) if (load := loads.get(shard.index))]
        if position > merged_upto and len(merges) < spare and len(pair) == 2 and _may_merge(*pair):
            merges.append(merge_of(stream, low.index, high.index))
            merged_upto = position + 1
    return merges


def _may_merge(low: Load, high: Load) -> bool:
    quiet_ms = min(low.quiet_ms, high.quiet_ms)
    return quiet_ms >= limits.ON_DEMAND_MERGE_AFTER_MS and (
        low.parts + high.parts < limits.ON_DEMAND_SPLIT_LOAD / 2
    )
