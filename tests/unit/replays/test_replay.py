"""Partition of a replay into parts, and the order of the parts."""

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.limits import (
    GROUP_CHARACTERS_MAX,
    PRODUCER_ID_CHARACTERS_MAX,
    REPLAY_RANGE_RECORDS,
    REPLAY_RANGES_MAX,
)
from storage.domain.log.record_batch import Record
from storage.domain.replays.replay import (
    Bound,
    OffsetRange,
    Order,
    PartProgress,
    ReplayRequest,
    Target,
    group_for,
    origins,
    own_headers,
    parts_of,
    producer_of,
    progress_of,
    waves,
)
from storage.domain.streams.record_filter import Condition, Filter
from storage.domain.streams.stream import Shard

REACHES = st.lists(
    st.tuples(st.integers(0, 10**9), st.integers(1, 10**9)), min_size=1, max_size=50
).map(
    lambda spans: [
        OffsetRange(shard, first, first + size) for shard, (first, size) in enumerate(spans)
    ]
)


@given(REACHES, st.sampled_from(list(Order)))
def test_parts_cover_the_window_without_gap_or_overlap(reaches, order):
    parts = parts_of(reaches, order)

    for reach in reaches:
        mine = [part.reach for part in parts if part.reach.shard == reach.shard]
        assert (mine[0].first, mine[-1].end) == (reach.first, reach.end)
        assert all(one.end == other.first for one, other in pairwise(mine))
    assert len({part.part for part in parts}) == len(parts) <= REPLAY_RANGES_MAX
    assert all(
        len(producer_of("j" * 200, part.part)) <= PRODUCER_ID_CHARACTERS_MAX for part in parts
    )


def test_shard_is_divided_only_without_ordering():
    reach = OffsetRange(0, 5, 3 * REPLAY_RANGE_RECORDS)

    assert len(parts_of([reach], Order.SHARD)) == 1
    assert len(parts_of([reach], Order.NONE)) == 3


def test_key_order_replays_parents_before_children():
    shards = [
        Shard(0, "a", 0, 1, 0),
        Shard(1, "b", 2, 3, 0),
        Shard(2, "c", 0, 0, 1, parents=(0,)),
        Shard(3, "d", 1, 1, 1, parents=(0,)),
        Shard(4, "e", 1, 3, 2, parents=(3, 1)),
    ]
    parts = parts_of([OffsetRange(shard.index, 0, 1) for shard in shards], Order.KEY)
    names = {part.reach.shard: part.part for part in parts}

    assert waves(parts, shards, Order.KEY) == [
        [names[0], names[1]],
        [names[2], names[3]],
        [names[4]],
    ]
    assert waves(parts, shards, Order.SHARD) == [[names[n] for n in range(5)]]
    assert waves([], shards, Order.KEY) == []


def test_part_round_trips_through_job_storage():
    part = PartProgress(
        part="shard 000003", reach=OffsetRange(3, 5, 9), position=7, read=2, selected=2, sent=1
    )

    assert PartProgress.from_job(part.to_job()) == part
    assert progress_of([part, part])["records"] == 8


def test_request_round_trips_through_job_storage():
    request = ReplayRequest(
        stream="a",
        target=Target(queue="b"),
        start=Bound(offsets=((0, 5), (12, 7))),
        end=Bound(bookmark=("g", "noon")),
        filter=Filter(body=(Condition(path="/a", equals=None), Condition(path="/b", exists=True))),
    )

    stored = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(request)))

    assert msgspec.convert(stored, ReplayRequest) == request


def test_origin_headers_of_earlier_replay_are_dropped():
    once = Record(b"x", "k", (("own", "", b"1"), *origins("first", "a", 0, [7], [70])[0]))

    own, content_type = own_headers(once.headers)

    assert (own, content_type) == ([("own", "", b"1")], "")


def test_replayed_record_keeps_its_trace_context():
    context = ("traceparent", "", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    state = ("tracestate", "", b"a=1")

    own, _ = own_headers((context, state, (":content_type", "", b"text/plain")))

    assert own == [context, state]


def test_message_group_is_the_key_within_length_limit():
    assert group_for("k", 3, fifo=True) == "k"
    assert len(group_for("k" * 200, 3, fifo=True)) <= GROUP_CHARACTERS_MAX
    assert group_for("", 3, fifo=True) == "shard 3"
    assert group_for("", 3, fifo=False) == ""
