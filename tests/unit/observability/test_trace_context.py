"""Trace contexts: W3C and AWS formats, and precedence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.aws.sqs.messages.traces import from_traceparent, to_traceparent
from api.observability.tracing import RECEIVE, SEND, SETTLE, verb_of
from storage.domain.access.permissions import Action
from storage.domain.trace_context import context_of, is_context, noted, parts_of, with_noted

AMAZON = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
W3C = b"00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
OTHER = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

hexes = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
traces = st.integers(1, 2**128 - 1).map(lambda number: f"{number:032x}")


def test_aws_and_w3c_formats_convert_both_ways():
    assert to_traceparent(AMAZON) == W3C
    assert from_traceparent(W3C) == AMAZON


@given(traces, hexes, st.booleans())
def test_sampled_flag_round_trips(trace: str, span: str, sampled: bool):
    context = f"00-{trace}-{span}-{'01' if sampled else '00'}".encode()

    assert to_traceparent(from_traceparent(context)) == context


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        "Root=1-5759e988-bd862e3fe1be46a994272793",
        "Root=1-5759e988-bd862e3fe1be46a9;Parent=53995c3f42cd8ad8",
        "Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=0000000000000000",
        "Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
    ],
)
def test_header_without_trace_and_span_is_ignored(header: str):
    assert to_traceparent(header) == b""


@given(st.text(max_size=200))
def test_arbitrary_aws_header_yields_valid_context_or_none(text: str):
    made = to_traceparent(text)

    assert made == b"" or is_context(made)


def test_extra_fields_and_order_are_ignored():
    header = "Self=1-1-1; Sampled=?;Parent=53995c3f42cd8ad8;Root=1-5759e988-bd862e3fe1be46a994272793;Mine=a=b"

    assert to_traceparent(header) == W3C[:-2] + b"00"


@given(st.binary(max_size=80))
def test_context_is_valid_exactly_if_it_can_be_parsed(value: bytes):
    assert is_context(value) == (parts_of(value) is not None)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"ff" + W3C[2:],
        b"00-" + b"0" * 32 + b"-53995c3f42cd8ad8-01",
        W3C.upper(),
        W3C + b"\n",
        W3C + b"-1",
    ],
)
def test_invalid_w3c_context_is_rejected(value: bytes):
    assert not is_context(value)


def test_context_of_message_precedes_context_of_request():
    own = (("traceparent", "", OTHER),)

    assert context_of(own, (noted(W3C),)) == OTHER
    assert context_of((), (noted(W3C),)) == W3C
    assert with_noted(own, (noted(W3C),)) == own
    assert with_noted((), (noted(W3C),)) == (("traceparent", "", W3C),)


def test_invalid_context_of_message_is_kept():
    own = (("traceparent", "", b"mine"),)

    assert context_of(own, (noted(W3C),)) == b""
    assert with_noted(own, (noted(W3C),)) == own


@pytest.mark.parametrize(
    ("action", "operation", "verb"),
    [
        (Action.QUEUE_SEND, "SendMessageBatch", SEND),
        (Action.STREAM_PUT, "append_records", SEND),
        (Action.QUEUE_RECEIVE, "receive_messages", RECEIVE),
        (Action.QUEUE_RECEIVE, "ReceiveMessage", RECEIVE),
        (Action.QUEUE_RECEIVE, "settle_messages", SETTLE),
        (Action.QUEUE_RECEIVE, "DeleteMessageBatch", SETTLE),
        (Action.QUEUE_RECEIVE, "ChangeMessageVisibility", SETTLE),
        (Action.STREAM_READ, "GetRecords", RECEIVE),
        (Action.GROUP_COMMIT, "fetch_records", RECEIVE),
        (Action.GROUP_COMMIT, "commit_offsets", SETTLE),
        (Action.GROUP_COMMIT, "send_heartbeat", ""),
        (Action.QUEUE_PEEK, "browse_messages", ""),
    ],
)
def test_operations_map_to_messaging_verbs(action, operation, verb):
    assert verb_of(action, operation) == verb
