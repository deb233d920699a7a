"""Keys of a view's rows, as the links of its page have them."""

import pytest

from api.admin.pages.views import _key_of
from storage.domain.views.plan import KeyColumn, ViewPlan
from storage.domain.views.row_key import WINDOW

START = "2026-11-29T10:00:00.000000Z"
SPAN = {"start": START, "end": "2026-11-29T10:05:00.000000Z"}


@pytest.mark.parametrize(
    ("columns", "row", "key"),
    [
        ([("page", "string"), ("n", "bigint")], {"page": "/", "n": 7}, ["/", "7"]),
        ([("page", "string"), ("w", WINDOW)], {"page": "/", "w": SPAN}, ["/", START]),
        ([("since", WINDOW)], {"since": START}, [START]),
        ([("page", "string")], {"page": None}, []),
        ([("place", "struct<x:int>")], {"place": {"x": 1}}, []),
        ([("", "string")], {"page": "/"}, []),
    ],
)
def test_key_is_given_as_text_where_it_can_be(columns, row, key):
    plan = ViewPlan(columns=(), key=tuple(KeyColumn(*column) for column in columns))

    assert list(_key_of(row, plan)) == key
