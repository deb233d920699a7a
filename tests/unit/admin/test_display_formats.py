"""Formatting of numbers, bodies and sparklines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.admin import display_formats
from api.admin.browsing.body_preview import (
    PREVIEW_BYTES_MAX,
    BodyForm,
    escape_misleading,
    preview,
    summary,
)
from api.admin.lists import PAGE_ROWS, parse_search, slice_of, sorted_names
from api.admin.sparklines import sparkline


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1536, "1.5 KiB"), (5 * 1024**3, "5.0 GiB")],
)
def test_size_is_formatted_in_binary_units(value, text):
    assert display_formats.size(value) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (80, "80 ms"),
        (4200, "4.2 s"),
        (60_000, "1 min"),
        (11_520_000, "3 h 12 min"),
        (172_800_000, "2 d"),
        (172_860_000, "2 d"),
        (-5, "0 ms"),
    ],
)
def test_duration_is_formatted_in_largest_units(ms, text):
    assert display_formats.format_duration(ms) == text


def test_unknown_values_are_shown_as_dash():
    spells = (
        display_formats.count,
        display_formats.rate,
        display_formats.size,
        display_formats.format_duration,
    )

    assert {spell(None) for spell in spells} == {display_formats.NOTHING}
    assert display_formats.percent(1, 0) == display_formats.NOTHING


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (0.01, "<0.1"), (3.14, "3.1"), (250, "250")])
def test_rate_is_rounded(value, text):
    assert display_formats.rate(value) == text


def test_json_body_is_indented_and_offers_other_forms():
    body = preview(b'{"a":[1,2]}')

    assert body.form is BodyForm.JSON
    assert json.loads(body.text) == {"a": [1, 2]}
    assert body.forms == (BodyForm.JSON, BodyForm.TEXT, BodyForm.HEX)
    assert preview(b'{"a":[1,2]}', "hex").text.startswith("000000  7b 22 61")


def test_binary_body_is_shown_as_hex():
    body = preview(b"\xff\xfe\x00")

    assert body.form is BodyForm.HEX
    assert body.forms == (BodyForm.HEX,)


def test_deeply_nested_json_is_shown_as_text():
    body = preview(b"[" * 60_000)

    assert body.form is BodyForm.TEXT


def test_long_body_is_truncated_and_marked():
    body = preview("é".encode() * PREVIEW_BYTES_MAX)

    assert body.cut
    assert len(body.text.encode()) <= PREVIEW_BYTES_MAX


def test_control_and_bidi_characters_are_escaped():
    assert escape_misleading("a\u202egnp") == "a\u27e8U+202E\u27e9gnp"
    assert "\x1b" not in summary(b"\x1b[31m")


@given(st.binary(max_size=2000), st.sampled_from(["", *BodyForm]))
def test_arbitrary_bytes_can_be_shown(body, form):
    returned_preview = preview(body, form)

    assert returned_preview.form in returned_preview.forms
    assert returned_preview.size_bytes == len(body)
    assert "\u202e" not in returned_preview.text
    summary(body)


def test_search_is_parsed_into_name_part_and_tags():
    found = parse_search("orders tag:team=payments tag:env=prod tag:odd")

    assert found.part == "orders tag:odd"
    assert found.tags == {"team": "payments", "env": "prod"}


def test_rows_are_sorted_by_column_then_name():
    depth = {"a": 1, "b": 9, "c": 1}

    assert sorted_names(depth, "-ready", {"ready": depth.__getitem__}) == ["b", "a", "c"]
    assert sorted_names(depth, "-name", {}) == ["c", "b", "a"]
    assert sorted_names(depth, "nonsense", {}) == ["a", "b", "c"]


def test_page_beyond_last_is_last_page():
    names = [str(number) for number in range(PAGE_ROWS + 1)]

    page = slice_of(names, 10 * PAGE_ROWS)

    assert (page.start, page.names) == (PAGE_ROWS, [str(PAGE_ROWS)])
    assert slice_of([], 0).names == []


def test_sparkline_has_gap_where_values_are_missing():
    assert sparkline([None, None]) == ""
    assert sparkline([0, 1, None, 1]).count("M") == 2


def test_sparkline_averages_neighbouring_values():
    hour = [None] * 6 + [float(number % 6) for number in range(354)]

    path = sparkline(hour)

    assert (path.count("M"), path.count("L")) == (1, 58)
    assert len({point.split()[1] for point in path[1:].split("L")}) == 1
