"""Ranges of keys that a read selects."""

import pytest

from storage.domain.errors import ValidationFailed
from storage.domain.views.key_range import KeyRange, key_range
from storage.domain.views.plan import KeyColumn, ViewPlan
from storage.domain.views.rows import RowQuery

TOTAL = ViewPlan(columns=(), key=())
PAGES = ViewPlan(columns=(), key=(KeyColumn("page", "string"),))
WINDOWS = ViewPlan(
    columns=(), key=(KeyColumn("", "timestamp", is_window=True),), window_ms=(60_000, 10_000)
)


def test_view_of_one_row_is_read_without_key():
    assert key_range(RowQuery(), TOTAL) == KeyRange()


def test_windows_are_bounded_by_their_ends():
    keys = key_range(RowQuery(window_from_ms=5, window_to_ms=7), WINDOWS)

    assert (keys.ends_after_ms, keys.ends_before_ms) == (5, 60_007)


def test_range_after_the_last_selected_key_is_empty():
    key = key_range(RowQuery(key=("a",)), PAGES).low

    for descending in (False, True):
        query = RowQuery(key=("a",), after_key=key, descending=descending)
        keys = key_range(query, PAGES)
        assert keys.high is not None
        assert keys.low >= keys.high


@pytest.mark.parametrize(
    ("query", "plan", "pointer"),
    [
        (RowQuery(latest=True), PAGES, "/latest"),
        (RowQuery(window_to_ms=1), PAGES, "/window_to"),
        (RowQuery(window_from_ms=1, window_to_ms=1), PAGES, "/window_from"),
        (RowQuery(key=("a",)), TOTAL, "/key/0"),
        (RowQuery(prefix="a"), TOTAL, "/prefix"),
        (RowQuery(prefix="2026"), WINDOWS, "/prefix"),
    ],
)
def test_selection_that_the_key_does_not_have_is_refused(query, plan, pointer):
    with pytest.raises(ValidationFailed) as refused:
        key_range(query, plan)

    assert refused.value.faults[0].pointer == pointer
