import pytest

from storage.domain import limits
from storage.domain.errors import ErrorCode, MatchInvalid
from storage.domain.filters.documents import Document
from storage.domain.filters.matches import (
    CompiledMatch,
    FailedCondition,
    Match,
    parse_matches,
)

DOCUMENT = Document(
    "order.created.eu",
    "c7",
    (("tenant", "", b"t7"),),
    b'{"total": 150, "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]}',
    {"topic": "orders"},
)


def compiled(value: object) -> CompiledMatch:
    return CompiledMatch(parse_matches(value))


@pytest.mark.parametrize("value", [None, {}])
def test_match_takes_all_without_conditions(value):
    assert parse_matches(value) == ()
    assert compiled(value).matches(DOCUMENT)
    assert compiled(value).explain(DOCUMENT) == []


def test_match_is_parsed_from_an_object_or_a_list():
    pattern = {"body": {"total": [1]}}

    assert parse_matches({"subject": "a.*"}) == (Match(subject=("a.*",)),)
    assert parse_matches([{"subject": ["a", "b"]}, {"filter": pattern}]) == (
        Match(subject=("a", "b")),
        Match(filter=pattern),
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"subject": "order.*.eu"}, True),
        ({"subject": ["x", "order.#"]}, True),
        ({"subject": "order.*"}, False),
        ({"subject": "order.#", "filter": {"headers": {"tenant": ["t7"]}}}, True),
        ({"subject": "order.#", "filter": {"headers": {"tenant": ["t8"]}}}, False),
        ({"subject": "x.#", "filter": {"headers": {"tenant": ["t7"]}}}, False),
        ([{"subject": "x"}, {"filter": {"key": ["c7"]}}], True),
        ([{"subject": "x"}, {"filter": {"key": ["c8"]}}], False),
        ([{"subject": "x"}, {}], True),
        ({"filter": {"meta": {"topic": ["orders"]}, "size": [{"numeric": [">", 10]}]}}, True),
        ({"subject": None, "filter": None, "where": None}, True),
    ],
)
def test_match_takes_a_document_if_all_parts_hold(value, expected):
    assert compiled(value).matches(DOCUMENT) is expected
    assert (compiled(value).explain(DOCUMENT) == []) is expected


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ([], [("/match", "Specify 1 to 100 matches")]),
        ([{}] * 101, [("/match", "Specify 1 to 100 matches")]),
        ("x", [("/match", "A match must be an object")]),
        ([{}, 5], [("/match/1", "A match must be an object")]),
        ({"filters": {}}, [("/match/filters", "Unknown field")]),
        ({"subject": 5}, [("/match/subject", "A subject pattern must be a string")]),
        ({"subject": []}, [("/match/subject", "Specify 1 to 100 patterns")]),
        ({"subject": ["a", "b.>.c"]}, [("/match/subject/1", "'>' must be the last word")]),
        ({"filter": []}, [("/match/filter", "Filter is not an object")]),
        ({"where": 5}, [("/match/where", "A condition must be a string")]),
        (
            [{"filter": {"body": {"total": [{"numeric": [">", 2, "<", 1]}]}}}, {"subject": "a b"}],
            [
                ("/match/0/filter/body/total/0", "Bottom must be less than top"),
                ("/match/1/subject", "A subject must not contain whitespace or control characters"),
            ],
        ),
    ],
)
def test_match_is_refused_with_all_faults(value, faults):
    with pytest.raises(MatchInvalid) as raised:
        parse_matches(value)

    assert raised.value.code is ErrorCode.MATCH_INVALID
    assert [(fault.pointer, fault.detail) for fault in raised.value.faults] == faults


@pytest.mark.parametrize(
    ("value", "cost"),
    [
        (None, "indexed"),
        ({"subject": "a"}, "indexed"),
        ({"subject": "#"}, "indexed"),
        ({"filter": {"key": ["a"]}}, "indexed"),
        ({"filter": {"key": [{"prefix": "a"}]}}, "indexed"),
        ({"filter": {"size": [{"numeric": [">", 1]}]}}, "indexed"),
        ({"filter": {"key": [{"suffix": "a"}]}}, "scanned"),
        ({"filter": {"key": ["a", {"exists": False}]}}, "scanned"),
        ({"subject": "a", "filter": {"key": [{"suffix": "a"}]}}, "indexed"),
        ({"subject": "#", "filter": {"key": [{"suffix": "a"}]}}, "scanned"),
        ([{"subject": "a"}, {"filter": {"key": [{"suffix": "a"}]}}], "scanned"),
    ],
)
def test_cost_is_scanned_if_asked_for_each_message(value, cost):
    assert compiled(value).cost == cost


def test_explanation_names_each_failed_condition():
    value = [
        {"subject": "x.*", "filter": {"body": {"total": [{"numeric": [">", 200]}]}, "key": ["c7"]}},
        {"filter": {"headers": {"region": ["eu"]}}},
    ]

    assert compiled(value).explain(DOCUMENT) == [
        FailedCondition(0, "subject", ["x.*"], ["order.created.eu"]),
        FailedCondition(0, "body.total", [{"numeric": [">", 200]}], [150]),
        FailedCondition(1, "headers.region", ["eu"], []),
    ]


def test_explanation_names_alternatives_of_or_once():
    value = {"filter": {"key": ["x"], "$or": [{"size": [1]}, {"body": {"total": [2]}}]}}

    assert {failed.path for failed in compiled(value).explain(DOCUMENT)} == {
        "key",
        "size",
        "body.total",
    }
    assert len(compiled(value).explain(DOCUMENT)) == 3


def test_explanation_names_fields_of_different_elements():
    value = {"filter": {"key": ["c7"], "body": {"items": {"sku": ["a"], "n": [2]}}}}

    assert compiled(value).explain(DOCUMENT) == [
        FailedCondition(0, "body.items.n", [2], [1, 2]),
        FailedCondition(0, "body.items.sku", ["a"], ["a", "b"]),
    ]


def test_matches_are_accepted_up_to_their_limit():
    assert len(parse_matches([{"subject": "a"}] * limits.MATCHES_MAX)) == limits.MATCHES_MAX
