"""The hash-ring chart, and paging and searching of records, without a store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.admin.browsing.message_query import parse_time_ms
from api.admin.browsing.record_browser import (
    BrowsePosition,
    ShardRecord,
    _cut,
    predicate_of,
)
from api.admin.hash_ring_chart import hash_ring_arcs, neighbours, share_of
from storage.domain.errors import ValidationFailed
from storage.domain.log.record_batch import Record
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import RING_SIZE, LogRecord, Shard, even_ranges


def shard(index: int, first: int, last: int, parents=(), *, closed: bool = False) -> Shard:
    return Shard(index, f"{index:016x}", first, last, 1, 2 if closed else None, parents)


def record(offset: int, data: bytes = b"x", key: str = "", arrival_ms: int | None = None):
    return LogRecord(offset, offset if arrival_ms is None else arrival_ms, Record(data, key))


# ── Hash-ring chart ──


def test_single_shard_fills_the_ring():
    [arc] = hash_ring_arcs([shard(0, 0, RING_SIZE - 1)])

    assert arc.share == 1
    assert arc.path.count("A") == 2
    assert "nan" not in arc.path


def test_child_shards_are_drawn_outside_parents():
    half = RING_SIZE // 2
    drawn = hash_ring_arcs(
        [
            shard(0, 0, RING_SIZE - 1, closed=True),
            shard(1, 0, half - 1, (0,)),
            shard(2, half, RING_SIZE - 1, (0,)),
        ]
    )

    from_middle = [((arc.x - 180) ** 2 + (arc.y - 180) ** 2) ** 0.5 for arc in drawn]

    assert from_middle[0] < from_middle[1] == pytest.approx(from_middle[2], abs=0.1)


def test_expired_parent_is_ignored():
    assert len(hash_ring_arcs([shard(7, 0, RING_SIZE - 1, (3, 4))])) == 1


@given(st.integers(1, 200))
def test_open_shards_cover_ring_once_and_have_neighbours(count):
    shards = [shard(nth, *ends) for nth, ends in enumerate(even_ranges(count))]

    drawn = hash_ring_arcs(shards)

    assert sum(arc.share for arc in drawn) == pytest.approx(1)
    assert len(neighbours(shards)) == count - 1
    assert all(0 <= share_of(arc.shard.first_hash_key) < 1 for arc in drawn)


def test_closed_shards_have_no_neighbours():
    half = RING_SIZE // 2
    shards = [
        shard(0, 0, half - 1),
        shard(1, half, RING_SIZE - 1, closed=True),
        shard(2, half, RING_SIZE - 1),
    ]

    assert [(one.index, other.index) for one, other in neighbours(shards)] == [(0, 2)]


# ── Pages of records ──


@given(
    arrivals=st.lists(st.lists(st.integers(0, 50), max_size=12).map(sorted), max_size=4),
    room=st.integers(0, 20),
)
def test_page_continues_where_previous_page_stopped(arrivals, room):
    shard_records = [
        ShardRecord(number, record(offset, arrival_ms=at))
        for number, times in enumerate(arrivals)
        for offset, at in enumerate(times)
    ]
    after = BrowsePosition({number: len(times) for number, times in enumerate(arrivals)}, None)

    taken, place = _cut(shard_records, after, room)

    assert len(taken) == min(room, len(shard_records))
    for number, times in enumerate(arrivals):
        shown = [message.record.offset for message in taken if message.shard == number]
        assert shown == list(range(place.positions[number]))  # none is skipped or repeated
        assert place.positions[number] <= len(times)


def test_ended_shard_is_shown_to_its_end():
    found = [ShardRecord(0, record(0)), ShardRecord(0, record(1))]

    taken, place = _cut(found, BrowsePosition({0: FULLY_READ, 1: 0}, None), 1)

    assert (len(taken), place.positions) == (2, {0: FULLY_READ, 1: 0})


@pytest.mark.parametrize(
    ("text", "key", "is_wanted"),
    [
        ("NEEDLE", "", True),
        ("ann", "", True),
        ("trace", "", True),
        ("abc1", "", True),
        ("hay", "", False),
        ("", "ann", True),
        ("", "an", False),
        ("needle", "bob", False),
    ],
)
def test_text_matches_anywhere_and_key_matches_exactly(text, key, is_wanted):
    at = LogRecord(0, 0, Record(b"a needle", "ann", (("trace", "", b"ABC1"),)))
    wanted = predicate_of(text, Filter(keys=(key,) if key else ()))
    assert wanted is not None

    assert wanted(0, at) is is_wanted


def test_empty_search_matches_everything():
    assert predicate_of("", Filter()) is None


@pytest.mark.parametrize("text", ["1970-01-01 00:00:01", "1970-01-01T01:00:01+01:00"])
def test_time_without_zone_is_utc(text):
    assert parse_time_ms(text) == 1_000


@pytest.mark.parametrize("text", ["yesterday", "12:00", "9" * 60])
def test_invalid_time_is_rejected(text):
    with pytest.raises(ValidationFailed):
        parse_time_ms(text)
