"""Producer state that a child shard inherits from its closed parents."""

import pytest

from storage.domain.errors import DuplicateForgotten, ProducerFenced, SequenceOutOfOrder
from storage.domain.streams.producers import AcceptedBatch, Inherited, Remembered, judge
from storage.domain.streams.stream import Producer

LOW = Remembered(0, 1, 9, ((5, 2, 50), (7, 3, 70)))
HIGH = Remembered(1, 1, 4, ((3, 2, 30),))
OLD = Remembered(2, 0, 99, ((98, 2, 900),))


def producer(sequence: int, epoch: int = 1) -> Producer:
    return Producer("p", epoch, sequence)


def test_unknown_producer_is_new():
    assert judge(producer(0), 1, []) is None


def test_batch_appended_to_parent_is_a_duplicate():
    assert judge(producer(7), 3, [LOW]) == AcceptedBatch(0, 70)
    assert judge(producer(7), 3, [LOW, OLD]) == AcceptedBatch(0, 70)


def test_sequence_continues_after_parents():
    assert judge(producer(10), 2, [LOW, HIGH]) == Inherited(1, 9)


def test_forgotten_batch_is_still_a_duplicate():
    with pytest.raises(DuplicateForgotten):
        judge(producer(2), 2, [LOW])
    with pytest.raises(DuplicateForgotten):
        judge(producer(7), 2, [LOW])


def test_epoch_older_than_parents_is_fenced():
    with pytest.raises(ProducerFenced) as fenced:
        judge(producer(0, epoch=0), 1, [OLD, LOW])

    assert fenced.value.facts == {"current_epoch": 1}


def test_new_epoch_inherits_state_on_child():
    assert judge(producer(0, epoch=2), 1, [LOW]) == Inherited(1, 9)


def test_ambiguous_batch_of_two_parents_is_rejected():
    with pytest.raises(SequenceOutOfOrder) as refused:
        judge(producer(3), 2, [LOW, HIGH])

    assert refused.value.facts == {"expected_sequence": 10}
