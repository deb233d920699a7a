"""The checker of the chaos runs finds what it is there for: for each invariant, a history that breaks it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.chaos import checker
from tests.chaos.checker import Finding
from tests.chaos.history import History, Kind, Operation, Outcome, Seen, read_history

COUNTS = dict.fromkeys(("sent", "moved_in", *checker.STAYING, *checker.GONE), 0)


def op(kind: Kind, at: float, *seen: Seen, **more: Any) -> Operation:
    """A call that was asked at `at` and answered half a second later."""
    known: dict[str, Any] = {"log": "q", "client": "c", "outcome": Outcome.OK, **more}
    return Operation(kind=kind, invoked=at, ended=at + 0.5, seen=seen, **known)


def send(at: float, value: str, group: str = "", **more: Any) -> Operation:
    return op(
        Kind.SEND, at, Seen(value=value, id=f"id {value}"), values=(value,), group=group, **more
    )


def receive(at: float, *values: str, group: str = "") -> Operation:
    return op(
        Kind.RECEIVE, at, *(Seen(value=value, id=f"id {value}", group=group) for value in values)
    )


def ack(at: float, value: str, **more: Any) -> Operation:
    return op(Kind.ACK, at, values=(value,), **more)


def append(at: float, value: str, offset: int, **more: Any) -> Operation:
    return op(Kind.APPEND, at, Seen(value=value, offset=offset), values=(value,), **more)


def read(at: float, *records: tuple[str, int], kind: Kind = Kind.READ) -> Operation:
    seen = (Seen(value=value, offset=offset) for value, offset in records)
    return op(kind, at, *seen, group="g" if kind is Kind.GROUP_READ else "")


def stands(at: float, offset: int, kind: Kind = Kind.STANDING) -> Operation:
    return op(kind, at, Seen(offset=offset), group="g")


def stats(**counts: int) -> Operation:
    return op(Kind.STATS, 90, counts={**COUNTS, **counts})


def dead(*values: str) -> Operation:
    return op(Kind.DEAD_LETTERS, 91, *(Seen(value=value, id=f"id {value}") for value in values))


UNKNOWN, FAIL = Outcome.UNKNOWN, Outcome.FAIL
Invariant = Callable[[Sequence[Operation]], Finding]

VIOLATIONS: list[tuple[str, Invariant, list[Operation]]] = [
    (
        "acknowledged, and received again",
        checker.nothing_acknowledged_returns,
        [receive(1, "a"), ack(2, "a"), receive(3, "a")],
    ),
    ("accepted, and never seen", checker.nothing_accepted_is_lost, [send(1, "a")]),
    (
        "accepted and acknowledged in another queue",
        checker.nothing_accepted_is_lost,
        [send(1, "a"), op(Kind.RECEIVE, 2, Seen(value="a"), log="another")],
    ),
    (
        "refused, and there",
        checker.nothing_comes_from_nowhere,
        [send(1, "a", outcome=FAIL), receive(2, "a")],
    ),
    ("never sent, and there", checker.nothing_comes_from_nowhere, [receive(2, "a")]),
    (
        "an append that was refused, and there",
        checker.nothing_comes_from_nowhere,
        [append(1, "a", 0, outcome=FAIL), read(2, ("a", 0))],
    ),
    (
        "the second message of a group first",
        checker.groups_keep_their_order,
        [send(1, "a", "g"), send(2, "b", "g"), receive(3, "b", group="g")],
    ),
    (
        "the wrong way round in one answer",
        checker.groups_keep_their_order,
        [send(1, "a", "g"), send(2, "b", "g"), receive(3, "b", "a", group="g")],
    ),
    (
        "overtaking a message in flight",
        checker.groups_keep_their_order,
        [
            send(1, "a", "g"),
            send(2, "b", "g"),
            receive(3, "a", group="g"),
            receive(4, "b", group="g"),
            ack(5, "a"),
        ],
    ),
    (
        "a repeated send is two messages",
        checker.one_message_for_each_send,
        [send(1, "a"), receive(2, "a"), op(Kind.RECEIVE, 3, Seen(value="a", id="another"))],
    ),
    (
        "two dead letters of one message",
        checker.dead_letters_are_there_once,
        [dead("a", "a"), stats(sent=2, dead_lettered=2)],
    ),
    (
        "acknowledged, and a dead letter",
        checker.dead_letters_are_there_once,
        [ack(1, "a"), dead("a"), stats(sent=1, dead_lettered=1)],
    ),
    (
        "more dead letters counted than listed",
        checker.dead_letters_are_there_once,
        [dead("a"), stats(sent=2, dead_lettered=2)],
    ),
    ("counts that lack one", checker.counts_add_up, [stats(sent=2, acknowledged=1)]),
    ("something still waits", checker.counts_add_up, [stats(sent=1, ready=1)]),
    (
        "an offset that was given twice",
        checker.an_offset_holds_one_value,
        [append(1, "a", 0), append(2, "b", 0)],
    ),
    (
        "a reader who sees another value",
        checker.an_offset_holds_one_value,
        [append(1, "a", 0), read(2, ("b", 0))],
    ),
    (
        "appended, and not to be read",
        checker.nothing_appended_is_lost,
        [append(1, "a", 0), append(2, "b", 1), read(3, ("a", 0))],
    ),
    (
        "a client's second append below its first",
        checker.offsets_rise,
        [append(1, "a", 5), append(2, "b", 4)],
    ),
    ("a page that goes back", checker.offsets_rise, [read(1, ("a", 1), ("b", 0))]),
    (
        "a repeated append at two places",
        checker.a_repeated_append_adds_nothing,
        [append(1, "a", 0), append(2, "a", 1)],
    ),
    (
        "a retry whose first try had an effect after all",
        checker.a_repeated_append_adds_nothing,
        [append(1, "a", 0, outcome=UNKNOWN), append(2, "a", 1), read(3, ("a", 0), ("a", 1))],
    ),
    (
        "a group that was not given a record it is past",
        checker.groups_skip_nothing,
        [read(1, ("a", 0), ("b", 1)), read(2, ("b", 1), kind=Kind.GROUP_READ), stands(3, 2)],
    ),
    (
        "a group past the end",
        checker.groups_skip_nothing,
        [read(1, ("a", 0)), read(2, ("a", 0), kind=Kind.GROUP_READ), stands(3, 2)],
    ),
    (
        "a group that does not arrive",
        checker.groups_arrive,
        [read(1, ("a", 0), ("b", 1)), stands(3, 1)],
    ),
    (
        "a committed offset that moved back",
        checker.committed_offsets_stay,
        [stands(1, 5, Kind.COMMIT), stands(2, 4)],
    ),
    (
        "a 500",
        checker.no_answer_is_a_fault,
        [op(Kind.READ, 1, outcome=UNKNOWN, status=500, code="InternalFailure")],
    ),
]


@pytest.mark.parametrize(
    ("invariant", "history"),
    [violation[1:] for violation in VIOLATIONS],
    ids=[violation[0] for violation in VIOLATIONS],
)
def test_a_history_that_breaks_an_invariant_is_told(invariant, history):
    found = invariant(history)

    assert len(found.violations) == 1, found
    assert not found.holds


def test_every_invariant_has_a_history_that_breaks_it():
    assert {invariant for _, invariant, _ in VIOLATIONS} == set(checker.INVARIANTS)


def test_a_sound_history_holds_everywhere():
    """Lost answers, repeats, returns and a refusal, each of which is allowed."""
    history = [
        send(1, "lost answer", outcome=UNKNOWN),
        send(1, "refused", outcome=FAIL),
        send(1, "a", "g", outcome=UNKNOWN),
        send(2, "a", "g"),
        send(3, "b", "g"),
        send(3, "poison"),
        receive(4, "a", "b", group="g"),
        receive(8, "a", "b", group="g"),
        ack(9, "a", outcome=UNKNOWN),
        receive(9.2, "b", group="g"),
        ack(10, "b"),
        receive(9.9, "b", group="g"),
        receive(11, "lost answer"),
        append(1, "x", 0, outcome=UNKNOWN),
        append(2, "x", 0),
        append(3, "y", 1),
        read(4, ("x", 0), ("y", 1), kind=Kind.GROUP_READ),
        stands(5, 2, Kind.COMMIT),
        stands(6, 2),
        read(7, ("x", 0), ("y", 1)),
        dead("poison"),
        stats(sent=4, acknowledged=3, dead_lettered=1),
        op(Kind.SEND, 1, outcome=UNKNOWN, status=500, code=checker.UNANSWERED),
    ]

    assert [finding for finding in checker.check(history) if not finding.holds] == []


def test_an_answer_that_was_under_way_when_the_acknowledgement_came_is_no_return():
    history = [ack(2, "a"), receive(2.4, "a")]

    assert checker.nothing_acknowledged_returns(history).holds


def test_an_invariant_that_had_nothing_to_look_at_does_not_hold():
    assert [finding.name for finding in checker.check([]) if finding.holds] == []


def test_a_history_is_read_as_it_was_written(tmp_path):
    history = History()
    for one in (send(1, "a", "g"), stats(sent=1), append(2, "x", 0, outcome=UNKNOWN)):
        history.add(one)

    history.write(tmp_path / "history.ndjson")

    assert [*read_history(tmp_path / "history.ndjson")] == history.operations
    assert history.counts()["append"] == {"ok": 0, "fail": 0, "unknown": 1}
