"""What closed parents say of a producer's first batch on a child."""

import pytest

from storage.domain.errors import DuplicateForgotten, ProducerFenced, SequenceOutOfOrder
from storage.domain.streams.producers import Inherited, Known, Remembered, judge
from storage.domain.streams.stream import Producer

LOW = Remembered(0, 1, 9, ((5, 2, 50), (7, 3, 70)))
HIGH = Remembered(1, 1, 4, ((3, 2, 30),))
OLD = Remembered(2, 0, 99, ((98, 2, 900),))


def producer(sequence: int, epoch: int = 1) -> Producer:
    return Producer("p", epoch, sequence)


def test_a_producer_that_no_parent_knows_is_new():
    assert judge(producer(0), 1, []) is None


def test_a_batch_that_a_parent_took_is_there():
    assert judge(producer(7), 3, [LOW]) == Known(0, 70)
    assert judge(producer(7), 3, [LOW, OLD]) == Known(0, 70)


def test_numbers_go_on_behind_the_parents_last():
    assert judge(producer(10), 2, [LOW, HIGH]) == Inherited(1, 9)


def test_a_batch_from_long_ago_is_a_duplicate_all_the_same():
    with pytest.raises(DuplicateForgotten):
        judge(producer(2), 2, [LOW])
    with pytest.raises(DuplicateForgotten):
        judge(producer(7), 2, [LOW])


def test_an_epoch_that_a_parent_has_left_behind_is_fenced():
    with pytest.raises(ProducerFenced) as fenced:
        judge(producer(0, epoch=0), 1, [OLD, LOW])

    assert fenced.value.facts == {"current_epoch": 1}


def test_a_new_epoch_fences_the_old_one_on_the_child_too():
    assert judge(producer(0, epoch=2), 1, [LOW]) == Inherited(1, 9)


def test_of_two_parents_nobody_can_tell_whose_batch_it_was():
    with pytest.raises(SequenceOutOfOrder) as refused:
        judge(producer(3), 2, [LOW, HIGH])

    assert refused.value.facts == {"expected_sequence": 10}
