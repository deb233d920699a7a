"""Idempotent batches: sequences, and the records that remain to be appended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import BatchTooLarge, ValidationFailed
from storage.domain.limits import BATCH_RECORDS_MAX, OFFSET_MAX
from storage.domain.streams.idempotence import (
    NO_WATERMARK,
    AncestorWatermark,
    SequencedBatch,
    SequenceRange,
    floor_at,
    lasts_of,
)

TWO = SequencedBatch(["a", "b", "a", "b"], [3, 1, 7, 2])


def test_claims_span_first_to_last_sequence_per_producer():
    assert TWO.claims(range(4)) == (SequenceRange("a", 3, 7), SequenceRange("b", 1, 2))
    assert TWO.claims([2]) == (SequenceRange("a", 7, 7),)


def test_appended_records_are_not_sent_again():
    lasts = lasts_of(TWO.claims(range(4)), [3, NO_WATERMARK])

    assert TWO.above(range(4), lasts) == [1, 2, 3]


def test_sequences_must_increase_per_producer():
    TWO.check(4)
    with pytest.raises(ValidationFailed):
        SequencedBatch(["a", "b", "a"], [3, 1, 3]).check(3)


@pytest.mark.parametrize(
    "batch",
    [
        SequencedBatch.of("", [1]),
        SequencedBatch.of("a" * 129, [1]),
        SequencedBatch.of("a", [-1]),
        SequencedBatch.of("a", [OFFSET_MAX + 1]),
        SequencedBatch.of("a", [1, 2]),
        SequencedBatch(["a"], []),
    ],
)
def test_invalid_batch_is_rejected(batch):
    with pytest.raises(ValidationFailed):
        batch.check(1)


def test_batch_has_one_to_one_thousand_records():
    with pytest.raises(ValidationFailed):
        SequencedBatch.of("a", []).check(0)
    with pytest.raises(BatchTooLarge):
        SequencedBatch.of("a", range(BATCH_RECORDS_MAX + 1)).check(BATCH_RECORDS_MAX + 1)


def test_hash_key_inherits_highest_watermark_of_ancestors():
    floors = [AncestorWatermark(0, 9, 4), AncestorWatermark(10, 19, 7), AncestorWatermark(0, 19, 5)]

    assert [floor_at(floors, place) for place in (0, 9, 10, 20)] == [5, 5, 7, NO_WATERMARK]


@given(
    sequences=st.lists(st.integers(0, 50), min_size=1, max_size=20, unique=True).map(sorted),
    last=st.integers(-1, 50),
)
def test_records_above_the_watermark_remain(sequences, last):
    batch = SequencedBatch.of("a", sequences)

    left = batch.above(range(len(sequences)), {"a": last})

    assert [sequences[number] for number in left] == [
        sequence for sequence in sequences if sequence > last
    ]
