"""Records that the Kinesis Producer Library packed."""

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
def test_what_was_packed_is_unpacked_in_order(keys, records):
    records = [(key % len(keys), data) for key, data in records]

    assert parts_of(aggregate(message(keys, records))) == [
        (keys[key], data) for key, data in records
    ]


def test_fields_that_came_later_are_passed_over():
    unknown = field(9, 5) + varint(10 << 3 | 1) + bytes(8) + varint(11 << 3 | 5) + bytes(4)

    assert parts_of(aggregate(message(["k"], [(0, b"x")], unknown))) == [("k", b"x")]


@pytest.mark.parametrize(
    "packed",
    [
        message(["k"], [(1, b"x")]),  # a key that is not there
        message(["k" * 257], [(0, b"x")]),
        message([""], [(0, b"x")]),
        field(1, b"\xff") + field(3, field(1, 0) + field(3, b"x")),
        field(1, b"k") + field(3, field(1, 0)),  # no data
        field(1, b"k") + field(3, field(3, b"x")),  # no key
        field(1, b"k") + b"\x1a\x7f",  # ends in its middle
        b"\xff" * 12,
        b"\x0b",  # a group
    ],
)
def test_what_is_no_aggregate_is_a_record_of_its_own(packed):
    assert parts_of(aggregate(packed)) is None


def test_a_wrong_digest_is_no_aggregate():
    whole = aggregate(message(["k"], [(0, b"x")]))

    assert parts_of(whole[:-1] + b"\x00") is None or whole[-1] == 0
    assert parts_of(whole[1:]) is None
    assert parts_of(MAGIC) is None


def test_more_records_than_anybody_packs_are_left_alone():
    many = [(0, b"")] * (RECORDS_MAX + 1)

    assert parts_of(aggregate(message(["k"], many))) is None
    assert parts_of(aggregate(message(["k"], many[:-1]))) is not None


@given(st.binary(max_size=200))
def test_garbage_with_the_right_digest_does_no_harm(packed):
    parts_of(aggregate(packed))
