"""Codecs of the Kinesis endpoint: CBOR, event streams and constraints, without a server."""

from contextlib import suppress
from typing import Annotated, Any

import cbor2
import msgspec
import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from api.aws.protocol.codecs import cbor
from api.aws.protocol.codecs.event_stream import EventStream, event, exception
from api.aws.protocol.constraints import REQUIRED, bounds, check
from api.aws.protocol.errors import BAD_REQUEST, AwsError


class Told(msgspec.Struct):
    at: float
    data: bytes
    some: list["Told"] = []


class TestCbor:
    def test_timestamp_is_integer_milliseconds_or_float_seconds(self):
        tagged = {"a": cbor2.CBORTag(1, 1_500_000_000_123), "b": cbor2.CBORTag(1, 1_500_000_000.5)}

        assert cbor.loads(cbor2.dumps(tagged)) == {"a": 1_500_000_000.123, "b": 1_500_000_000.5}

    def test_indefinite_lengths_are_decoded(self):
        assert cbor.loads(b"\xbf\x61a\x5f\x41x\x41y\xff\x61b\x9f\x01\xff\xff") == {
            "a": b"xy",
            "b": [1],
        }

    @pytest.mark.parametrize(
        "encoded",
        [
            b"",
            b"\xff",
            b"\x81" * 20,
            b"\x9f" * 5_000,
            b"\xa1\x01\x02",
            b"\xa1\x61a\xc2\x41\x01",  # a big number
            b"\xa1\x61a\xd8\x23\x61x",  # a regular expression
            b"\xa1\x61a\xc1\x61x",  # a time that is text
            b"\xa1\x61a\xc1\xf5",
            b"\xa1\x61a\xd9\x27\x0f\x01",  # an unknown tag
            b"\x5b\x7f" + b"\xff" * 7,  # announces eight exabytes
            b"\x61\xff",
        ],
    )
    def test_unsupported_cbor_is_malformed(self, encoded):
        with pytest.raises(cbor.MalformedCbor):
            cbor.loads(encoded)

    @given(st.binary(max_size=200))
    def test_arbitrary_bytes_decode_or_are_malformed(self, encoded):
        with suppress(cbor.MalformedCbor):
            cbor.loads(encoded)

    def test_response_encodes_bytes_and_timestamps(self):
        told = Told(1_500_000_000.123, b"\x00\xff", [Told(1.5, b"")])

        assert cbor2.loads(
            cbor.dumps(told, frozenset({"at"})), semantic_decoders={1: lambda value, _: value}
        ) == {
            "at": 1_500_000_000_123,
            "data": b"\x00\xff",
            "some": [{"at": 1_500, "data": b"", "some": []}],
        }


def read(encoded: bytes) -> list[Any]:
    """Decode messages with botocore, which verifies both checksums."""
    buffer = EventStreamBuffer()
    buffer.add_data(encoded)
    return list(buffer)


class TestEventStream:
    @given(st.binary(max_size=2_000))
    def test_botocore_decodes_event(self, payload):
        [message] = read(event("SomeEvent", "application/json", payload))

        assert message.payload == payload
        assert message.headers == {
            ":message-type": "event",
            ":event-type": "SomeEvent",
            ":content-type": "application/json",
        }

    def test_botocore_decodes_exception(self):
        [message] = read(exception("ResourceInUseException", "application/json", b"{}"))

        assert message.headers[":message-type"] == "exception"
        assert message.headers[":exception-type"] == "ResourceInUseException"

    @pytest.mark.parametrize("error", [AwsError(BAD_REQUEST, "no more"), RuntimeError("a bug")])
    async def test_stream_starts_with_response_and_ends_with_error(self, error):
        closed = []

        async def events():
            try:
                yield Told(1.0, b"x")
                raise error
            finally:
                closed.append(True)

        stream = EventStream("Told", events())
        pieces = [
            piece
            async for piece in stream.encoded(
                "application/json", msgspec.json.encode, lambda error: (type(error).__name__, b"{}")
            )
        ]

        first, second, third = [read(piece)[0] for piece in pieces]
        assert (first.headers[":event-type"], first.payload) == ("initial-response", b"{}")
        assert second.headers[":event-type"] == "Told"
        assert third.headers[":exception-type"] == type(error).__name__
        assert closed == [True]


