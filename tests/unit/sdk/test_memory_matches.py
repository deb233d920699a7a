"""Matches of the in-memory service: they agree with those of the service."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from millstream_client.testing.problems import Problem
from millstream_client.testing.topics.matches import check_match, failed_paths, matches
from millstream_client.testing.topics.subjects import check_pattern, check_subject, matches_subject
from storage.domain.errors import MatchInvalid, ValidationFailed
from storage.domain.filters import subjects
from storage.domain.filters.documents import Document
from storage.domain.filters.matches import CompiledMatch, parse_matches

WORDS = st.sampled_from(["a", "b", "*", "#", ">", "a*", "", " "])
TEXTS = st.lists(WORDS, max_size=5).map(".".join)
SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 2, "1", "ab", "AB", "b", ""])
FIELDS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=3),
    lambda values: st.dictionaries(FIELDS, values, max_size=3),
    max_leaves=6,
)
BOUNDS = st.integers(0, 3)
TERMS = st.one_of(
    SCALARS,
    st.builds(
        lambda operator, text: {operator: text},
        st.sampled_from(["prefix", "suffix", "equals-ignore-case"]),
        st.sampled_from(["a", "b", "ab"]),
    ),
    st.lists(st.sampled_from(["ab", "b"]), min_size=1).map(lambda texts: {"anything-but": texts}),
    st.sampled_from([1, 2, "b"]).map(lambda value: {"anything-but": value}),
    st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), BOUNDS).map(
        lambda bound: {"numeric": [*bound]}
    ),
    st.tuples(st.sampled_from([">", ">="]), st.just(0), st.sampled_from(["<", "<="]), BOUNDS).map(
        lambda bounds: {"numeric": [*bounds[:3], bounds[3] + 1]}
    ),
    st.booleans().map(lambda exists: {"exists": exists}),
)
PATTERNS = st.recursive(
    st.lists(TERMS, min_size=1, max_size=3),
    lambda patterns: st.dictionaries(FIELDS, patterns, min_size=1, max_size=2),
    max_leaves=4,
).filter(lambda pattern: isinstance(pattern, dict))


ALTERNATIVES = st.fixed_dictionaries(
    {"subject": st.sampled_from(["a.*", "#", "b", "*.b.>"])},
    optional={"filter": PATTERNS.map(lambda pattern: {"body": pattern})},
)


def is_valid(check, *arguments):
    try:
        check(*arguments)
    except (MatchInvalid, ValidationFailed, Problem):
        return False
    return True


@given(TEXTS, TEXTS)
def test_subjects_match_as_in_the_service(pattern, subject):
    is_pattern = is_valid(subjects.check_subject_pattern, pattern)
    is_subject = is_valid(subjects.check_subject, subject)

    assert is_valid(check_pattern, pattern, "/subject") == is_pattern
    assert is_valid(check_subject, subject) == is_subject
    if is_pattern and is_subject:
        assert matches_subject(pattern, subject) == subjects.matches_subject(pattern, subject)


@given(PATTERNS, VALUES)
def test_filters_match_as_in_the_service(pattern, body):
    match = {"filter": {"body": pattern}}
    encoded = msgspec.json.encode(body)
    server = Document("", "", (), encoded, {})
    document = {"subject": "", "headers": {}, "body": body}

    check_match(match)

    compiled = CompiledMatch(parse_matches(match))
    assert matches(match, document) == compiled.matches(server)


@given(st.lists(ALTERNATIVES, min_size=1, max_size=3), TEXTS, VALUES)
def test_failed_paths_are_those_of_the_service(match, subject, body):
    assume(is_valid(subjects.check_subject, subject))
    server = Document(subject, "", (), msgspec.json.encode(body), {})
    document = {"subject": subject, "headers": {}, "body": body}

    expected = CompiledMatch(parse_matches(match)).explain(server)

    assert failed_paths(match, document) == {condition.path for condition in expected}


@pytest.mark.parametrize(
    "match",
    [
        {"where": "body.total > 1"},
        {"filter": {"$or": [{"key": ["a"]}, {"key": ["b"]}]}},
        {"filter": {"body": {"a.b": [1]}}},
        {"filter": {"body": {"a": [{"wildcard": "a*"}]}}},
        {"filter": {"body": {"a": [{"cidr": "10.0.0.0/8"}]}}},
        {"filter": {"body": {"a": [{"anything-but": {"prefix": "a"}}]}}},
        {"filter": {"body": {"a": [{"prefix": {"equals-ignore-case": "a"}}]}}},
    ],
)
def test_rest_of_the_grammar_is_not_in_memory(match):
    parse_matches(match)  # it is valid in the service

    with pytest.raises(Problem) as refusal:
        check_match(match)

    assert refusal.value.code == "not_in_memory"


def test_objects_in_arrays_are_not_in_memory():
    match = {"filter": {"body": {"items": {"id": [1]}}}}

    with pytest.raises(Problem) as refusal:
        matches(match, {"subject": "", "body": {"items": [{"id": 1}]}})

    assert refusal.value.code == "not_in_memory"
