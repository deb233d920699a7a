"""Batch v1, byte for byte and there and back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.log.record_batch import (
    Record,
    decode_batch,
    decode_batches,
    decode_one,
    encode_batch,
)

HEADERS = st.lists(
    st.tuples(st.text(max_size=5), st.sampled_from(["", "String"]), st.binary(max_size=5)),
    max_size=3,
).map(tuple)
RECORDS = st.builds(
    Record,
    data=st.binary(max_size=20),
    key=st.text(max_size=5),
    headers=HEADERS,
    event_time_ms=st.none() | st.integers(0, 2**53),
)


@given(st.lists(RECORDS, min_size=1, max_size=10))
def test_records_come_back_as_they_went_in(records):
    assert decode_batch(encode_batch(records)) == records


@given(RECORDS)
def test_a_batch_of_one_reads_as_one(record):
    assert decode_one(encode_batch([record])) == record


def test_the_layout_is_what_the_page_says():
    encoded = encode_batch([Record(b"ab", "k"), Record(b"c")])

    assert msgspec.msgpack.decode(encoded) == [1, b"abc", [2, 3], ["k", ""], None, None]


def test_an_entry_of_several_batches_is_read_in_order():
    batches = [encode_batch([Record(b"1"), Record(b"2")]), encode_batch([Record(b"3")])]

    assert [record.data for record in decode_batches(batches)] == [b"1", b"2", b"3"]


def test_a_column_that_comes_later_is_ignored():
    later = msgspec.msgpack.encode([1, b"a", [1], None, None, None, ["unknown"]])

    assert decode_batch(later) == [Record(b"a")]


def test_a_missing_column_reads_as_nil():
    assert decode_batch(msgspec.msgpack.encode([1, b"a", [1]])) == [Record(b"a")]


def test_another_version_is_refused():
    with pytest.raises(ValueError, match="version 2"):
        decode_batch(msgspec.msgpack.encode([2, b"", []]))


def test_the_size_counts_body_key_and_headers():
    record = Record(b"body", "clé", (("name", "", b"value"),))

    assert record.size_bytes == 4 + 4 + 4 + 5
