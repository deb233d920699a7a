"""Order of alerts by harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.alerts.kinds import AlertKind, AlertSubject, Severity
from storage.domain.alerts.rank import Finding

KINDS = st.sampled_from(AlertKind)
WAITING = st.integers(0, 10**9)
GROWTH = st.floats(-1e6, 1e6)


def finding(kind=AlertKind.QUEUE_STALLED, waiting=0, growth=0.0, name="orders"):
    return Finding(AlertSubject(kind, name), waiting, growth)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (finding(waiting=1616), finding(waiting=1)),
        (finding(waiting=10, growth=60), finding(waiting=500)),
        (finding(waiting=1616, growth=12), finding(AlertKind.DEAD_LETTERS, 9_000)),
        (finding(AlertKind.QUEUE_PARKED, 1522, 10), finding(AlertKind.DEAD_LETTERS, 50_000)),
        (finding(AlertKind.GROUP_EXPIRING, 10), finding(AlertKind.GROUP_STALLED, 10**6)),
        (finding(AlertKind.QUEUE_FULL, 100), finding(AlertKind.QUEUE_BEHIND, 10**6, 100)),
        (finding(AlertKind.STORE_FULL), finding(AlertKind.QUEUE_FULL, 10**6, 100)),
        (finding(AlertKind.WEBHOOK_DISABLED), finding(AlertKind.DEAD_LETTERS_OLD, 10**6)),
        (finding(waiting=3), finding(AlertKind.QUEUE_QUIET, 10**6)),
    ],
)
def test_more_harm_is_ranked_first(worse, better):
    assert sorted([better, worse], key=lambda each: each.rank) == [worse, better]


@given(KINDS, WAITING, WAITING, GROWTH, GROWTH)
def test_more_waiting_or_growth_never_ranks_lower(kind, waiting, extra, growth, faster):
    less = finding(kind, waiting, min(growth, faster))
    more = finding(kind, waiting + extra, max(growth, faster))

    assert more.rank <= less.rank


@given(KINDS, KINDS, WAITING, WAITING, GROWTH, GROWTH)
def test_more_severe_kind_never_ranks_lower(kind, other, waiting, others, growth, faster):
    first, second = finding(kind, waiting, growth), finding(other, others, faster)

    if kind.severity < other.severity:
        assert first.rank < second.rank


@given(st.lists(st.tuples(KINDS, WAITING, GROWTH), max_size=20))
def test_order_does_not_depend_on_the_input_order(facts):
    findings = [
        finding(kind, waiting, growth, f"q{number}")
        for number, (kind, waiting, growth) in enumerate(facts)
    ]

    backwards = findings[::-1]

    ordered = sorted(findings, key=lambda each: each.rank)

    assert ordered == sorted(backwards, key=lambda each: each.rank)


def test_shrinking_state_is_ranked_by_what_waits():
    assert finding(waiting=5, growth=-3).harm == finding(waiting=5).harm


def test_every_severity_has_kinds():
    assert {kind.severity for kind in AlertKind} == set(Severity)
