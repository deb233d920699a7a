"""Sequence numbers, and the layout that the Kinesis Client Library requires."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.aws.kinesis.records.sequence_numbers import (
    OFFSET_MAX,
    STEP,
    SequenceNumberFields,
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
    """SequenceNumberValidator of amazon-kinesis-client: 186-bit numbers have a version."""
    return (number >> 184) & 0b1111 if number.bit_length() == 186 else None


def shard_as_kcl_sees_it(number: int) -> int:
    return (number >> 4) & 0xFFFFFFFF


@given(MOMENTS, SHARDS, OFFSETS, MOMENTS)
def test_kcl_reads_version_and_shard(opened_ms, shard, offset, arrival_ms):
    number = int(sequence_number(opened_ms, shard, offset, arrival_ms))

    assert version_as_kcl_sees_it(number) == 2
    assert shard_as_kcl_sees_it(number) == shard


@given(MOMENTS, SHARDS, OFFSETS, MOMENTS)
def test_sequence_number_round_trips(opened_ms, shard, offset, arrival_ms):
    text = sequence_number(opened_ms, shard, offset, arrival_ms)

    told_ms = max(arrival_ms, opened_ms)
    assert read_number(text) == SequenceNumberFields(
        opened_ms // 1_000, shard, offset, told_ms // 1_000
    )
    assert 1 <= len(text) <= 129


@given(MOMENTS, SHARDS, OFFSETS, st.integers(0, 10**12), st.integers(1, 10**6))
def test_sequence_numbers_of_shard_increase_with_offset(opened_ms, shard, offset, later_ms, ahead):
    first = int(sequence_number(opened_ms, shard, offset, opened_ms))
    second = int(sequence_number(opened_ms, shard, offset + ahead, opened_ms + later_ms))

    assert int(starting_number(opened_ms, shard)) < first < second
    assert second < int(ending_number(opened_ms, shard, opened_ms))


@given(MOMENTS, SHARDS, SHARDS, OFFSETS, st.integers(0, 10**12))
def test_sequence_numbers_of_child_exceed_those_of_parent(
    opened_ms, parent, child, offset, later_ms
):
    highest = int(ending_number(opened_ms, parent, opened_ms + later_ms))
    child_opened_ms = opened_ms - opened_ms % 1_000 + 1_000  # the next second, at the earliest

    assert highest < int(starting_number(child_opened_ms, child))
    assert int(sequence_number(opened_ms, parent, offset, opened_ms)) < int(
        number_before(child_opened_ms + 1_000, child)
    )


@given(MOMENTS, SHARDS, OFFSETS)
def test_adjacent_offsets_in_one_second_differ_by_one_step(opened_ms, shard, offset):
    first = first_number(opened_ms, shard, offset, opened_ms)

    assert first + STEP == first_number(opened_ms, shard, offset + 1, opened_ms)


@given(MOMENTS, SHARDS)
def test_number_before_first_offset_is_distinct(opened_ms, shard):
    place = read_number(number_before(opened_ms, shard))

    assert place is not None
    assert (place.opened_s, place.offset) == (opened_ms // 1_000 - 1, OFFSET_MAX)
    assert int(number_before(opened_ms, shard)) < int(starting_number(opened_ms, shard))


@given(st.integers(0, 10**129 - 1))
def test_arbitrary_number_is_rejected_or_round_trips(number):
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
def test_number_out_of_range_is_rejected(text):
    assert read_number(text) is None


def test_sequence_number_has_documented_layout():
    number = first_number(0x123456789 * 1_000, 0xABC, 0x7F, 0x987654321 * 1_000)

    assert f"{number:x}" == "2123456789c000000000000007f0098765432100000abc2"
