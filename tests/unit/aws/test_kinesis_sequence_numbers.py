"""Sequence numbers, and what the Kinesis Client Library asks of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.aws.kinesis.records.sequence_numbers import (
    OFFSET_MAX,
    STEP,
    Place,
    ending_number,
    first_number,
    number_before,
    read_number,
    sequence_number,
    starting_number,
)
from storage.domain import limits

MOMENTS = st.integers(1_000_000_000_000, 4_000_000_000_000)
SHARDS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, limits.OFFSET_MAX)


def version_as_kcl_sees_it(number: int) -> int | None:
    """SequenceNumberValidator of amazon-kinesis-client: only 186 bits have a version it knows."""
    return (number >> 184) & 0b1111 if number.bit_length() == 186 else None


def shard_as_kcl_sees_it(number: int) -> int:
    return (number >> 4) & 0xFFFFFFFF


@given(MOMENTS, SHARDS, OFFSETS, MOMENTS)
def test_kcl_finds_the_version_and_the_shard(opened_ms, shard, offset, arrival_ms):
    number = int(sequence_number(opened_ms, shard, offset, arrival_ms))

    assert version_as_kcl_sees_it(number) == 2
    assert shard_as_kcl_sees_it(number) == shard


@given(MOMENTS, SHARDS, OFFSETS, MOMENTS)
def test_a_number_says_what_it_was_made_of(opened_ms, shard, offset, arrival_ms):
    text = sequence_number(opened_ms, shard, offset, arrival_ms)

    told_ms = max(arrival_ms, opened_ms)
    assert read_number(text) == Place(opened_ms // 1_000, shard, offset, told_ms // 1_000)
    assert 1 <= len(text) <= 129


@given(MOMENTS, SHARDS, OFFSETS, st.integers(0, 10**12), st.integers(1, 10**6))
def test_numbers_of_a_shard_rise_with_the_offset(opened_ms, shard, offset, later_ms, ahead):
    first = int(sequence_number(opened_ms, shard, offset, opened_ms))
    second = int(sequence_number(opened_ms, shard, offset + ahead, opened_ms + later_ms))

    assert int(starting_number(opened_ms, shard)) <= first < second
    assert second < int(ending_number(opened_ms, shard, opened_ms))


@given(MOMENTS, SHARDS, SHARDS, OFFSETS, st.integers(0, 10**12))
def test_a_child_s_numbers_lie_above_its_parents(opened_ms, parent, child, offset, later_ms):
    highest = int(ending_number(opened_ms, parent, opened_ms + later_ms))
    child_opened_ms = opened_ms - opened_ms % 1_000 + 1_000  # the second after, at the earliest

    assert highest < int(starting_number(child_opened_ms, child))
    assert int(sequence_number(opened_ms, parent, offset, opened_ms)) < int(
        number_before(child_opened_ms + 1_000, child)
    )


@given(MOMENTS, SHARDS, OFFSETS)
def test_neighbours_of_one_second_are_a_step_apart(opened_ms, shard, offset):
    first = first_number(opened_ms, shard, offset, opened_ms)

    assert first + STEP == first_number(opened_ms, shard, offset + 1, opened_ms)


@given(MOMENTS, SHARDS)
def test_before_the_first_is_a_place_of_its_own(opened_ms, shard):
    place = read_number(number_before(opened_ms, shard))

    assert place is not None
    assert (place.opened_s, place.offset) == (opened_ms // 1_000 - 1, OFFSET_MAX)
    assert int(number_before(opened_ms, shard)) < int(starting_number(opened_ms, shard))


@given(st.integers(0, 10**129 - 1))
def test_other_numbers_are_none_of_ours_or_say_the_same_again(number):
    place = read_number(str(number))

    assert (
        place is None
        or int(
            sequence_number(
                place.opened_s * 1_000, place.shard, place.offset, place.arrival_s * 1_000
            )
        )
        == number
    )


@pytest.mark.parametrize("text", ["0", "1", "9" * 129, str(2**185), str(2**186 - 1)])
def test_what_amazon_would_not_give_is_not_read(text):
    assert read_number(text) is None


def test_a_number_has_the_layout_that_is_drawn():
    number = first_number(0x123456789 * 1_000, 0xABC, 0x7F, 0x987654321 * 1_000)

    assert f"{number:x}" == "2123456789c000000000000007f0098765432100000abc2"
