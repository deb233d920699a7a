"""Offset ranges that the Spark source reads."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_millstream.errors import OptionError
from pyspark_millstream.options import read_options
from pyspark_millstream.ranges import (
    ShardExtent,
    Span,
    adrift,
    between,
    earliest,
    latest,
    next_positions,
    shares,
    since,
    split,
    to_read,
)

# Shard 0 was split into 1 and 2, and 1 and 2 merged into 3.
SPLIT = [
    ShardExtent(0, 5, 40, open=False),
    ShardExtent(1, 0, 10, open=False, parents=(0,)),
    ShardExtent(2, 0, 20, open=False, parents=(0,)),
    ShardExtent(3, 0, 7, open=True, parents=(1, 2)),
]


def test_spans_are_divided_into_contiguous_pieces():
    assert split([Span(0, 5, 12), Span(1, 0, 3)], 3) == [
        Span(0, 5, 8),
        Span(0, 8, 11),
        Span(0, 11, 12),
        Span(1, 0, 3),
    ]


def test_earliest_position_is_in_shards_without_parents():
    assert earliest(SPLIT) == {0: 5}
    assert earliest(SPLIT[1:]) == {1: 0, 2: 0}


def test_latest_position_is_behind_all_records():
    assert latest(SPLIT) == {0: 40, 1: 10, 2: 20, 3: 7}


def test_children_wait_for_parents_with_records_since_time():
    assert since(SPLIT, {0: 30, 1: 0, 2: 0, 3: 0}) == {0: 30}
    assert since(SPLIT, {0: 40, 1: 10, 2: 4, 3: 0}) == {0: 40, 1: 10, 2: 4}
    assert since(SPLIT, {0: 40, 1: 10, 2: 20, 3: 5}) == {0: 40, 1: 10, 2: 20, 3: 5}


def test_shard_of_unread_expired_parents_is_read_from_start():
    [*_, third] = SPLIT
    late = [replace(third, start=2)]

    assert adrift(late, {0: 39}) == late
    assert to_read(late, {0: 39}) == {3: 2}
    assert adrift(late, {0: 40, 1: 10, 2: 20, 3: 0}) == []
    assert adrift(SPLIT, {3: 7}) == []
    assert adrift(SPLIT[1:], {0: 40, 1: 0, 2: 0}) == []


def test_child_has_a_position_once_its_parents_are_finished():
    """The child is still found after its parents have expired."""
    empty = [SPLIT[0], *(ShardExtent(one, 0, 0, open=True, parents=(0,)) for one in (1, 2))]

    assert next_positions(empty, {0: 40}, None, None) == {0: 40, 1: 0, 2: 0}


def test_child_is_read_when_all_parents_are_finished():
    assert to_read(SPLIT, {0: 39}) == {0: 39}
    assert to_read(SPLIT, {0: 40}) == {0: 40, 1: 0, 2: 0}
    assert to_read(SPLIT, {0: 40, 1: 10, 2: 19}) == {0: 40, 1: 10, 2: 19}
    assert to_read(SPLIT, {0: 40, 1: 10, 2: 20}) == {0: 40, 1: 10, 2: 20, 3: 0}


def test_query_from_latest_skips_earlier_closed_shards():
    assert to_read(SPLIT, {3: 7}) == {3: 7}


def test_stream_is_read_to_its_end_with_limited_batches():
    positions, seen = earliest(SPLIT), []
    while True:
        after = next_positions(SPLIT, positions, None, 6)
        if after == positions:
            break
        spans = between(positions, after)
        assert sum(span.end - span.first for span in spans) <= 6
        seen += spans
        positions = after

    assert positions == {0: 40, 1: 10, 2: 20, 3: 7}
    for shard, first, last in ((0, 5, 40), (1, 0, 10), (2, 0, 20), (3, 0, 7)):
        of_shard = [span for span in seen if span.shard == shard]
        assert [span.first for span in of_shard] == [
            first,
            *(span.end for span in of_shard[:-1]),
        ]
        assert of_shard[-1].end == last
    order = [span.shard for span in seen]
    assert max(nth for nth, shard in enumerate(order) if shard == 0) < order.index(1)
    assert max(nth for nth, shard in enumerate(order) if shard == 2) < order.index(3)


def test_available_now_reads_up_to_initial_positions():
    ceiling = {0: 40, 1: 10, 2: 20}

    assert next_positions(SPLIT, {0: 40, 1: 10, 2: 20}, ceiling, None) == ceiling
    assert next_positions(SPLIT, {0: 10}, {0: 30}, None) == {0: 30}


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 100))
def test_shares_use_the_limit_exactly(sizes, records_max):
    spans = [Span(shard, 0, size) for shard, size in enumerate(sizes)]

    taken = shares(spans, records_max)

    assert sum(taken) == min(records_max, sum(sizes))
    assert all(0 <= count <= size for count, size in zip(taken, sizes, strict=True))


GIVEN = {"url": "http://127.0.0.1:8080/", "stream": "clicks"}


def test_options_are_parsed():
    options = read_options(
        {**GIVEN, "startingOffsets": '{"0": 5}', "SHARDS": "0,3", "failOnDataLoss": "false"}
    )

    assert options.url == "http://127.0.0.1:8080"
    assert options.starting_offsets == {0: 5}
    assert options.shards == frozenset({0, 3})
    assert options.fail_on_data_loss is False


def test_time_without_zone_is_utc():
    assert read_options({**GIVEN, "startingTime": "1970-01-01T00:00:01"}).starting_time_ms == 1_000
    assert read_options({**GIVEN, "startingTime": "1500"}).starting_time_ms == 1_500


@pytest.mark.parametrize(
    "wrong",
    [
        {"startingOffset": "earliest"},
        {"startingOffsets": "soon"},
        {"startingOffsets": '{"0": -1}'},
        {"startingOffsets": "earliest", "startingTime": "0"},
        {"endingTime": "noon"},
        {"shards": "a"},
        {"shards": "-1"},
        {"startingOffsets": '{"0": 9}', "endingOffsets": '{"0": 3}'},
        {"startingOffsets": "latest", "endingOffsets": "earliest"},
        {"startingTime": "2000", "endingTime": "1000"},
        {"recordsPerPartition": "0"},
        {"failOnDataLoss": "yes"},
    ],
)
def test_invalid_option_is_rejected(wrong):
    with pytest.raises(OptionError):
        read_options({**GIVEN, **wrong})


def test_stream_and_url_are_required(monkeypatch):
    monkeypatch.delenv("MILLSTREAM_URL", raising=False)
    with pytest.raises(OptionError, match="url"):
        read_options({"stream": "clicks"})
    with pytest.raises(OptionError, match="stream"):
        read_options({"url": "http://127.0.0.1"})
