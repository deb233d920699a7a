"""Items of a body are counted before decoding, to bound memory."""

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import HttpError
from api.http import item_limits
from api.http.item_limits import (
    _after_cbor,
    _after_msgpack,
    _walk,
    check_cbor_items,
    check_json_items,
    check_msgpack_items,
)
from api.rest.routes import messages
from storage.domain import limits

JSON = {b"content-type": b"application/json"}
MSGPACK = {b"content-type": b"application/msgpack"}
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20)
    ),
    max_leaves=40,
)


def items_of(value):
    if isinstance(value, list):
        return 1 + sum(map(items_of, value))
    if isinstance(value, dict):
        return 1 + sum(items_of(key) + items_of(below) for key, below in value.items())
    return 1


@given(PLAIN)
def test_walk_visits_every_item_and_ends_after_last(value):
    for encoded, after in (
        (msgspec.msgpack.encode(value), _after_msgpack),
        (cbor2.dumps(value), _after_cbor),
    ):
        at = items = 0
        while at < len(encoded):
            at, items = after(encoded, at), items + 1

        assert (at, items) == (len(encoded), items_of(value))


@given(st.binary(max_size=2_000))
def test_walk_over_arbitrary_bytes_terminates(payload):
    for after in (_after_msgpack, _after_cbor):
        _walk(payload, after)


@pytest.mark.parametrize(
    ("check", "hostile"),
    [
        (check_json_items, b'{"messages":[' + b"{}," * 600_000 + b"{}]}"),
        (check_json_items, b"[" * 600_000),
        (check_msgpack_items, b"\xdd\x00\x10\x00\x00" + b"\x80" * (1 << 20)),
        (check_cbor_items, b"\x9f" + b"\x80" * (1 << 20)),
    ],
)
def test_body_of_nested_containers_is_rejected(check, hostile):
    with pytest.raises(HttpError, match="too many values"):
        check(hostile)


def test_largest_allowed_batch_is_accepted():
    body = "x" * 12_000
    batch = {"messages": [{"body": body, "headers": {"a": "b"}} for _ in range(1_000)]}

    check_json_items(msgspec.json.encode(batch))
    check_msgpack_items(msgspec.msgpack.encode(batch))
    check_cbor_items(cbor2.dumps(batch))


def test_batch_of_structured_bodies_is_accepted():
    body = {"lines": [{"sku": f"a-{number}", "count": number} for number in range(200)]}
    batch = {"messages": [{"body": body} for _ in range(1_000)]}

    check_json_items(msgspec.json.encode(batch))


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (JSON, b'{"messages":[' + b"{}," * 900_000),
        (MSGPACK, b"\x81\xa8messages\xdd\x00\x10\x00\x00" + b"\x80" * (1 << 20)),
    ],
)
def test_routes_check_item_count_before_decoding(kind, payload):
    [send] = [route for route in messages.fast_routes.routes if route.operation == "send_messages"]
    assert send.body is not None

    with pytest.raises(HttpError, match="too many values"):
        send.body.decode(payload, kind)


def test_small_bodies_are_not_walked(monkeypatch):
    monkeypatch.setattr(item_limits, "_walk", None)

    check_msgpack_items(b"\x80" * limits.BATCH_CHECKED_BYTES_MIN)
