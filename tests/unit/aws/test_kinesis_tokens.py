"""Tokens that a client brings back, and ARNs that it names things by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.aws.kinesis.arns import consumer_arn, read_arn, stream_arn
from api.aws.kinesis.tokens import ListToken, NotOurs, ShardIterator, seal, unseal

SECRET = b"s" * 32
POSITION = ShardIterator("default", "x" * 80, "00ff00ff00ff00ff", 2**31, 2**53, 1_700_000_000_000)


def test_an_iterator_comes_back_as_it_went():
    text = seal(POSITION, SECRET)

    assert unseal(text, ShardIterator, SECRET) == POSITION
    assert len(text) <= 512


@given(st.binary(min_size=1))
def test_no_token_looks_like_an_option_of_a_command_line(secret):
    """`aws kinesis get-records --shard-iterator -x…` is refused by the program itself."""
    listed = ListToken("shards", "default", "a", "b", "c", None, 0)

    for token in (POSITION, listed):
        assert seal(token, secret[:32])[0].isalnum()


@pytest.mark.parametrize("place", [0, 20, 40, -1])
def test_a_changed_token_is_refused(place):
    text = list(seal(POSITION, SECRET))
    text[place] = "A" if text[place] != "A" else "B"

    with pytest.raises(NotOurs):
        unseal("".join(text), ShardIterator, SECRET)


def test_a_token_of_another_deployment_or_kind_is_refused():
    listed = ListToken("shards", "default", "a", "b", "c", None, 0)

    with pytest.raises(NotOurs):
        unseal(seal(POSITION, b"t" * 32), ShardIterator, SECRET)
    with pytest.raises(NotOurs):
        unseal(seal(listed, SECRET), ShardIterator, SECRET)


@given(st.text(max_size=512))
def test_any_other_text_is_refused(text):
    with pytest.raises(NotOurs):
        unseal(text, ShardIterator, SECRET)


def test_arns_name_streams_and_their_consumers():
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
def test_other_arns_name_nothing_here(arn):
    assert read_arn(arn) is None
