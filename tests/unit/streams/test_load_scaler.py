"""Load-based scaling of shards: single decisions, and simulated days."""

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.names import StreamName
from storage.domain.streams.load_scaler import Load, changes_for
from storage.domain.streams.reshard_plan import Change, children_of
from storage.domain.streams.stream import (
    RING_SIZE,
    Shard,
    Stream,
    StreamMode,
    StreamSpec,
    even_ranges,
)

COLD = limits.ON_DEMAND_MERGE_AFTER_MS
WINDOW = limits.ON_DEMAND_WINDOW_MS
QUIET = Load(0, 0, COLD)


def stream_of(count: int, made_with: int = 1) -> Stream:
    shards = [Shard(nth, f"{nth}", *edges, 0) for nth, edges in enumerate(even_ranges(count))]
    return Stream(
        name=StreamName("s"),
        stream_id="0" * 16,
        spec=StreamSpec(shards=made_with, mode=StreamMode.ON_DEMAND),
        shards=tuple(shards),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


def parents(changes: list[Change]) -> list[tuple[int, ...]]:
    return [tuple(parent.index for parent in change.parents) for change in changes]


def test_hot_shard_is_split_in_the_middle():
    by_records = changes_for(stream_of(2), {0: Load(801, 0), 1: Load(800, 0)})
    by_bytes = changes_for(stream_of(2), {0: Load(1, 0), 1: Load(1, limits.MIB)})

    assert parents(by_records) == [(0,)]
    assert by_records[0].ranges == ((0, RING_SIZE // 4 - 1), (RING_SIZE // 4, RING_SIZE // 2 - 1))
    assert parents(by_bytes) == [(1,)]


def test_unmeasured_shard_is_unchanged():
    assert changes_for(stream_of(2), {0: QUIET}) == []
    assert changes_for(stream_of(2), {}) == []


def test_quiet_neighbours_are_merged_pairwise():
    changes = changes_for(stream_of(5), dict.fromkeys(range(5), QUIET))

    assert parents(changes) == [(0, 1), (2, 3)]


def test_recently_or_jointly_busy_shards_are_not_merged():
    lately = {0: QUIET, 1: Load(0, 0, COLD - 1)}
    together = {0: Load(200, 0, COLD), 1: Load(200, 0, COLD)}

    assert changes_for(stream_of(2), lately) == []
    assert changes_for(stream_of(2), together) == []


def test_stream_keeps_its_initial_number_of_shards():
    changes = changes_for(stream_of(5, made_with=4), dict.fromkeys(range(5), QUIET))

    assert parents(changes) == [(0, 1)]


def test_shard_limit_admits_the_hottest_shards_first():
    count = limits.ON_DEMAND_SHARDS_MAX - 2
    loads = {index: Load(1_000 + index, 0) for index in range(count)}

    changes = changes_for(stream_of(count), loads)

    assert parents(changes) == [(count - 1,), (count - 2,)]


class Simulation:
    """Simulated minutes of a stream; `weights` are (hash key, records per second)."""

    def __init__(self) -> None:
        self.stream = stream_of(1)
        self.now_ms = 0
        self.quiet_since: dict[int, int] = {0: 0}

    def minute(self, weights: list[tuple[int, float]]) -> int:
        self.now_ms += WINDOW
        loads = {}
        for shard in self.stream.open_shards:
            records = int(sum(load for place, load in weights if shard.takes(place)))
            if records >= limits.ON_DEMAND_MERGE_LOAD * limits.ON_DEMAND_SHARD_RECORDS:
                self.quiet_since[shard.index] = self.now_ms
            if self.now_ms - shard.opened_at_ms >= WINDOW:
                since = self.quiet_since.setdefault(shard.index, shard.opened_at_ms)
                loads[shard.index] = Load(records, records * 100, self.now_ms - since)
        changes = changes_for(self.stream, loads)
        self.apply(changes)
        return len(changes)

    def apply(self, changes: list[Change]) -> None:
        children = children_of(self.stream, changes, self.now_ms, lambda: "log")
        closed = {parent.index for change in changes for parent in change.parents}
        old = [
            replace(shard, closed_at_ms=self.now_ms) if shard.index in closed else shard
            for shard in self.stream.shards
        ]
        self.stream = replace(self.stream, shards=(*old, *children))

    def hottest(self, weights: list[tuple[int, float]]) -> float:
        return max(
            sum(load for place, load in weights if shard.takes(place))
            for shard in self.stream.open_shards
        )


def spread(total: float, keys: int = 2_000) -> list[tuple[int, float]]:
    chance = random.Random(3)
    return [(chance.randrange(RING_SIZE), total / keys) for _ in range(keys)]


def test_shards_follow_load_over_a_day():
    stream = Simulation()
    busy, slight = spread(9_000), spread(90)

    rising = [stream.minute(busy) for _ in range(30)]
    at_peak = len(stream.stream.open_shards)
    steady = [stream.minute(busy) for _ in range(300)]
    falling = [stream.minute(slight) for _ in range(24 * 60)]

    assert sum(rising) > 0
    assert stream.hottest(busy) >= 9_000 * 0.99  # one shard is left
    assert 12 <= at_peak <= 32
    assert sum(steady) == 0
    assert sum(falling) == at_peak - 1


def test_hot_key_does_not_split_without_end():
    stream = Simulation()

    for _ in range(60):
        stream.minute([(RING_SIZE // 3, 50_000)])

    assert len(stream.stream.open_shards) <= 14


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=6), st.integers(0, 10**6))
def test_steady_load_converges(levels, seed):
    chance = random.Random(seed)
    stream = Simulation()
    weights: list[tuple[int, float]] = []
    for level in levels:
        weights = [(chance.randrange(RING_SIZE), level / 50) for _ in range(50)]
        for _ in range(30):
            stream.minute(weights)
    for _ in range(600):
        stream.minute(weights)

    assert sum(stream.minute(weights) for _ in range(120)) == 0
