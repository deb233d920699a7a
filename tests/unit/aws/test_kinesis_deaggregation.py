"""Deaggregation of records that the Kinesis Producer Library aggregated."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.aws.kinesis.records.deaggregation import MAGIC, RECORDS_MAX, parts_of


def varint(number: int) -> bytes:
    packed = b""
    while number > 0x7F:
        packed += bytes([number & 0x7F | 0x80])
        number >>= 7
    return packed + bytes([number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(keys: list[str], records: list[tuple[int, bytes]], extra: bytes = b"") -> bytes:
    packed = b"".join(field(1, key.encode()) for key in keys) + field(2, b"123")
    for key, data in records:
        tag = field(4, field(1, b"name") + field(2, b"value"))
        packed += field(3, field(1, key) + field(2, 0) + field(3, data) + tag)
    return packed + extra


def aggregate(packed: bytes) -> bytes:
    return MAGIC + packed + hashlib.md5(packed).digest()


KEYS = st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5)


@given(KEYS, st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=300)), max_size=30))
def test_aggregate_is_unpacked_in_order(keys, records):
    records = [(key % len(keys), data) for key, data in records]

    assert parts_of(aggregate(message(keys, records))) == [
        (keys[key], data) for key, data in records
    ]


def test_unknown_fields_are_skipped():
    unknown = field(9, 5) + varint(10 << 3 | 1) + bytes(8) + varint(11 << 3 | 5) + bytes(4)

    assert parts_of(aggregate(message(["k"], [(0, b"x")], unknown))) == [("k", b"x")]


@pytest.mark.parametrize(
    "packed",
    [
        message(["k"], [(1, b"x")]),  # a missing key
        message(["k" * 257], [(0, b"x")]),
        message([""], [(0, b"x")]),
        field(1, b"\xff") + field(3, field(1, 0) + field(3, b"x")),
        field(1, b"k") + field(3, field(1, 0)),  # no data
        field(1, b"k") + field(3, field(3, b"x")),  # no key
        field(1, b"k") + b"\x1a\x7f",  # truncated
        b"\xff" * 12,
        b"\x0b",  # a group
    ],
)
def test_malformed_aggregate_is_an_ordinary_record(packed):
    assert parts_of(aggregate(packed)) is None


def test_aggregate_with_wrong_digest_is_an_ordinary_record():
    whole = aggregate(message(["k"], [(0, b"x")]))

    assert parts_of(whole[:-1] + b"\x00") is None or whole[-1] == 0
    assert parts_of(whole[1:]) is None
    assert parts_of(MAGIC) is None


def test_aggregate_with_too_many_records_is_not_unpacked():
    many = [(0, b"")] * (RECORDS_MAX + 1)

    assert parts_of(aggregate(message(["k"], many))) is None
    assert parts_of(aggregate(message(["k"], many[:-1]))) is not None


@given(st.binary(max_size=200))
def test_arbitrary_bytes_with_valid_digest_raise_no_error(packed):
    parts_of(aggregate(packed))
