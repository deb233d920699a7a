"""When a primary has failed, and which member follows it."""

import msgspec
import pytest

from storage.domain import limits
from storage.domain.replication.replica_set import Phase, ReplicaSet, StorePosition
from storage.hot_store.members import MemberFacts, Promise, WriteOutcome
from storage.replication.decisions import (
    FailureDetector,
    can_find_quorum,
    choose_primary,
    highest_term,
    misses_primary,
    next_term,
)

ROW = ReplicaSet(
    members=("a", "b", "c"),
    primary="a",
    term=4,
    epoch=3,
    phase=Phase.NORMAL,
    min_insync_replicas=2,
)
FIVE = msgspec.structs.replace(ROW, members=("a", "b", "c", "d", "e"), min_insync_replicas=3)


def at(position, epoch=3, offset=0):
    return Promise(True, 3, StorePosition(epoch, position), offset)


@pytest.mark.parametrize(
    ("row", "votes", "choice"),
    [
        (ROW, {"b": at(1), "c": at(2)}, "c"),
        (ROW, {"b": at(2), "c": at(2)}, "b"),
        (ROW, {"b": at(2), "c": at(2, offset=1)}, "c"),
        (ROW, {"b": at(2), "c": at(1, offset=1)}, "b"),
        (ROW, {"b": at(9, epoch=2), "c": at(1)}, "c"),
        (ROW, {"b": at(1)}, None),
        (ROW, {"a": at(1)}, "a"),
        (ROW, {"a": at(1), "b": at(2)}, "b"),
        (ROW, {"b": at(1), "c": at(0, epoch=0)}, None),
        (ROW, {"a": at(0, epoch=0), "b": at(1)}, None),
        (ROW, {}, None),
        (FIVE, {"b": at(1), "c": at(1), "d": at(1)}, "b"),
        (FIVE, {"b": at(1), "c": at(1)}, None),
        (FIVE, {"b": at(1, 2), "c": at(1, 2), "d": at(1, 2)}, None),
        (FIVE, {"b": at(1, 2), "c": at(1, 2), "d": at(1, 2), "e": at(3, 2)}, "e"),
    ],
)
def test_furthest_of_a_quorum_is_chosen(row, votes, choice):
    assert choose_primary(row, votes) == choice


def test_target_is_chosen_only_if_it_is_furthest():
    assert choose_primary(ROW, {"a": at(2), "b": at(2), "c": at(1)}, "b") == "b"
    assert choose_primary(ROW, {"a": at(2), "b": at(2), "c": at(1)}, "c") == "a"


def test_next_term_is_above_every_term_known():
    assert next_term(ROW) == 5
    assert next_term(ROW, highest=9) == 10
    assert next_term(msgspec.structs.replace(ROW, epoch=12)) == 13


def test_highest_term_is_of_all_answers():
    promises = {"a": Promise(False, 7, StorePosition(3, 1)), "b": at(1)}

    assert highest_term(promises) == 7
    assert highest_term({}) == 0


FACTS = MemberFacts(
    is_primary=False,
    follows="a",
    is_linked=True,
    is_syncing=False,
    silent_ms=1_000,
    promise=4,
    position=StorePosition(3, 1),
    has_data=True,
    replicas=(),
    version="9.1.2",
    run_id="run",
    memory_used_bytes=1,
    memory_max_bytes=0,
    full_resyncs=0,
    time_ms=0,
)
EMPTY = msgspec.structs.replace(FACTS, position=StorePosition(0, 0))


@pytest.mark.parametrize(
    ("row", "facts", "can_begin"),
    [
        (ROW, {"b": FACTS, "c": FACTS}, True),
        (ROW, {"a": FACTS}, True),
        (ROW, {"b": FACTS}, False),
        (ROW, {"b": FACTS, "c": EMPTY}, False),
        (FIVE, {"b": FACTS, "c": FACTS, "d": FACTS}, True),
        (FIVE, {"b": FACTS, "c": FACTS}, False),
        (ROW, {}, False),
        (msgspec.structs.replace(ROW, members=("a",)), {}, False),
    ],
)
def test_fail_over_begins_if_enough_members_answer(row, facts, can_begin):
    assert can_find_quorum(row, facts) is can_begin


@pytest.mark.parametrize(
    ("changes", "is_missed"),
    [
        ({}, False),
        ({"silent_ms": limits.MEMBER_SILENT_MS_MAX}, True),
        ({"follows": None}, True),
        ({"follows": "b"}, True),
        ({"is_linked": False}, True),
        ({"is_linked": False, "is_syncing": True}, False),
        ({"is_linked": False, "is_syncing": True, "silent_ms": 9_000}, True),
    ],
)
def test_replica_misses_primary_without_a_working_link(changes, is_missed):
    assert misses_primary(msgspec.structs.replace(FACTS, **changes), "a") is is_missed


def note(detector, outcome, now_ms, *, is_missed=True, term=4):
    return detector.note(term, outcome, is_missed=is_missed, began_ms=now_ms, now_ms=now_ms)


@pytest.mark.parametrize(
    ("outcome", "is_missed", "after_ms"),
    [
        (WriteOutcome.UNREACHABLE, True, limits.PRIMARY_FAILED_MS),
        (WriteOutcome.NOT_PRIMARY, False, limits.PRIMARY_FAILED_MS),
        (WriteOutcome.UNCONFIRMED, True, limits.PRIMARY_ALONE_MS),
        (WriteOutcome.UNREACHABLE, False, None),
        (WriteOutcome.UNCONFIRMED, False, None),
    ],
)
def test_primary_has_failed_after_its_time(outcome, is_missed, after_ms):
    detector = FailureDetector()

    assert not note(detector, outcome, 0, is_missed=is_missed)
    if after_ms is None:
        assert not note(detector, outcome, 10**6, is_missed=is_missed)
    else:
        assert not note(detector, outcome, after_ms - 1, is_missed=is_missed)
        assert note(detector, outcome, after_ms, is_missed=is_missed)


def test_failure_counts_from_the_start_of_a_probe():
    detector = FailureDetector()
    outcome = WriteOutcome.UNREACHABLE

    assert detector.note(4, outcome, is_missed=True, began_ms=0, now_ms=limits.PRIMARY_FAILED_MS)


def test_confirmed_write_ends_the_failure():
    detector = FailureDetector()
    note(detector, WriteOutcome.UNREACHABLE, 0)
    note(detector, WriteOutcome.CONFIRMED, 500)

    assert not note(detector, WriteOutcome.UNREACHABLE, 1_400)


def test_new_term_starts_the_clock_anew():
    detector = FailureDetector()
    note(detector, WriteOutcome.UNREACHABLE, 0)

    assert not note(detector, WriteOutcome.UNREACHABLE, 5_000, term=5)
