"""Reshard plans and reading order over splits and merges, without a store."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import ShardNotFound, ValidationFailed
from storage.domain.names import StreamName
from storage.domain.streams.lineage import (
    FULLY_READ,
    expired_positions,
    have_passed,
    pack_children,
    positions_after,
    read_frontier,
    unpack_children,
)
from storage.domain.streams.reshard_plan import (
    Change,
    children_of,
    merge_of,
    round_towards,
    split_of,
)
from storage.domain.streams.stream import (
    RING_SIZE,
    Shard,
    ShardRead,
    Stream,
    StreamSpec,
    even_ranges,
)

COUNTS = st.integers(1, 40)


def stream_of(*shards: Shard, opening: tuple[Shard, ...] = ()) -> Stream:
    return Stream(
        name=StreamName("s"),
        stream_id="0" * 16,
        spec=StreamSpec(),
        shards=shards,
        opening=opening,
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


def even(count: int, opened_at_ms: int = 0) -> Stream:
    return stream_of(
        *(
            Shard(nth, f"{nth}", *edges, opened_at_ms)
            for nth, edges in enumerate(even_ranges(count))
        )
    )


def after(stream: Stream, changes: list[Change], now_ms: int = 0) -> Stream:
    children = children_of(stream, changes, now_ms, lambda: "log")
    closed = {parent.index for change in changes for parent in change.parents}
    old = [
        Shard(*_values(shard)[:5], now_ms, shard.parents) if shard.index in closed else shard
        for shard in stream.shards
    ]
    return stream_of(*old, *children)


def _values(shard: Shard) -> tuple[int, str, int, int, int]:
    return (
        shard.index,
        shard.log_id,
        shard.first_hash_key,
        shard.last_hash_key,
        shard.opened_at_ms,
    )


def reach(stream: Stream, count: int) -> tuple[Stream, int]:
    rounds = 0
    while changes := round_towards(stream.open_shards, count):
        stream = after(stream, changes)
        rounds += 1
    return stream, rounds


def covers_the_ring(shards: tuple[Shard, ...]) -> bool:
    return (
        shards[0].first_hash_key == 0
        and shards[-1].last_hash_key == RING_SIZE - 1
        and all(a.last_hash_key + 1 == b.first_hash_key for a, b in itertools.pairwise(shards))
    )


def read(shard: int, next_offset: int, ended: bool = False) -> ShardRead:
    return ShardRead(shard, [], next_offset, 0, next_offset, 0, None, ended)


@given(COUNTS, COUNTS)
def test_even_shards_are_reached_in_few_rounds(before, count):
    stream, rounds = reach(even(before), count)

    ranges = [(shard.first_hash_key, shard.last_hash_key) for shard in stream.open_shards]
    assert covers_the_ring(stream.open_shards)
    assert len(ranges) == count
    for actual_range, wanted in zip(ranges, even_ranges(count), strict=True):
        assert abs(actual_range[0] - wanted[0]) <= 1
        assert abs(actual_range[1] - wanted[1]) <= 1
    assert rounds <= 14


@given(st.data(), COUNTS)
def test_uneven_shards_become_even(data, count):
    stream = even(1)
    for _ in range(data.draw(st.integers(0, 6))):
        shard = data.draw(st.sampled_from(stream.open_shards))
        near = data.draw(
            st.sampled_from([2, shard.last_hash_key - shard.first_hash_key - 1])
            | st.integers(2, max(2, shard.last_hash_key - shard.first_hash_key - 1))
        )
        at = shard.first_hash_key + near
        if shard.first_hash_key + 1 < at < shard.last_hash_key:
            stream = after(stream, [split_of(stream, shard.index, at)])

    stream, _ = reach(stream, count)

    assert covers_the_ring(stream.open_shards)
    assert len(stream.open_shards) == count


def test_reshard_to_largest_count_and_back_succeeds():
    stream, rounds = reach(even(1), 1_024)

    assert len(stream.open_shards) == 1_024
    assert rounds == 10
    assert reach(stream, 1)[0].open_shards[0].last_hash_key == RING_SIZE - 1


def test_child_opens_in_a_later_second_than_its_parents():
    stream = even(2, opened_at_ms=1_999)

    [child] = children_of(stream, [merge_of(stream, 0, 1)], 1_000, lambda: "log")
    [later, _] = children_of(stream, [split_of(stream, 0, 9)], 7_777, lambda: "log")

    assert child.opened_at_ms == 2_000
    assert (child.index, child.parents) == (2, (0, 1))
    assert later.opened_at_ms == 7_777


@pytest.mark.parametrize("at", [0, 1, RING_SIZE - 1, RING_SIZE, -5])
def test_split_at_the_edge_of_a_shard_is_rejected(at):
    with pytest.raises(ValidationFailed) as refused:
        split_of(even(1), 0, at)

    assert refused.value.faults[0].pointer == "/at_hash_key"


def test_only_open_neighbours_can_be_merged():
    stream = after(even(4), [split_of(even(4), 0, 100)])

    with pytest.raises(ValidationFailed, match="not adjacent"):
        merge_of(stream, 1, 3)
    with pytest.raises(ValidationFailed, match="closed"):
        merge_of(stream, 0, 1)
    with pytest.raises(ValidationFailed, match="not adjacent"):
        merge_of(stream, 1, 1)
    with pytest.raises(ShardNotFound):
        merge_of(stream, 1, 9)
    assert merge_of(stream, 3, 2).parents[0].index == 3


def test_children_of_closed_log_round_trip():
    children = children_of(even(1), [split_of(even(1), 0, 2**127)], 5, lambda: "log")

    assert unpack_children(pack_children(children)) == children
    assert pack_children(()) == b""


def test_reader_starts_at_oldest_and_continues_with_children():
    stream = after(even(2), [split_of(even(2), 0, 100)])

    start = read_frontier(stream, {})
    then = positions_after(start, [read(0, 7, ended=True), read(1, 3)])

    assert start == {0: None, 1: None}
    assert then == {0: FULLY_READ, 1: 3}
    assert read_frontier(stream, then) == {1: 3, 2: 0, 3: 0}


def test_merged_shard_is_read_after_both_parents():
    stream = after(even(2), [merge_of(even(2), 0, 1)])

    assert read_frontier(stream, {0: FULLY_READ, 1: 4}) == {0: FULLY_READ, 1: 4}
    assert read_frontier(stream, {0: FULLY_READ, 1: FULLY_READ}) == {2: 0}
    assert read_frontier(stream, {2: 5}) == {2: 5}


def test_end_of_shard_with_unknown_children_is_remembered():
    assert read_frontier(even(1), {0: FULLY_READ}) == {0: FULLY_READ}


def test_children_of_expired_shards_are_read_from_start():
    whole = after(even(1), [split_of(even(1), 0, 100)])
    stream = stream_of(*whole.open_shards)

    assert read_frontier(stream, {}) == {1: None, 2: None}
    assert read_frontier(stream, {0: 5}) == {1: 0, 2: 0}
    assert expired_positions(stream, {0: 5, 1: 3}) == {0: 5}
    assert expired_positions(stream, {0: FULLY_READ}) == {}


@given(st.data())
def test_reader_visits_every_shard_once_after_its_parents(data):
    stream = even(data.draw(st.integers(1, 3)))
    for _ in range(data.draw(st.integers(0, 8))):
        stream = after(stream, [_any_change(data, stream)])
    positions: dict[int, int] = {}
    ended: list[int] = []

    while ahead := read_frontier(stream, positions):
        reading = [index for index, position in ahead.items() if position != FULLY_READ]
        closed = [index for index in reading if not stream.shard(index).is_open]
        ranges = sorted(
            (stream.shard(i).first_hash_key, stream.shard(i).last_hash_key) for i in ahead
        )
        assert ranges[0][0] == 0
        assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(ranges))
        if not closed:
            break
        index = data.draw(st.sampled_from(closed))
        assert index not in ended
        assert set(stream.shard(index).parents) <= set(ended)
        ended.append(index)
        positions = positions_after(ahead, [read(index, 1, ended=True)])

    assert sorted(ended) == [shard.index for shard in stream.shards if not shard.is_open]


def _any_change(data, stream: Stream) -> Change:
    neighbours = list(itertools.pairwise(stream.open_shards))
    if neighbours and data.draw(st.booleans()):
        low, high = data.draw(st.sampled_from(neighbours))
        return merge_of(stream, low.index, high.index)
    shard = data.draw(st.sampled_from(stream.open_shards))
    return split_of(stream, shard.index, (shard.first_hash_key + shard.last_hash_key) // 2)


@given(st.data())
def test_shards_open_since_cover_the_ring_after_expiry(data):
    """A merged shard may have only one remaining parent, because the other was empty."""
    stream = even(data.draw(st.integers(1, 3)))
    for now_ms in range(1, data.draw(st.integers(2, 8))):
        stream = after(stream, [_any_change(data, stream)], now_ms)
        may_go = [
            each_shard
            for each_shard in stream.shards
            if not each_shard.is_open and not stream.parents_of(each_shard)
        ]
        gone = data.draw(st.sets(st.sampled_from(may_go)))
        stream = stream_of(*(shard for shard in stream.shards if shard not in gone))

        assert covers_the_ring(stream.shards_open_since(data.draw(st.integers(0, now_ms))))


@pytest.mark.parametrize(
    ("positions", "ends", "passed"),
    [
        pytest.param({0: 4}, {0: 4}, True, id="at the end"),
        pytest.param({0: 3}, {0: 4}, False, id="before the end"),
        pytest.param({1: 0, 2: 0}, {0: 4}, True, id="in its children"),
        pytest.param({3: 0}, {0: 4, 1: 2, 2: 9}, True, id="in its grandchild"),
        pytest.param({1: FULLY_READ, 2: 1}, {1: 7}, True, id="waits for the other parent"),
        pytest.param({0: 4}, {1: 0, 2: 0}, False, id="empty children of an open position"),
        pytest.param({1: 0, 2: 0}, {3: 0}, False, id="empty grandchild"),
        pytest.param({1: 0, 2: 0}, {9: 0}, False, id="younger than the definition"),
        pytest.param({}, {0: 0}, False, id="nothing was read"),
    ],
)
def test_end_of_shard_is_passed_once_it_was_read(positions, ends, passed):
    """A revision of a route was forgotten while its reader was in an ancestor of empty shards."""
    stream = stream_of(
        Shard(0, "0", 0, RING_SIZE - 1, 1, 2),
        Shard(1, "1", 0, RING_SIZE // 2 - 1, 2, 3, parents=(0,)),
        Shard(2, "2", RING_SIZE // 2, RING_SIZE - 1, 2, 3, parents=(0,)),
        Shard(3, "3", 0, RING_SIZE - 1, 3, parents=(1, 2)),
    )

    assert have_passed(stream, positions, ends) is passed
