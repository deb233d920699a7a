"""Filter of records in a query string."""

from urllib.parse import urlencode

import pytest

from api.http.query import RecordTerms, read_query
from storage.domain.errors import MatchInvalid
from storage.domain.streams.record_filter import Filter


def filter_of(*pairs: tuple[str, str]) -> Filter:
    terms: RecordTerms = read_query(urlencode(pairs).encode(), RecordTerms)
    return terms.record_filter()


MATCHES = [
    ([("subject", "a.*")], {"subject": ["a.*"]}),
    ([("subject", "a.*"), ("subject", "b")], {"subject": ["a.*", "b"]}),
    ([("match", '{"where": "n = 1"}')], {"where": "n = 1"}),
    ([("subject", "a"), ("match", "{}")], {"subject": ["a"]}),
    ([("subject", "a"), ("match", "null")], {"subject": ["a"]}),
    ([("subject", "a"), ("match", '{"where": "n"}')], [{"where": "n", "subject": ["a"]}]),
    (
        [("subject", "a"), ("match", '[{"where": "n"}, {"filter": {"key": ["k"]}}]')],
        [{"where": "n", "subject": ["a"]}, {"filter": {"key": ["k"]}, "subject": ["a"]}],
    ),
]


@pytest.mark.parametrize(("pairs", "match"), MATCHES)
def test_subjects_and_match_are_one_match(pairs, match):
    assert filter_of(*pairs) == Filter(match=match)


FAULTS = [
    ([("subject", "a b")], "/subject/0"),
    ([("subject", "a"), ("subject", ">.a")], "/subject/1"),
    ([("match", "{")], "/match"),
    ([("match", "order.*")], "/match"),
    ([("match", "5")], "/match"),
    ([("match", '{"where": "("}')], "/match/where"),
    ([("match", '[{}, {"filter": []}]')], "/match/1/filter"),
    ([("subject", "a"), ("match", '{"filter": []}')], "/match/filter"),
    ([("subject", "a"), ("match", '[{}, {"subject": "b"}]')], "/subject"),
]


@pytest.mark.parametrize(("pairs", "pointer"), FAULTS)
def test_invalid_terms_are_refused_with_pointer(pairs, pointer):
    with pytest.raises(MatchInvalid) as refused:
        filter_of(*pairs)

    assert refused.value.faults[0].pointer == pointer


def test_read_without_terms_selects_all():
    assert filter_of().takes_all
