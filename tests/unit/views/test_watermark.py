"""Watermark of a view: the least of the shards that are not idle, and never falling."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.views.watermark import advance_marks, watermark_of

times = st.integers(0, 1_000)
marks_of_shards = st.dictionaries(st.integers(0, 3), times)


def test_watermark_is_least_mark_less_the_delay():
    assert watermark_of({0: 50, 1: 30}, delay_ms=10, idle=(), before_ms=None) == 20


def test_idle_shard_does_not_hold_watermark_back():
    assert watermark_of({0: 50, 1: 30}, delay_ms=10, idle=[1], before_ms=20) == 40


def test_watermark_is_at_greatest_mark_while_all_are_idle():
    assert watermark_of({0: 50, 1: 30}, delay_ms=10, idle=[0, 1], before_ms=20) == 40


def test_watermark_is_unknown_before_first_record():
    assert watermark_of({}, delay_ms=10, idle=(), before_ms=None) is None
    assert watermark_of({}, delay_ms=10, idle=(), before_ms=5) == 5


@given(marks_of_shards, st.sets(st.integers(0, 3)), times)
def test_watermark_never_falls(marks, idle, before_ms):
    assert (watermark_of(marks, delay_ms=10, idle=idle, before_ms=before_ms) or 0) >= before_ms


@given(marks_of_shards, marks_of_shards)
def test_marks_are_the_greatest_times(marks, newest):
    advanced = advance_marks(marks, newest)

    assert advanced.keys() == marks.keys() | newest.keys()
    for shard, time in advanced.items():
        assert time == max(marks.get(shard, 0), newest.get(shard, 0))
