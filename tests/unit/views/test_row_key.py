"""Encoding of row keys: the order of bytes is that of the values, and each value has its own."""

from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.views.plan import KeyColumn
from storage.domain.views.row_key import (
    encode_key,
    encode_part,
    encoded_width,
    end_of_prefix,
    key_values,
    text_prefix,
)

times = st.datetimes(min_value=datetime(1, 1, 1)).map(  # noqa: DTZ001  formatted as UTC
    lambda time: f"{time.isoformat(timespec='microseconds')}Z"
)
VALUES = {
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False).map(lambda value: value + 0.0),
    "timestamp": times,
    "date": st.dates().map(str),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
}


def columns(*types):
    return [KeyColumn("", type_) for type_ in types]


@st.composite
def pairs(draw):
    """Two values of a type, or null."""
    type_ = draw(st.sampled_from(sorted(VALUES)))
    value = st.none() | VALUES[type_]
    return type_, draw(value), draw(value)


@st.composite
def keys(draw):
    """Two keys of the same columns."""
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    key = st.tuples(*(st.none() | VALUES[type_] for type_ in types))
    return types, draw(key), draw(key)


def order_of(value):
    """Return a value for comparison: null first, text by its code points, which UTF-8 keeps."""
    return (value is not None, 0 if value is None else value)


@given(pairs())
@example(("string", "a", "a\x00"))
@example(("string", "a\x00b", "a\x01"))
@example(("double", -1.5, 1e-300))
def test_parts_compare_as_their_values(pair):
    type_, one, other = pair
    encoded = encode_part(one, type_), encode_part(other, type_)

    assert (encoded[0] < encoded[1]) == (order_of(one) < order_of(other))
    assert (encoded[0] == encoded[1]) == (one == other)


@given(keys())
@example((["string", "string"], ("a", "b"), ("a\x00", "")))
@example((["string", "string"], ("", "a"), ("a", "")))
def test_keys_compare_as_their_tuples(pair):
    types, one, other = pair
    encoded = [encode_key(key, columns(*types)) for key in (one, other)]

    assert (encoded[0] < encoded[1]) == ([*map(order_of, one)] < [*map(order_of, other)])
    assert (encoded[0] == encoded[1]) == (one == other)


@given(st.decimals(-(10**8), 10**8, places=2), st.decimals(-(10**8), 10**8, places=2))
def test_decimals_compare_as_their_values(one, other):
    encoded = [encode_part(str(value), "decimal(10,2)") for value in (one, other)]

    assume(one != other)
    assert (encoded[0] < encoded[1]) == (one < other)


def test_decimals_beyond_doubles_have_their_own_keys():
    values = [Decimal(10) ** 20, Decimal(10) ** 20 + 1]

    assert len({encode_part(str(value), "decimal(38,0)") for value in values}) == 2


@given(VALUES["string"], VALUES["string"])
def test_text_prefix_selects_texts_that_begin_with_it(prefix, text):
    encoded, begin = encode_part(text, "string"), text_prefix(prefix)
    end = end_of_prefix(begin)

    assert end is not None
    assert (begin <= encoded < end) == text.startswith(prefix)


def test_prefix_of_highest_bytes_has_no_end():
    assert end_of_prefix(b"\xff\xff") is None
    assert end_of_prefix(b"\x01\xff") == b"\x02"


@given(
    st.sampled_from(["boolean", "int", "bigint", "double", "timestamp", "date"]).flatmap(
        lambda type_: st.tuples(st.just(type_), VALUES[type_])
    )
)
def test_width_is_that_of_each_value(typed):
    type_, value = typed

    assert len(encode_part(value, type_)) == encoded_width(type_)


@pytest.mark.parametrize("type_", ["string", "decimal(10,2)", "array<int>"])
def test_width_of_other_types_is_not_known(type_):
    assert encoded_width(type_) is None


def test_long_keys_stay_different():
    texts = ["x" * limits.VIEW_KEY_BYTES_MAX + end for end in ("a", "b")]
    first, second = (encode_key([text], columns("string")) for text in texts)

    assert first != second
    assert len(first) == len(second) == limits.VIEW_KEY_BYTES_MAX + 16
    assert encode_key(["short"], columns("string")) == encode_part("short", "string")


def test_values_are_read_from_the_json_of_a_key():
    assert key_values('{"a": 1, "b": "x", "c": 1.50}') == [1, "x", "1.50"]
