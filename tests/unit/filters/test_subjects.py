import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.filters.subjects import (
    SubjectTrie,
    check_subject,
    check_subject_pattern,
    matches_all_subjects,
    matches_subject,
)

CASES = [
    ("order.*", "order.created", True),
    ("order.*", "order", False),
    ("order.*", "order.a.b", False),
    ("order.#", "order", True),
    ("order.#", "order.a.b", True),
    ("#", "anything", True),
    ("#", "", True),
    ("#.error", "error", True),
    ("#.error", "a.b.error", True),
    ("#.error", "a.error.b", False),
    ("a.#.b", "a.b", True),
    ("a.#.b", "a.x.y.b", True),
    ("a.#.b", "a.x.y", False),
    ("order.cre*", "order.created", False),
    ("order.>", "order", False),
    ("order.>", "order.a", True),
    ("order.>", "order.a.b", True),
    (">", "", False),
    (">", "a", True),
    ("*", "", False),
    ("", "", True),
    ("", "a", False),
    ("order", "order", True),
    ("order", "Order", False),
    ("a+b.*", "a+b.c", True),
    ("a+b.*", "aab.c", False),
    ("a.*.#.b.*", "a.x.b.y", True),
    ("a.*.#.b.*", "a.x.b", False),
    ("#.*.#", "", False),
    ("#.*.#", "a", True),
    ("#.#.#.a", "a", True),
    ("*.#.*", "a", False),
    ("*.#.*", "a.b", True),
    ("#.a.#.a.#", "a", False),
    ("#.a.#.a.#", "x.a.y.a.z", True),
]


@pytest.mark.parametrize(("pattern", "subject", "expected"), CASES)
def test_subject_pattern_matches_by_words(pattern, subject, expected):
    trie: SubjectTrie[int] = SubjectTrie()
    trie.add(pattern, 1)

    assert matches_subject(pattern, subject) is expected
    assert bool(trie.find(subject)) is expected


@pytest.mark.parametrize("subject", ["", "a", "order.created.eu", "é.ü", "a-b_c/d:e", "x" * 255])
def test_subject_is_accepted(subject):
    check_subject(subject)
    check_subject_pattern(subject)


@pytest.mark.parametrize(
    "subject",
    [
        "a..b",
        ".a",
        "a.",
        ".",
        "a b",
        "a\n",
        "a\x00",
        "a\x85",
        "a\u2003b",
        "\ud800",
        "x" * 256,
        "é" * 128,
        ".".join("a" * 33),
    ],
)
def test_subject_is_refused(subject):
    with pytest.raises(ValidationFailed):
        check_subject(subject)
    with pytest.raises(ValidationFailed):
        check_subject_pattern(subject)


@pytest.mark.parametrize("subject", ["*", "a.#", ">", "a*", "a>b", "#a"])
def test_subject_is_refused_with_a_wildcard(subject):
    with pytest.raises(ValidationFailed) as raised:
        check_subject(subject, "/subject")

    assert raised.value.faults[0].pointer == "/subject"


@pytest.mark.parametrize("pattern", ["*", "#", ">", "a.*.#.b.>", "#.#.#.a"])
def test_subject_pattern_is_accepted(pattern):
    check_subject_pattern(pattern)


@pytest.mark.parametrize("pattern", ["a.>.b", ">.a", "order.cre*", "a#", "a.**", "a.>>"])
def test_subject_pattern_is_refused(pattern):
    with pytest.raises(ValidationFailed):
        check_subject_pattern(pattern)


def matches_recursively(pattern: list[str], subject: list[str]) -> bool:
    if not pattern:
        return not subject
    word, *rest = pattern
    if word == ">":
        return bool(subject)
    if word == "#":
        return matches_recursively(rest, subject) or (
            bool(subject) and matches_recursively(pattern, subject[1:])
        )
    return bool(subject) and word in ("*", subject[0]) and matches_recursively(rest, subject[1:])


def words_of(text: str) -> list[str]:
    return text.split(".") if text else []


subjects = st.lists(st.sampled_from("ab"), max_size=6).map(".".join)
patterns = st.builds(
    lambda words, last: ".".join([*words, *last]),
    st.lists(st.sampled_from(["a", "b", "*", "#"]), max_size=6),
    st.sampled_from([[], [">"]]),
)


@given(patterns, subjects)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_subject_pattern_equals_the_recursive_rule(pattern, subject):
    expected = matches_recursively(words_of(pattern), words_of(subject))

    assert matches_subject(pattern, subject) is expected


@given(
    st.lists(st.tuples(st.booleans(), patterns, st.integers(0, 2)), max_size=20),
    st.lists(subjects, min_size=1, max_size=4),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_trie_equals_the_recursive_rule(changes, asked_subjects):
    trie: SubjectTrie[tuple[str, int]] = SubjectTrie()
    present = set()
    for is_added, pattern, number in changes:
        if is_added:
            trie.add(pattern, (pattern, number))
            present.add((pattern, number))
        else:
            trie.discard(pattern, (pattern, number))
            present.discard((pattern, number))
        for subject in asked_subjects:
            assert trie.find(subject) == {
                item
                for item in present
                if matches_recursively(words_of(item[0]), words_of(subject))
            }
    for pattern, number in present:
        trie.discard(pattern, (pattern, number))
    assert trie.is_empty


def test_trie_search_is_bounded_for_repeated_wildcards():
    trie: SubjectTrie[str] = SubjectTrie()
    for end in "abcdefgh":
        for length in range(1, 16):
            pattern = ".".join(["#", "a"] * length + [end])
            trie.add(pattern, pattern)

    assert len(trie.find(".".join("a" * 32))) == 15


def test_trie_caches_a_bounded_number_of_answers(monkeypatch):
    monkeypatch.setattr(limits, "SUBJECT_ANSWERS_MAX", 3)
    trie: SubjectTrie[int] = SubjectTrie()
    trie.add("#.a", 1)

    assert [len(trie.find(f"{nth}.a")) for nth in range(10)] == [1] * 10
    assert trie.answers_count <= 3


def test_trie_caches_answers_of_a_bounded_size(monkeypatch):
    monkeypatch.setattr(limits, "SUBJECT_ANSWERS_ITEMS_MAX", 12)
    trie: SubjectTrie[int] = SubjectTrie()
    for number in range(4):
        trie.add("#.a", number)

    assert [len(trie.find(f"{nth}.a")) for nth in range(10)] == [4] * 10
    assert trie.answers_count <= 3


@pytest.mark.parametrize(
    ("pattern", "expected"), [("#", True), ("#.#", True), (">", False), ("*", False)]
)
def test_pattern_of_all_subjects_is_recognised(pattern, expected):
    assert matches_all_subjects(pattern) is expected
