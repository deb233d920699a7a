"""Filters of records."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import MatchInvalid
from storage.domain.log.json_body import at_pointer
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.record_filter import Condition, Filter, Sample, SampleBy, Selects
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.topic import NewPublication
from storage.streams.record_source import RecordSource


def at(data: bytes = b"", key: str = "", offset: int = 0, headers=()) -> LogRecord:
    return LogRecord(offset, 0, Record(data, key, headers))


def selects(filter_: Filter, stream: str = "clicks") -> Selects:
    return RecordSource(None, StreamName(stream), None, filter_).selects  # type: ignore[arg-type]  # reads nothing


def says(body: object, condition: Condition) -> bool:
    is_meant = selects(Filter(body=(condition,)))
    return is_meant(0, at(json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("", {"a": [1, {"b": 2}], "": 3, "x/y": 4, "m~n": 5}),
        ("/a/0", 1),
        ("/a/1/b", 2),
        ("/", 3),
        ("/x~1y", 4),
        ("/m~0n", 5),
    ],
)
def test_pointer_resolves_to_value(path, there):
    body = {"a": [1, {"b": 2}], "": 3, "x/y": 4, "m~n": 5}

    assert at_pointer(body, path) == there
    assert says(body, Condition(path=path, exists=True))


@pytest.mark.parametrize("path", ["/b", "/a/2", "/a/01", "/a/-1", "/a/b", "/a/0/x", "/a/٣"])
def test_unresolved_pointer_counts_as_missing(path):
    body = {"a": [1, {"b": 2}]}

    assert says(body, Condition(path=path, exists=False))
    assert not says(body, Condition(path=path, equals=None))


@pytest.mark.parametrize(
    ("value", "wanted", "same"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        (None, None, True),
        ([1, 2], [1, 2], True),
        ([1, True], [1, 1], False),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
    ],
)
def test_values_are_compared_with_json_equality(value, wanted, same):
    assert says({"x": value}, Condition(path="/x", equals=wanted)) is same


@pytest.mark.parametrize("body", [b"", b"not json", b"\xff\xfe", b'{"a": '])
def test_body_that_is_not_json_has_no_fields(body):
    for path in ("", "/a"):
        assert selects(Filter(body=(Condition(path=path, exists=False),)))(0, at(body))
        assert not selects(Filter(body=(Condition(path=path, exists=True),)))(0, at(body))


def test_body_nested_too_deeply_has_no_fields():
    is_meant = selects(Filter(body=(Condition(path="/a", exists=True),)))

    assert not is_meant(0, at(b"[" * 100_000 + b"]" * 100_000))


def test_all_conditions_must_match():
    is_meant = selects(
        Filter(
            keys=("a", "b"),
            headers={"kind": "x"},
            body=(Condition(path="/n", equals=1), Condition(path="/m", exists=False)),
        )
    )
    headers = (("kind", "", b"x"),)

    assert is_meant(0, at(b'{"n": 1}', "a", headers=headers))
    assert not is_meant(0, at(b'{"n": 1}', "c", headers=headers))
    assert not is_meant(0, at(b'{"n": 1}', "a"))
    assert not is_meant(0, at(b'{"n": 1, "m": 1}', "a", headers=headers))


def test_empty_filter_selects_all():
    assert Filter().takes_all
    assert selects(Filter())(0, at())


@given(fraction=st.floats(0.01, 0.99))
def test_sampling_is_deterministic_and_proportional(fraction):
    once, again = (selects(Filter(sample=Sample(fraction))) for _ in range(2))
    records = [at(offset=offset) for offset in range(400)]

    drawn = [once(3, record) for record in records]

    assert drawn == [again(3, record) for record in records]
    assert abs(sum(drawn) / 400 - fraction) < 0.15


def test_sampling_by_key_selects_complete_keys():
    is_meant = selects(Filter(sample=Sample(0.5, SampleBy.KEY)))

    for key in map(str, range(20)):
        assert (
            len({is_meant(shard, at(key=key, offset=n)) for shard in (0, 1) for n in (1, 9)}) == 1
        )


@pytest.mark.parametrize(
    "filter_",
    [
        Filter(body=(Condition(path="/a"),)),
        Filter(body=(Condition(path="/a", equals=1, exists=True),)),
        Filter(body=(Condition(path="a", exists=True),)),
        Filter(sample=Sample(0.0)),
        Filter(sample=Sample(1.0)),
        Filter(keys=("k",) * 1_001),
    ],
)
def test_invalid_filter_is_rejected(filter_):
    assert filter_.faults()


@pytest.mark.parametrize("path", ["a", "/a~2", "/~", "/a/b~", "~0"])
def test_malformed_json_pointer_is_rejected(path):
    [fault] = Filter(body=(Condition(path=path, exists=True),)).faults()

    assert fault.pointer == "/filter/body/0/path"


@pytest.mark.parametrize("path", ["", "/", "/a~0b/c~1d", "/a//b", "/é"])
def test_json_pointer_is_accepted(path):
    assert Filter(body=(Condition(path=path, exists=True),)).faults() == []


ORDER = NewPublication(
    b'{"total": 250}', "order.created.eu", "c7", (("tenant", "", b"t7"), ("n", "Number", b"3"))
)
MATCHES = [
    ({}, True),
    ({"subject": "order.#"}, True),
    ({"subject": ["refund.*", "order.*.eu"]}, True),
    ({"subject": "refund.#"}, False),
    ({"filter": {"key": ["c7"], "headers": {"tenant": ["t7"], "n": [3]}}}, True),
    ({"filter": {"body": {"total": [{"numeric": [">", 250]}]}}}, False),
    ({"where": "body.total >= 250 AND headers.n = 3"}, True),
    ({"filter": {"headers": {":routes": [{"exists": True}]}}}, False),
    ({"where": "size = 30"}, True),
    ({"where": "meta.topic = 'orders'"}, True),
    ([{"subject": "refund.#"}, {"where": "body.total = 250"}], True),
    ([{"subject": "order.#", "where": "body.total = 1"}, {"filter": {"key": [""]}}], False),
]


@pytest.mark.parametrize(("match", "selected"), MATCHES)
def test_match_selects_published_record(match, selected):
    is_meant = selects(Filter(match=match), "topic:orders")

    assert is_meant(0, LogRecord(0, 0, ORDER.record([1, 2]))) is selected


def test_match_reads_record_of_other_stream_without_subject():
    assert selects(Filter(match={"subject": "#"}))(0, at(b"x", "k"))
    assert not selects(Filter(match={"subject": "*"}))(0, at(b"x", "k"))
    assert not selects(Filter(match={"where": "meta.topic IS NOT NULL"}))(0, at(b"x", "k"))


def test_match_is_one_condition_among_others():
    is_meant = selects(Filter(keys=("a",), match={"where": "body.n > 1"}))

    assert is_meant(0, at(b'{"n": 2}', "a"))
    assert not is_meant(0, at(b'{"n": 2}', "b"))
    assert not is_meant(0, at(b'{"n": 1}', "a"))


@pytest.mark.parametrize("match", [None, {}, msgspec.UNSET])
def test_match_without_conditions_selects_all(match):
    assert Filter(match=match).takes_all


def test_filter_without_match_is_encoded_as_before():
    """A worker of the version before refuses a filter with a match, and reads every other one."""
    assert b"match" not in msgspec.json.encode(Filter(keys=("a",)))
    encoded = msgspec.json.encode(Filter(match={"subject": "a"}))
    assert msgspec.json.decode(encoded, type=Filter) == Filter(match={"subject": "a"})


def alternatives(count: int) -> dict[str, object]:
    return {"filter": {"$or": [{"key": [str(number)]} for number in range(count)]}}


FAULTS = [
    ("text", "/filter/match"),
    (0, "/filter/match"),
    ([], "/filter/match"),
    ({"subjects": "a"}, "/filter/match/subjects"),
    ({"subject": "order.*x"}, "/filter/match/subject"),
    ([{}, {"subject": ["a", "b..c"]}], "/filter/match/1/subject/1"),
    ({"filter": {"body": {"total": 5}}}, "/filter/match/filter/body/total"),
    ({"where": "total >"}, "/filter/match/where"),
    (alternatives(limits.READER_ALTERNATIVES_MAX + 1), "/filter/match"),
    ({**alternatives(50), "where": "a = 'x'".ljust(200)}, "/filter/match"),
    ([{"where": "a = 'x'".ljust(3_000)}] * 3, "/filter/match"),
]


@pytest.mark.parametrize(("match", "pointer"), FAULTS)
def test_invalid_match_is_refused_with_its_pointer(match, pointer):
    with pytest.raises(MatchInvalid) as refused:
        Filter(match=match).check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_match_may_have_alternatives_up_to_limit():
    Filter(match=alternatives(limits.READER_ALTERNATIVES_MAX)).check()
