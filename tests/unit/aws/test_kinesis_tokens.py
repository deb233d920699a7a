"""Sealed tokens (shard iterators, list tokens) and ARNs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.aws.kinesis.arns import consumer_arn, read_arn, stream_arn
from api.aws.kinesis.tokens import ListToken, NotOurs, ShardIterator, seal, unseal

SECRET = b"s" * 32
POSITION = ShardIterator("default", "x" * 80, "00ff00ff00ff00ff", 2**31, 2**53, 1_700_000_000_000)


def test_shard_iterator_round_trips():
    text = seal(POSITION, SECRET)

    assert unseal(text, ShardIterator, SECRET) == POSITION
    assert len(text) <= 512


@given(st.binary(min_size=1))
def test_token_does_not_start_with_dash(secret):
    """`aws kinesis get-records --shard-iterator -x…` is rejected by the AWS CLI itself."""
    listed = ListToken("shards", "default", "a", "b", "c", None, 0)

    for token in (POSITION, listed):
        assert seal(token, secret[:32])[0].isalnum()


@pytest.mark.parametrize("place", [0, 20, 40, -1])
def test_altered_token_is_rejected(place):
    text = list(seal(POSITION, SECRET))
    text[place] = "A" if text[place] != "A" else "B"

    with pytest.raises(NotOurs):
        unseal("".join(text), ShardIterator, SECRET)


def test_token_of_other_deployment_or_kind_is_rejected():
    listed = ListToken("shards", "default", "a", "b", "c", None, 0)

    with pytest.raises(NotOurs):
        unseal(seal(POSITION, b"t" * 32), ShardIterator, SECRET)
    with pytest.raises(NotOurs):
        unseal(seal(listed, SECRET), ShardIterator, SECRET)


@given(st.text(max_size=512))
def test_arbitrary_text_is_rejected(text):
    with pytest.raises(NotOurs):
        unseal(text, ShardIterator, SECRET)


def test_arns_of_stream_and_consumer_round_trip():
    stream = stream_arn("eu-west-1", "123456789012", "orders")
    consumer = consumer_arn(stream, "app", 1_700_000_000_999)

    assert stream == "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"
    assert consumer == f"{stream}/consumer/app:1700000000"
    named = read_arn(stream)
    assert named is not None
    assert (named.account, named.stream, named.is_consumer) == ("123456789012", "orders", False)
    named = read_arn(consumer)
    assert named is not None
    assert (named.stream, named.consumer, named.second) == ("orders", "app", 1_700_000_000)


@pytest.mark.parametrize(
    "arn", ["", "orders", "arn:aws:sqs:x:123456789012:orders", "arn:aws:kinesis:x:1:stream/y"]
)
def test_other_arns_are_not_recognised(arn):
    assert read_arn(arn) is None
