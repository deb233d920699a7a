import pytest

from storage.domain.errors import MatchInvalid
from storage.domain.filters.documents import Document
from storage.domain.filters.match_index import MatchIndex
from storage.domain.filters.matches import CompiledMatch, FailedCondition, parse_matches


def document(retries: str) -> Document:
    return Document("a.b", "k", (("retries", "Number", retries.encode()),), b"{}", {})


@pytest.mark.parametrize(
    ("value", "retries", "expected"),
    [
        ({"where": "retries < 3"}, "2", True),
        ({"where": "retries < 3"}, "3", False),
        ({"subject": "a.*", "where": "retries < 3"}, "2", True),
        ({"subject": "b.*", "where": "retries < 3"}, "2", False),
        ({"filter": {"key": ["k"]}, "where": "retries < 3"}, "2", True),
        ({"filter": {"key": ["k"]}, "where": "retries < 3"}, "4", False),
        ({"filter": {"key": [{"suffix": "k"}]}, "where": "retries < 3"}, "4", False),
        ([{"where": "retries < 3"}, {"where": "retries > 5"}], "6", True),
    ],
)
def test_condition_holds_beside_the_other_parts(value, retries, expected):
    compiled, index = CompiledMatch(parse_matches(value)), MatchIndex()
    index.add(1, compiled)

    assert compiled.matches(document(retries)) is expected
    assert (index.find(document(retries)) == [1]) is expected
    assert (compiled.explain(document(retries)) == []) is expected
    index.discard(1)
    assert index.is_empty


def test_condition_alone_is_scanned():
    assert CompiledMatch(parse_matches({"where": "retries < 3"})).cost == "scanned"


def test_explanation_names_the_values_of_a_condition():
    text = "retries < 3 AND region = 'eu'"
    compiled = CompiledMatch(parse_matches({"where": text}))

    assert compiled.explain(document("6")) == [
        FailedCondition(0, "headers.retries", text, [6]),
        FailedCondition(0, "headers.region", text, []),
    ]


def test_condition_is_refused_with_its_pointer():
    with pytest.raises(MatchInvalid) as raised:
        parse_matches([{"where": "retries <"}])

    assert [fault.pointer for fault in raised.value.faults] == ["/match/0/where"]
