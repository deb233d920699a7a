import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.filters.documents import Document
from storage.domain.filters.match_index import MatchIndex
from storage.domain.filters.matches import CompiledMatch, parse_matches

texts = st.sampled_from(["", "a", "ab", "abc", "b", "AB"])
numbers = st.sampled_from([-1, 0, 1, 1.0, 1.5, 2, 3, 100])
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
bounds = st.one_of(
    st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), numbers).map(list),
    st.tuples(
        st.sampled_from([">", ">="]),
        st.sampled_from([-1, 0]),
        st.sampled_from(["<", "<="]),
        st.sampled_from([1, 2, 9]),
    ).map(list),
)
terms = st.one_of(
    scalars,
    scalars,
    texts.map(lambda text: {"prefix": text}),
    texts.map(lambda text: {"suffix": text}),
    texts.map(lambda text: {"equals-ignore-case": text}),
    texts.map(lambda text: {"wildcard": f"{text}*"}),
    bounds.map(lambda argument: {"numeric": argument}),
    st.booleans().map(lambda exists: {"exists": exists}),
    texts.map(lambda text: {"anything-but": text}),
)
fields = st.lists(terms, min_size=1, max_size=3)
objects = st.dictionaries(st.sampled_from(["x", "y", "x.y"]), fields, min_size=1, max_size=2)
bodies = st.one_of(
    objects,
    st.dictionaries(
        st.sampled_from(["x", "y", "l"]), st.one_of(fields, objects), min_size=1, max_size=3
    ),
)
alternatives = st.lists(
    st.one_of(bodies.map(lambda body: {"body": body}), fields.map(lambda field: {"key": field})),
    min_size=2,
    max_size=3,
)
filters = st.one_of(
    st.dictionaries(st.sampled_from(["key", "subject"]), fields, min_size=1),
    st.builds(lambda h: {"headers": h}, objects),
    st.builds(lambda body: {"body": body}, bodies),
    st.builds(lambda body, options: {"body": body, "$or": options}, bodies, alternatives),
)
subjects = st.lists(st.sampled_from("ab"), max_size=3).map(".".join)
patterns = st.lists(st.sampled_from(["a", "b", "*", "#"]), max_size=3).map(".".join)
matches = st.fixed_dictionaries(
    {}, optional={"subject": st.lists(patterns, min_size=1, max_size=2), "filter": filters}
)
routes = st.one_of(st.none(), matches, st.lists(matches, min_size=1, max_size=3))
contents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "y", "l", "x.y"]), inner, max_size=3),
    ),
    max_leaves=8,
)
documents = st.builds(
    lambda subject, key, x, y, body: Document(
        subject, key, (("x", "", x.encode()), ("y", "Number", str(y).encode())), body, {}
    ),
    subjects,
    texts,
    texts,
    numbers,
    contents.map(msgspec.json.encode),
)


def compiled(value: object) -> CompiledMatch:
    return CompiledMatch(parse_matches(value))


def document(body: object = None, subject: str = "", **headers: str) -> Document:
    pairs = tuple((name, "", value.encode()) for name, value in headers.items())
    return Document(subject, "", pairs, msgspec.json.encode(body), {})


@given(
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.just("discard"), routes)), max_size=12),
    st.lists(documents, min_size=1, max_size=4),
)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_index_equals_asking_each(changes, messages):
    index = MatchIndex()
    present: dict[int, CompiledMatch] = {}
    for number, change in changes:
        if change == "discard":
            index.discard(number)
            present.pop(number, None)
        else:
            present[number] = compiled(change)
            index.add(number, present[number])
    for message in messages:
        expected = sorted(number for number, match in present.items() if match.matches(message))
        assert index.find(message) == expected
        assert all(
            (match.explain(message) == []) is (number in expected)
            for number, match in present.items()
        )
    for number in present:
        index.discard(number)
    assert index.is_empty


