"""Record batch format v1: byte layout and round trips."""

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
def test_records_round_trip(records):
    assert decode_batch(encode_batch(records)) == records


@given(RECORDS)
def test_batch_of_one_round_trips(record):
    assert decode_one(encode_batch([record])) == record


def test_layout_matches_documentation():
    encoded = encode_batch([Record(b"ab", "k"), Record(b"c")])

    assert msgspec.msgpack.decode(encoded) == [1, b"abc", [2, 3], ["k", ""], None, None]


def test_entry_of_several_batches_is_decoded_in_order():
    batches = [encode_batch([Record(b"1"), Record(b"2")]), encode_batch([Record(b"3")])]

    assert [record.data for record in decode_batches(batches)] == [b"1", b"2", b"3"]


def test_unknown_column_is_ignored():
    later = msgspec.msgpack.encode([1, b"a", [1], None, None, None, ["unknown"]])

    assert decode_batch(later) == [Record(b"a")]


def test_missing_column_decodes_as_nil():
    assert decode_batch(msgspec.msgpack.encode([1, b"a", [1]])) == [Record(b"a")]


def test_unknown_version_is_rejected():
    with pytest.raises(ValueError, match="version 2"):
        decode_batch(msgspec.msgpack.encode([2, b"", []]))


def test_size_counts_data_key_and_headers():
    record = Record(b"body", "clé", (("name", "", b"value"),))

    assert record.size_bytes == 4 + 4 + 4 + 5
