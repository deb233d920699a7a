"""Spreads of the in-memory service: the same members as those of the service."""

from hypothesis import given
from hypothesis import strategies as st

from millstream_client.testing.topics.spreads import choose
from storage.domain.topics.targets.rendezvous import RendezvousHash

members = st.dictionaries(
    st.from_regex(r"[a-z]{1,6}", fullmatch=True), st.integers(1, 1_000), min_size=2, max_size=8
)


@given(members, st.text())
def test_member_is_that_of_the_service(weights, text):
    spread = [{"queue": name, "weight": weight} for name, weight in weights.items()]
    hashed = RendezvousHash([(f"queue:{name}", weight) for name, weight in weights.items()])

    assert choose(spread, text) == spread[hashed.member(text.encode())]