@given(
    st.lists(st.tuples(bounds, st.booleans()), max_size=40),
    st.lists(st.floats(-2, 101, allow_nan=False, width=32), max_size=5),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_ranges_equal_asking_each(ranges, values):
    index = MatchIndex()
    present: dict[int, CompiledMatch] = {}
    for number, (argument, is_kept) in enumerate(ranges):
        present[number] = compiled({"filter": {"body": {"n": [{"numeric": argument}]}}})
        index.add(number, present[number])
        if not is_kept:
            index.discard(number)
            del present[number]
    for value in [*values, -1, 0, 1, 2, 9]:
        message = document({"n": value})
        assert index.find(message) == [
            number for number, match in present.items() if match.matches(message)
        ]


def random_match(source: random.Random) -> dict[str, Any]:
    """Return a match of a small vocabulary, which about one message in ten meets."""
    any_term = [
        lambda: source.choice("abc"),
        lambda: source.randint(0, 3),
        lambda: {"prefix": source.choice("abc")},
        lambda: {"suffix": source.choice("abc")},
        lambda: {"anything-but": source.choice("abc")},
        lambda: {"numeric": [">", source.randint(-1, 2)]},
        lambda: {"numeric": [">=", source.randint(-1, 1), "<", source.randint(2, 4)]},
        lambda: {"exists": source.random() < 0.7},
    ]
    names = source.sample(["items.x", "items.y", "n", "s"], source.randint(1, 3))
    body = {
        name: [source.choice(any_term)() for _ in range(source.randint(1, 2))] for name in names
    }
    parts: dict[str, Any] = {"subject": source.choice(["a.*", "b.#", "*.a", "#"])}
    if source.random() < 0.8:
        parts["filter"] = {"body": body}
        if source.random() < 0.5:
            parts["filter"]["headers"] = {"tenant": source.sample("abcd", 2)}
        if source.random() < 0.3:
            parts["filter"]["$or"] = [{"body": {"n": [1]}}, {"body": {"s": ["a", "b"]}}]
    if source.random() < 0.4:
        parts.pop("subject" if "filter" in parts else "filter", None)
    return parts


def random_message(source: random.Random) -> Document:
    items = [
        {"x": source.choice(["a", "b", 1]), "y": source.choice(["c", 2, 3])}
        for _ in range(source.randint(0, 3))
    ]
    body = {"items": items, "n": source.randint(0, 3), "s": source.choice(["a", "ab", "c", None])}
    return document(body, source.choice(["a.a", "a.b", "b.a", "b"]), tenant=source.choice("abcd"))


def test_index_equals_asking_each_of_many_routes():
    source = random.Random(7)
    index = MatchIndex()
    present: dict[int, CompiledMatch] = {}
    hits = 0
    for _ in range(20):
        for _ in range(30):
            number = source.randint(0, 150)
            if source.random() < 0.3:
                index.discard(number)
                present.pop(number, None)
            else:
                present[number] = compiled(
                    [random_match(source) for _ in range(source.randint(1, 2))]
                )
                index.add(number, present[number])
        for _ in range(10):
            message = random_message(source)
            expected = sorted(number for number, match in present.items() if match.matches(message))
            assert index.find(message) == expected
            hits += len(expected)
    assert hits > 1_000


def test_route_takes_a_message_once_for_several_matches():
    index = MatchIndex()
    index.add(7, compiled([{"subject": "a"}, {"subject": "#.a"}, {"filter": {"body": {"x": [1]}}}]))
    index.add(3, compiled(None))

    assert index.find(document({"x": 1}, subject="a")) == [3, 7]


def test_numbers_beyond_a_float_have_no_range_of_two_bounds():
    index = MatchIndex()
    index.add(1, compiled({"filter": {"body": {"n": [{"numeric": [">", 0, "<", 5]}]}}}))
    index.add(2, compiled({"filter": {"body": {"n": [{"numeric": [">", 0]}]}}}))
    body = b'{"n": 1' + b"0" * 400 + b"}"

    assert index.find(Document("", "", (), body, {})) == [2]


def test_route_is_replaced_when_added_again():
    index = MatchIndex()
    index.add(1, compiled({"subject": "a"}))
    index.add(1, compiled({"subject": "b"}))

    assert [index.find(document(subject=subject)) for subject in "ab"] == [[], [1]]
    assert len(index) == 1


def test_body_is_not_decoded_without_a_route_that_names_it():
    index = MatchIndex()
    index.add(1, compiled({"filter": {"headers": {"tenant": ["t1"]}}}))
    message = document({"x": 1}, tenant="t1")

    assert index.find(message) == [1]
    assert not message.is_body_decoded


def test_body_is_not_decoded_when_the_header_decides():
    index = MatchIndex()
    for number in range(10):
        pattern = {"headers": {"tenant": [f"t{number}"]}, "body": {"vip": [True]}}
        index.add(number, compiled({"filter": pattern}))
    message = document({"vip": True}, tenant="none")

    assert index.find(message) == []
    assert not message.is_body_decoded


def test_equal_conditions_are_evaluated_once():
    index = MatchIndex()
    for number in range(100):
        index.add(number, compiled({"filter": {"body": {"x": [{"suffix": "a"}]}}}))

    assert index.find(document({"x": "ba"})) == list(range(100))
    assert index.conditions_evaluated == 1


def test_selective_routes_evaluate_no_condition():
    index = MatchIndex()
    for number in range(1_000):
        index.add(number, compiled({"filter": {"headers": {"tenant": [f"t{number}"]}}}))

    assert index.find(document(tenant="t500")) == [500]
    assert index.conditions_evaluated == 0
