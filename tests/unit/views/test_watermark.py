"""Watermark of a view: the least of the shards that are not idle, and never falling."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.views.watermark import StreamMarks, advance_marks, watermark_of

times = st.integers(0, 1_000)
marks_of_shards = st.dictionaries(st.integers(0, 3), times)


def test_watermark_is_least_mark_less_the_delay():
    assert watermark_of([StreamMarks({0: 50, 1: 30}, 10, ())], None) == 20


def test_idle_shard_does_not_hold_watermark_back():
    assert watermark_of([StreamMarks({0: 50, 1: 30}, 10, [1])], 20) == 40


def test_watermark_is_at_greatest_mark_while_all_are_idle():
    assert watermark_of([StreamMarks({0: 50, 1: 30}, 10, [0, 1])], 20) == 40


def test_watermark_is_unknown_before_first_record():
    assert watermark_of([StreamMarks({}, 10, ())], None) is None
    assert watermark_of([StreamMarks({}, 10, ())], 5) == 5


def test_watermark_of_two_streams_is_the_earlier_one():
    first, second = StreamMarks({0: 50, 1: 30}, 10), StreamMarks({0: 28}, 5)

    assert watermark_of([first, second], None) == 20
    assert watermark_of([StreamMarks({0: 50}, 10), second], None) == 23
    assert watermark_of([first, StreamMarks({0: 28}, 5, [0])], None) == 20
    assert watermark_of([first._replace(idle=[0, 1]), StreamMarks({}, 5)], None) == 40


@given(marks_of_shards, st.sets(st.integers(0, 3)), times)
def test_watermark_never_falls(marks, idle, before_ms):
    assert (watermark_of([StreamMarks(marks, 10, idle)], before_ms) or 0) >= before_ms


@given(marks_of_shards, marks_of_shards)
def test_marks_are_the_greatest_times(marks, newest):
    advanced = advance_marks(marks, newest)

    assert advanced.keys() == marks.keys() | newest.keys()
    for shard, time in advanced.items():
        assert time == max(marks.get(shard, 0), newest.get(shard, 0))
