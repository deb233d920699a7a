"""Conversion of values between domain and wire."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from api.native.cursors import decode_cursor, encode_cursor
from api.native.fields import (
    body_from_json,
    body_from_msgpack,
    idempotency_key,
    rfc3339,
    show_body,
    show_headers,
    to_ms,
    to_seconds,
)
from api.rest.schemas.queue import QueuePatch
from storage.domain.errors import InvalidCursor, ValidationFailed
from storage.domain.limits import HEADERS_MAX
from storage.domain.queues.queue import QueueSpec
from storage.domain.trace_context import with_trace

UNSET = msgspec.UNSET
TRACE = (("traceparent", "", b"t"),)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def shown(body: bytes, content_type: str) -> dict[str, object]:
    value, encoded = show_body(body, content_type)
    answer: dict[str, object] = msgspec.json.decode(
        msgspec.json.encode({"body": value} if encoded is UNSET else {"body_base64": encoded})
    )
    return answer


@given(json_values)
def test_json_body_round_trips(value):
    raw = msgspec.Raw(msgspec.json.encode(value))

    body, content_type = body_from_json(raw, UNSET, "body")

    assert content_type == "application/json"
    assert shown(body, content_type) == {"body": value}


@given(st.text())
def test_text_body_round_trips(text):
    raw = msgspec.Raw(msgspec.json.encode(text))

    body, content_type = body_from_json(raw, UNSET, "body")

    assert (body, content_type) == (text.encode(), "")
    assert shown(body, content_type) == {"body": text}


@given(st.binary())
def test_binary_body_round_trips_in_messagepack(data):
    assert body_from_msgpack(data, UNSET, "body") == (data, "")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"1 2"])
def test_invalid_json_body_is_still_returned(body):
    answer = shown(body, "application/json")

    assert answer.keys() in ({"body"}, {"body_base64"})


def test_messagepack_without_json_equivalent_is_rejected():
    with pytest.raises(ValidationFailed):
        body_from_msgpack(msgspec.msgpack.Ext(7, b"x"), UNSET, "body")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_769_860_800_007, "2026-01-31T12:00:00.007Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_rfc_3339_with_milliseconds(ms, text):
    assert rfc3339(ms) == text


@given(st.integers(0, 315_360_000_000))
def test_duration_round_trips(ms):
    assert to_ms(to_seconds(ms)) == ms


def test_duration_in_whole_seconds_is_an_integer():
    assert isinstance(to_seconds(30_000), int)
    assert to_seconds(30_500) == 30.5


@pytest.mark.parametrize(("header", "key"), [(b'"8e03"', "8e03"), (b"8e03", "8e03")])
def test_idempotency_key_may_be_quoted_or_bare(header, key):
    assert idempotency_key({b"idempotency-key": header}) == key


def test_missing_idempotency_key_is_empty():
    assert idempotency_key({}) == ""


def test_binary_header_is_base64_and_reserved_header_is_hidden():
    headers = (("a", "", b"x"), ("b", "Binary", b"\xff"), (":id", "", b"1"))

    assert show_headers(headers) == ({"a": "x"}, {"b": "/w=="})


def test_trace_context_of_message_takes_precedence():
    own = (("tracestate", "", b"mine"),)

    assert with_trace(own, TRACE) == own
    assert with_trace((), TRACE) == TRACE


def test_trace_context_is_not_added_above_header_limit():
    full = tuple((f"h{n}", "", b"") for n in range(HEADERS_MAX))

    assert with_trace(full, TRACE) == full


@given(st.dictionaries(st.integers(0, 1023), st.integers(0, 2**53)))
def test_cursor_round_trips(positions):
    cursor = encode_cursor(("records", "a1"), positions)

    assert decode_cursor(cursor, ("records", "a1"), dict[int, int]) == positions


@given(st.text())
def test_malformed_cursor_is_rejected(text):
    with pytest.raises(InvalidCursor):
        decode_cursor(text, ("records", "a1"), dict[int, int])


def test_cursor_of_other_resource_is_rejected():
    cursor = encode_cursor(("records", "a1"), {0: 1})

    with pytest.raises(InvalidCursor):
        decode_cursor(cursor, ("records", "b2"), dict[int, int])


def test_empty_patch_changes_nothing():
    spec = QueueSpec(visibility_timeout_ms=1_500, attempts_max=None, tags={"a": "1"})

    assert QueuePatch().apply(spec) == spec


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (float("nan"), "/body"),
        ({"a": [1, {"b": float("inf")}]}, "/body/a/1/b"),
        ([1.0, float("-inf")], "/body/1"),
        ({1: "a", "1": "b"}, "/body"),
        ({"a": {float("nan"): 1}}, "/body/a"),
        ({1.5: "a"}, "/body"),
        ({True: "a"}, "/body"),
    ],
)
def test_messagepack_value_that_json_would_change_is_rejected(value, pointer):
    """NaN was stored as null, and of the keys 1 and "1" one was lost, with 201."""
    packed = msgspec.msgpack.decode(msgspec.msgpack.encode(value))

    with pytest.raises(ValidationFailed) as rejected:
        body_from_msgpack(packed, UNSET, "body")

    assert [fault.pointer for fault in rejected.value.faults] == [pointer]


@given(json_values)
def test_messagepack_value_keeps_its_value_as_json(value):
    assume(not isinstance(value, str))  # text is a body of its own
    try:
        packed = msgspec.msgpack.encode(value)
    except OverflowError:
        return  # an integer that MessagePack cannot hold

    body, _ = body_from_msgpack(msgspec.msgpack.decode(packed), UNSET, "body")

    assert msgspec.json.decode(body) == value
