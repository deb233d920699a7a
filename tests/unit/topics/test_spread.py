"""Spreads: shares by weight, movement of keys after a change, and definitions that are refused."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.filters.documents import Document
from storage.domain.names import RouteName, TopicName
from storage.domain.topics.copy_key import CopyKey
from storage.domain.topics.route import RouteMode, RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.targets.rendezvous import RendezvousHash
from storage.domain.topics.targets.spread import MemberSelector, SpreadBy, SpreadMember
from storage.domain.topics.topic import NewPublication
from tests.unit.topics.messages import spec

Members = Sequence[tuple[str, int]]

KEYS = [b"%d" % number for number in Random(1).sample(range(10**9), 2_000)]
DEVIATIONS_MAX = 5  # of a binomial distribution: one test in 1.7 million exceeds it

members = st.lists(
    st.tuples(st.from_regex(r"queue:[a-z]{1,6}", fullmatch=True), st.integers(1, 5)),
    min_size=2,
    max_size=8,
    unique_by=lambda one: one[0],
)


def labels_of(spread: Members) -> list[str]:
    """Return the label of the member of each key."""
    hashed = RendezvousHash(spread)
    return [spread[hashed.member(key)][0] for key in KEYS]


def assert_is_share(count: int, share: float) -> None:
    deviation = sqrt(len(KEYS) * share * (1 - share))
    assert abs(count - len(KEYS) * share) <= DEVIATIONS_MAX * deviation


@settings(derandomize=True)
@given(members)
def test_members_get_shares_by_their_weights(spread):
    counts = Counter(labels_of(spread))
    total = sum(weight for _, weight in spread)
    for label, weight in spread:
        assert_is_share(counts[label], weight / total)


@given(members, st.randoms(use_true_random=False))
def test_member_does_not_depend_on_their_order(spread, chance):
    shuffled = chance.sample(spread, len(spread))
    assert labels_of(shuffled) == labels_of(spread)


@settings(derandomize=True)
@given(members, st.integers(0, 7))
def test_removed_member_moves_its_keys_alone(spread, number):
    removed, weight = spread[number % len(spread)]
    left = [one for one in spread if one[0] != removed]
    before, after = labels_of(spread), labels_of(left)
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert {old for old, _ in moved} <= {removed}
    assert_is_share(len(moved), weight / sum(weight for _, weight in spread))


@given(members, st.integers(0, 7), st.integers(1, 5))
def test_higher_weight_moves_keys_to_its_member_alone(spread, number, more):
    raised, _ = spread[number % len(spread)]
    changed = [(label, own + more * (label == raised)) for label, own in spread]
    before, after = labels_of(spread), labels_of(changed)
    assert {new for old, new in zip(before, after, strict=True) if old != new} <= {raised}


def test_member_of_key_is_the_same_in_every_version():
    hashed = RendezvousHash([("queue:w1", 2), ("queue:w2", 1), ("stream:s", 1)])
    expected = [1, 0, 0, 0, 2, 2, 0, 1, 1, 0, 1, 0]
    assert [hashed.member(f"customer-{number}".encode()) for number in range(12)] == expected


# Selection of a message's member

W1, W2 = SpreadMember(queue="w1"), SpreadMember(queue="w2")
TWO = (W1, W2)


def document(subject: str = "", key: str = "", body: bytes = b"{}") -> Document:
    return Document(subject, key, (), body, {})


def selected(by: SpreadBy, message: Document, place: str = "", key: CopyKey = None) -> int | None:
    return MemberSelector(TWO, by, key).member(message, place)


@pytest.mark.parametrize(
    ("by", "key", "alike"),
    [
        (SpreadBy.KEY, None, [document("a", "k"), document("b", "k")]),
        (SpreadBy.KEY, "subject", [document("a", "k"), document("a", "l")]),
        (
            SpreadBy.KEY,
            "/body/id",
            [document("a", "k", b'{"id": 7}'), document("b", "l", b'{"id": "7"}')],
        ),
        (SpreadBy.SUBJECT, None, [document("a", "k"), document("a", "l")]),
    ],
)
def test_messages_with_the_same_value_have_one_member(by, key, alike):
    places = (f"0123456789abcdef-0-{number}" for number in range(20))
    assert len({selected(by, one, place, key) for place in places for one in alike}) == 1


@pytest.mark.parametrize(
    ("by", "key", "message"),
    [
        (SpreadBy.RANDOM, None, document("a", "k")),
        (SpreadBy.KEY, None, document("a")),
        (SpreadBy.SUBJECT, None, document(key="k")),
        (SpreadBy.KEY, "/body/id", document("a", "k")),
    ],
)
def test_place_decides_for_messages_without_value(by, key, message):
    places = [f"0123456789abcdef-0-{number}" for number in range(40)]
    assert {selected(by, message, place, key) for place in places} == {0, 1}
    assert selected(by, message, places[0], key) == selected(by, message, places[0], key)
    assert selected(by, message, key=key) is None


def test_lone_surrogates_have_a_member():
    assert selected(SpreadBy.SUBJECT, document("\ud800")) in (0, 1)


# Branches


def route(mode: RouteMode = RouteMode.LIVE) -> TopicRoute:
    target = RouteTarget(spread=TWO, by=SpreadBy.KEY)
    name = RouteName(TopicName("orders"), "work")
    spec = RouteSpec(target=target, mode=mode)
    return TopicRoute(
        name=name,
        stream_id="0123456789abcdef",
        number=7,
        spec=spec,
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


def test_each_member_has_a_branch_of_its_own():
    spread = route()
    assert [branch.target_key for branch in spread.branches] == ["queue:w1", "queue:w2"]
    assert [branch.own_key for branch in spread.branches] == ["queue:w1#7", "queue:w2#7"]
    assert [*map(spread.member_of, spread.branches)] == [W1, W2]
    dead = {spread.dead_producer_id(0, branch.member) for branch in spread.branches}
    assert len(dead) == len(spread.branches)


def test_shadow_of_spread_has_one_branch():
    shadow = route(mode=RouteMode.SHADOW)
    record = NewPublication(b"{}", "a", "k").record([7])
    [branch] = shadow.branches
    assert shadow.branch_of(0, 0, record) is branch
    assert shadow.member_of(branch) is None


# Definitions

ONE = SpreadMember(queue="w1")


@pytest.mark.parametrize(
    ("target", "pointers"),
    [
        (RouteTarget(spread=()), ["/target/spread"]),
        (RouteTarget(spread=(ONE,)), ["/target/spread"]),
        (
            RouteTarget(
                spread=tuple(
                    SpreadMember(queue=f"w{number}")
                    for number in range(limits.SPREAD_MEMBERS_MAX + 1)
                )
            ),
            ["/target/spread"],
        ),
        (RouteTarget(spread=(ONE, ONE)), ["/target/spread/1"]),
        (RouteTarget(spread=(ONE, SpreadMember(queue="w1", weight=2))), ["/target/spread/1"]),
        (RouteTarget(spread=(ONE, SpreadMember())), ["/target/spread/1"]),
        (
            RouteTarget(spread=(ONE, SpreadMember(queue="a", stream="b"))),
            ["/target/spread/1"],
        ),
        (
            RouteTarget(spread=(SpreadMember(url="https://crm.example/"), ONE)),
            ["/target/spread/0/url"],
        ),
        (RouteTarget(spread=(ONE, SpreadMember(queue="a b"))), ["/target/spread/1/queue"]),
        (
            RouteTarget(spread=(ONE, SpreadMember(stream="topic:orders"))),
            ["/target/spread/1/stream"],
        ),
        (RouteTarget(spread=(ONE, SpreadMember(topic="stream:s"))), ["/target/spread/1/topic"]),
        (
            RouteTarget(
                spread=(
                    SpreadMember(queue="w2", weight=0),
                    SpreadMember(queue="w1", weight=limits.SPREAD_WEIGHT_MAX + 1),
                )
            ),
            ["/target/spread/0/weight", "/target/spread/1/weight"],
        ),
        (RouteTarget(queue="w1", spread=TWO), ["/target"]),
        (RouteTarget(url="https://crm.example/", spread=TWO), ["/target"]),
        (RouteTarget(queue="w1", by=SpreadBy.KEY), ["/target/by"]),
        (RouteTarget(spread=TWO, rate=1.0), ["/target/rate"]),
    ],
)
def test_invalid_spread_is_refused(target, pointers):
    with pytest.raises(ValidationFailed) as refused:
        spec(target=target).check()
    assert [fault.pointer for fault in refused.value.faults] == pointers


STREAMS = (SpreadMember(stream="s1"), SpreadMember(topic="t"))


def test_member_cannot_be_the_dead_letter_queue():
    with pytest.raises(ValidationFailed) as refused:
        spec(target=RouteTarget(spread=TWO), dead_letter_queue="w2").check()
    assert refused.value.faults[0].pointer == "/dead_letter_queue"


def test_times_need_a_member_that_is_a_queue():
    spec(target=RouteTarget(spread=(*STREAMS, W1)), ttl_ms=1_000).check()
    with pytest.raises(ValidationFailed):
        spec(target=RouteTarget(spread=STREAMS), ttl_ms=1_000).check()


@pytest.mark.parametrize(
    "changed",
    [
        RouteTarget(spread=TWO, by=SpreadBy.RANDOM),
        RouteTarget(spread=(*TWO, SpreadMember(queue="w3")), by=SpreadBy.KEY),
        RouteTarget(spread=(W1, SpreadMember(queue="w2", weight=2)), by=SpreadBy.KEY),
        RouteTarget(queue="w1"),
    ],
)
def test_change_of_spread_makes_new_revision(changed):
    before = spec(target=RouteTarget(spread=TWO, by=SpreadBy.KEY))
    assert not spec(target=changed).takes_as(before)
    assert spec(target=before.target, delay_ms=1).takes_as(before)
