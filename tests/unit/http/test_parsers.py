"""Fuzzing of parsers: each accepts its input or raises only its documented errors."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.auth.audit import claimed_id
from api.aws.kinesis.arns import read_arn
from api.aws.kinesis.tokens import ListToken, NotOurs, ShardIterator, unseal
from api.aws.protocol.codecs import cbor
from api.aws.protocol.codecs.query import parse_parameters, read_parameters
from api.aws.protocol.codecs.xml import error_xml
from api.aws.protocol.errors import BAD_REQUEST, AwsError
from api.aws.sqs.actions.move_tasks import _decode as read_task_handle
from api.aws.sqs.pagination import page_of
from api.aws.sqs.service import SQS
from api.aws.sqs.shapes import SendMessageBatch
from api.cli.commands.audit import parse_entry
from api.errors import HttpError
from api.http.query import read_query
from api.native import fields
from api.native.cursors import decode_cursor
from api.rest.routes import columnar_records, group_records, messages, records
from api.sse.event_id import parse_event_id
from api.websocket.codec import JSON as JSON_WIRE
from api.websocket.codec import MSGPACK as MSGPACK_WIRE
from api.websocket.codec import BadFrame, Malformed
from storage.domain.access.credentials import could_be_id, parse_key
from storage.domain.access.permissions import Effect, Grant, Policy
from storage.domain.errors import MillstreamError, ValidationFailed
from storage.domain.log.json_body import at_pointer
from storage.domain.names import check_name
from storage.domain.queues.message import ReceiptHandle

ANYTHING = st.binary(max_size=300)
TEXT = st.text(max_size=200)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
WORDS = st.sampled_from(
    ["type", "hello", "subscribe", "publish", "ack", "id", "sub", "source", "queue:orders"]
)
FRAMES = st.dictionaries(WORDS | TEXT, WORDS | PLAIN, max_size=6)
HEADERS = st.dictionaries(st.binary(max_size=20).map(bytes.lower), ANYTHING, max_size=4)


def only(parse: Callable[..., Any], *given: Any, raises: tuple[type[Exception], ...]) -> None:
    """Call `parse`, which must return or raise one of these."""
    with suppress(*raises):
        parse(*given)


@given(ANYTHING | FRAMES.map(lambda frame: json.dumps(frame).encode()))
def test_json_frames_decode_or_raise_documented_error(payload):
    only(JSON_WIRE.decode, payload, raises=(BadFrame, Malformed))


@given(ANYTHING | FRAMES.filter(lambda frame: _fits(frame)).map(msgspec.msgpack.encode))
def test_msgpack_frames_decode_or_raise_documented_error(payload):
    only(MSGPACK_WIRE.decode, payload, raises=(BadFrame, Malformed))


@given(TEXT | ANYTHING.map(lambda raw: raw.decode("latin-1")))
def test_opaque_tokens_decode_or_raise_documented_error(text):
    only(decode_cursor, text, ("queues", "default"), str, raises=(MillstreamError,))
    only(ReceiptHandle.decode, text, "00ff00ff00ff00ff", raises=(MillstreamError,))
    only(unseal, text, ShardIterator, b"s" * 32, raises=(NotOurs,))
    only(unseal, text, ListToken, b"s" * 32, raises=(NotOurs,))
    only(read_task_handle, text, raises=(AwsError,))
    only(page_of, 10, text, raises=(AwsError,))
    only(parse_event_id, text, raises=(MillstreamError,))
    only(parse_key, text, raises=())
    only(could_be_id, text, raises=())
    only(read_arn, text, raises=())
    only(check_name, text, raises=(ValidationFailed,))
    only(parse_entry, text, raises=(ValueError,))


@given(ANYTHING, ANYTHING)
def test_query_calls_decode_or_raise_documented_error(query_string, body):
    def read() -> None:
        parameters = parse_parameters(query_string, body)
        for kind in (SendMessageBatch, SQS.operations["CreateQueue"].input_type):
            read_parameters(parameters, kind)

    only(read, raises=(AwsError,))


@given(
    st.lists(
        st.tuples(st.sampled_from(["SendMessageBatchRequestEntry", "Id", "1", "member", "a"]), TEXT)
    )
)
def test_nested_query_names_decode_or_raise_documented_error(pairs):
    name = ".".join(word for word, _ in pairs)

    only(read_parameters, {name: "x", f"{name}.1": "y"}, SendMessageBatch, raises=(AwsError,))


@given(ANYTHING | PLAIN.map(lambda value: cbor2.dumps(value)))
def test_cbor_decodes_or_raises_documented_error(payload):
    only(cbor.loads, payload, raises=(cbor.MalformedCbor,))


@given(TEXT)
def test_error_xml_is_well_formed_for_any_text(text):
    encoded = error_xml(
        AwsError(BAD_REQUEST, text), "r", "http://queue.amazonaws.com/doc/2012-11-05/"
    )

    assert ET.fromstring(encoded) is not None


@given(
    ANYTHING,
    st.sampled_from(
        [b"application/json", b"application/msgpack", b"application/x-ndjson", b"", b"a/b"]
    ),
)
def test_native_bodies_decode_or_raise_documented_error(payload, kind):
    modules = (messages, records, columnar_records, group_records)
    for route in (
        each_route
        for module in modules
        for each_route in module.fast_routes.routes
        if each_route.body
    ):
        assert route.body is not None
        only(
            route.body.decode, payload, {b"content-type": kind}, raises=(HttpError, MillstreamError)
        )


@given(ANYTHING)
def test_native_queries_decode_or_raise_documented_error(query_string):
    modules = (messages, records, columnar_records, group_records)
    for route in (
        each_route
        for module in modules
        for each_route in module.fast_routes.routes
        if each_route.query
    ):
        only(read_query, query_string, route.query, raises=(MillstreamError,))


@given(
    HEADERS
    | st.dictionaries(
        st.sampled_from(
            [
                b"idempotency-key",
                b"content-type",
                b"traceparent",
                b"millstream-header-a",
                b"millstream-delay",
            ]
        ),
        ANYTHING,
    )
)
def test_headers_decode_or_raise_documented_error(headers):
    for read in (
        fields.headers_from_http,
        fields.content_type_from_http,
        fields.trace_headers,
        fields.idempotency_key,
        claimed_id,
    ):
        only(read, headers, raises=(MillstreamError, HttpError))
    only(fields.http_number, headers, "millstream-delay", raises=(MillstreamError, HttpError))


@given(PLAIN, TEXT)
def test_filter_pointer_never_raises(value, pointer):
    only(at_pointer, value, pointer, raises=())


@given(st.text("*?[]!ab-\\", max_size=12), TEXT)
def test_policy_covers_its_own_grants_with_any_glob(glob, name):
    policy = Policy((Grant(Effect.ALLOW, ("queue:*", glob), (glob,)),))

    assert policy.covers(policy.grants)


@pytest.mark.parametrize("depth", [10, 1_000, 100_000])
def test_deep_nesting_is_rejected(depth):
    nested = b"[" * depth
    only(JSON_WIRE.decode, b'{"type":"publish","messages":' + nested, raises=(BadFrame, Malformed))
    only(cbor.loads, b"\x81" * depth, raises=(cbor.MalformedCbor,))
    only(MSGPACK_WIRE.decode, b"\x91" * depth, raises=(BadFrame, Malformed))


def _fits(frame: Any) -> bool:
    try:
        msgspec.msgpack.encode(frame)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True
