"""Properties: the routes that take a message follow from it and the definitions alone (T16), each once (T5)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.filters.documents import Document
from storage.domain.filters.match_index import MatchIndex
from storage.domain.filters.matches import CompiledMatch, parse_matches
from tests.unit.filters.test_match_index import documents, routes

conditions = st.sampled_from(["subject = 'a'", "headers.y < 2", "key LIKE 'a%' OR body.x > 1"])
definitions = st.one_of(
    routes, st.lists(conditions.map(lambda text: {"where": text}), min_size=1, max_size=2)
)


def find(index: MatchIndex, message: Document) -> list[int]:
    """Find with a copy of the message, which no search has read."""
    copy = Document(message.subject, message.key, message.headers, message.body, message.meta)
    return index.find(copy)


def index_of(values: list[tuple[int, object]]) -> MatchIndex:
    """Return an index of newly compiled matches by number, in this order."""
    index = MatchIndex()
    for number, value in values:
        index.add(number, CompiledMatch(parse_matches(value)))
    return index


@given(
    st.lists(definitions, max_size=8),
    st.lists(documents, min_size=1, max_size=4),
    st.lists(definitions, max_size=4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_routes_follow_from_message_and_definitions(present, messages, removed, chance):
    """Neither earlier messages decide, nor the order of routes, nor those that are gone."""
    numbered = [*enumerate(present)]
    expected = [find(index_of(numbered), message) for message in messages]
    chance.shuffle(numbered)
    index = index_of([*enumerate(removed, start=100), *numbered])
    for message in messages:
        find(index, message)
    for number in range(100, 100 + len(removed)):
        index.discard(number)

    for message, numbers in [*zip(messages, expected, strict=True)][::-1]:
        assert find(index, message) == numbers
        assert len({*numbers}) == len(numbers)