class Arn(msgspec.Struct, rename="pascal"):
    arn: Annotated[
        str, bounds(1, 2048, r"arn:aws.*:kinesis:.*:\d{12}:.*(stream|channel|queue)/\S+")
    ]


class Inner(msgspec.Struct, rename="pascal"):
    size: Annotated[int | None, bounds(1, 5), REQUIRED] = None


class Asked(msgspec.Struct, rename="pascal"):
    stream_name: Annotated[str | None, bounds(1, 3, "[a-z]+"), REQUIRED] = None
    kind: Annotated[str | None, bounds(choices=("A", "B"))] = None
    tags: Annotated[
        dict[Annotated[str, bounds(1, 2)], Annotated[str, bounds(0, 2)]] | None, bounds(1, 2)
    ] = None
    words: Annotated[list[Annotated[str, bounds(1, 2)]] | None, bounds(1, 2)] = None
    inner: list[Inner] | None = None
    data: Annotated[bytes | None, bounds(0, 2)] = None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(), "1 validation error detected: Value null at 'streamName' failed to satisfy constraint: Member must not be null"),
        (
            Asked(""),
            "2 validation errors detected: Value '' at 'streamName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-z]+; Value '' at 'streamName' failed to satisfy "
            "constraint: Member must have length greater than or equal to 1",
        ),
        (
            Asked("a", kind="C"),
            "1 validation error detected: Value 'C' at 'kind' failed to satisfy constraint: Member must satisfy enum value set: [A, B]",
        ),
        (
            Asked("a", inner=[Inner(2), Inner(6)]),
            "1 validation error detected: Value '6' at 'inner.2.member.size' failed to satisfy constraint: "
            "Member must have value less than or equal to 5",
        ),
        (
            Asked("a", words=["abc"]),
            "1 validation error detected: Value '[abc]' at 'words' failed to satisfy constraint: Member must satisfy "
            "constraint: [Member must have length less than or equal to 2, Member must have length greater than or equal to 1]",
        ),
        (
            Asked("a", tags={"abc": "x"}),
            "1 validation error detected: Value '{abc=x}' at 'tags' failed to satisfy constraint: Map keys must satisfy "
            "constraint: [Member must have length less than or equal to 2, Member must have length greater than or equal to 1]",
        ),
        (
            Asked("a", data=b"xyz"),
            "1 validation error detected: Value 'java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]' at 'data' failed to satisfy "
            "constraint: Member must have length less than or equal to 2",
        ),
    ],
)  # fmt: skip
def test_unmet_constraints_are_reported_in_aws_wording(asked, words):
    with pytest.raises(AwsError) as refused:
        check(asked, BAD_REQUEST)

    assert refused.value.message == words


def test_valid_request_passes():
    check(Asked("abc", "A", {"a": ""}, ["a"], [Inner(1)], b""), BAD_REQUEST)


def test_invalid_arn_is_rejected_without_backtracking():
    """The model's pattern tries all ways to place three colons in 2,000 characters."""
    arn = "arn:aws" + ":kinesis:" * 70 + ":000000000000:" * 50 + "stream/" * 40 + " "
    new_arn = Arn(arn[:2_048])

    with pytest.raises(AwsError) as refused:
        check(new_arn, BAD_REQUEST)

    assert "regular expression" in refused.value.message


def test_oversized_text_is_not_matched_against_pattern():
    with pytest.raises(AwsError) as refused:
        check(Arn("arn:aws" * 100_000), BAD_REQUEST)

    assert "regular expression" not in refused.value.message


def test_number_of_reported_faults_is_limited():
    with pytest.raises(AwsError) as refused:
        check(Asked("a", inner=[Inner()] * 100), BAD_REQUEST)

    assert refused.value.message.startswith("10 validation errors detected: ")
