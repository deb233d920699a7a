"""The invariants of the chaos checker, each with a history that violates it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.chaos import checker
from tests.chaos.checking import events, groups, queues, streams, webhooks
from tests.chaos.checking.findings import Finding
from tests.chaos.history import Gap, History, Kind, Operation, Outcome, Seen, read_history

COUNTS = dict.fromkeys(("sent", "moved_in", *queues.STAYING, *queues.GONE), 0)


def op(kind: Kind, at: float, *seen: Seen, **more: Any) -> Operation:
    """A call that is made at `at` and answered half a second later."""
    known: dict[str, Any] = {"log": "q", "client": "c", "outcome": Outcome.OK, **more}
    return Operation(kind=kind, invoked=at, ended=at + 0.5, seen=seen, **known)


def send(at: float, value: str, group: str = "", **more: Any) -> Operation:
    return op(
        Kind.SEND, at, Seen(value=value, id=f"id {value}"), values=(value,), group=group, **more
    )


def receive(at: float, *values: str, group: str = "", receives: int = 0, **more: Any) -> Operation:
    """Receive messages; the receive count defaults to the time."""
    count = receives or int(at * 10)
    seen = (Seen(value=value, id=f"id {value}", group=group, receives=count) for value in values)
    return op(Kind.RECEIVE, at, *seen, **more)


def ack(at: float, value: str, **more: Any) -> Operation:
    return op(Kind.ACK, at, values=(value,), **more)


def append(at: float, value: str, offset: int, **more: Any) -> Operation:
    return op(Kind.APPEND, at, Seen(value=value, offset=offset), values=(value,), **more)


def read(at: float, *records: tuple[str, int], kind: Kind = Kind.READ, **more: Any) -> Operation:
    seen = (Seen(value=value, offset=offset) for value, offset in records)
    return op(kind, at, *seen, group="g" if kind is Kind.GROUP_READ else "", **more)


def placed(at: float, shard: int, offset: int, number: int = 0, **more: Any) -> Operation:
    """Append a unique value to a shard."""
    value = f"{shard} {offset}"
    seen = Seen(value=value, shard=shard, offset=offset, number=str(number or ""))
    return op(Kind.APPEND, at, seen, values=(value,), **more)


SPLIT = op(Kind.SHARDS, 5, Seen(shard=0), Seen(shard=1, parents=(0,)), Seen(shard=2, parents=(0,)))


def owns(at: float, client: str, generation: int, **more: Any) -> Operation:
    return op(
        Kind.GROUP_READ, at, client=client, group="g", generation=generation, owns=(0,), **more
    )


def commit(at: float, client: str, generation: int, offset: int, **more: Any) -> Operation:
    about = {"client": client, "group": "g", "generation": generation, "owns": (0,), **more}
    return op(Kind.COMMIT, at, Seen(offset=offset), **about)


def followed(at: float, offset: int, shard: int = 0, first: int = -1, **more: Any) -> Operation:
    seen = Seen(value=f"{shard} {offset}", shard=shard, offset=offset)
    return op(Kind.FOLLOWED, at, seen, first=first, client="f", **more)


HOOK = op(Kind.WEBHOOK, 0)


def posted(at: float, value: str, group: str = "", **more: Any) -> Operation:
    return op(Kind.POSTED, at, Seen(value=value, id=f"id {value}", group=group), **more)


def record_posted(at: float, offset: int, shard: int = 0, **more: Any) -> Operation:
    """A webhook request for a record that `placed` appends."""
    id_ = f"s-{shard}-{offset}"
    seen = Seen(value=f"{shard} {offset}", id=id_, shard=shard, offset=offset)
    return op(Kind.POSTED, at, seen, **more)


REPLAY = op(Kind.REPLAY, 5, Seen(offset=0), Seen(offset=2), target="again")


def replayed(*values: str) -> Operation:
    return op(Kind.REPLAYED, 6, *(Seen(value=value) for value in values), log="again")


def stands(at: float, offset: int, kind: Kind = Kind.STANDING) -> Operation:
    return op(kind, at, Seen(offset=offset), group="g")


def stats(log: str = "q", target: str = "", **counts: int) -> Operation:
    return op(Kind.STATS, 90, log=log, target=target, counts={**COUNTS, **counts})


def buried(moved_in: int = 1) -> list[Operation]:
    """Counts of a queue and of its dead-letter queue after one message moved."""
    return [
        stats("q", "dead", sent=1, moved_out=1, receives_max=2),
        stats("dead", moved_in=moved_in, acknowledged=1),
    ]


def dead(*values: str) -> Operation:
    return op(Kind.DEAD_LETTERS, 91, *(Seen(value=value, id=f"id {value}") for value in values))


UNKNOWN, FAIL = Outcome.UNKNOWN, Outcome.FAIL
Invariant = Callable[[Sequence[Operation]], Finding]

VIOLATIONS: list[tuple[str, Invariant, list[Operation]]] = [
    (
        "acknowledged, and received again",
        queues.nothing_acknowledged_returns,
        [receive(1, "a"), ack(2, "a"), receive(3, "a")],
    ),
    ("accepted, and never seen", queues.nothing_accepted_is_lost, [send(1, "a")]),
    (
        "accepted and acknowledged in another queue",
        queues.nothing_accepted_is_lost,
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
        queues.groups_keep_their_order,
        [send(1, "a", "g"), send(2, "b", "g"), receive(3, "b", group="g")],
    ),
    (
        "the wrong way round in one answer",
        queues.groups_keep_their_order,
        [send(1, "a", "g"), send(2, "b", "g"), receive(3, "b", "a", group="g")],
    ),
    (
        "overtaking a message in flight",
        queues.groups_keep_their_order,
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
        queues.one_message_for_each_send,
        [send(1, "a"), receive(2, "a"), op(Kind.RECEIVE, 3, Seen(value="a", id="another"))],
    ),
    (
        "two dead letters of one message",
        queues.dead_letters_are_there_once,
        [dead("a", "a"), stats(sent=2, dead_lettered=2)],
    ),
    (
        "acknowledged, and a dead letter",
        queues.dead_letters_are_there_once,
        [ack(1, "a"), dead("a"), stats(sent=1, dead_lettered=1)],
    ),
    (
        "more dead letters counted than listed",
        queues.dead_letters_are_there_once,
        [dead("a"), stats(sent=2, dead_lettered=2)],
    ),
    ("counts that lack one", queues.counts_add_up, [stats(sent=2, acknowledged=1)]),
    ("something still waits", queues.counts_add_up, [stats(sent=1, ready=1)]),
    (
        "an offset that was given twice",
        streams.an_offset_holds_one_value,
        [append(1, "a", 0), append(2, "b", 0)],
    ),
    (
        "a reader who sees another value",
        streams.an_offset_holds_one_value,
        [append(1, "a", 0), read(2, ("b", 0))],
    ),
    (
        "appended, and not to be read",
        streams.nothing_appended_is_lost,
        [append(1, "a", 0), append(2, "b", 1), read(3, ("a", 0))],
    ),
    (
        "a client's second append below its first",
        streams.offsets_rise,
        [append(1, "a", 5), append(2, "b", 4)],
    ),
    (
        "a key's records the wrong way round in one call",
        streams.a_key_goes_from_parents_to_children,
        [
            op(
                Kind.APPEND,
                1,
                Seen(value="a", offset=5, group="k"),
                Seen(value="b", offset=4, group="k"),
            )
        ],
    ),
    ("a page that goes back", streams.offsets_rise, [read(1, ("a", 1), ("b", 0))]),
    (
        "a repeated append at two places",
        streams.a_repeated_append_adds_nothing,
        [append(1, "a", 0), append(2, "a", 1)],
    ),
    (
        "a retry whose first try had an effect after all",
        streams.a_repeated_append_adds_nothing,
        [append(1, "a", 0, outcome=UNKNOWN), append(2, "a", 1), read(3, ("a", 0), ("a", 1))],
    ),
    (
        "a group that was not given a record it is past",
        groups.groups_skip_nothing,
        [read(1, ("a", 0), ("b", 1)), read(2, ("b", 1), kind=Kind.GROUP_READ), stands(3, 2)],
    ),
    (
        "a group past the end",
        groups.groups_skip_nothing,
        [read(1, ("a", 0)), read(2, ("a", 0), kind=Kind.GROUP_READ), stands(3, 2)],
    ),
    ("a group past nothing at all", groups.groups_skip_nothing, [stands(3, 1)]),
    (
        "a group past a gap that was told",
        groups.groups_skip_nothing,
        [read(1, gaps=(Gap(0, 0, 10_000, "expired"),)), stands(3, 10_001)],
    ),
    (
        "a group that does not arrive",
        groups.groups_arrive,
        [read(1, ("a", 0), ("b", 1)), stands(3, 1)],
    ),
    (
        "a committed offset that moved back",
        groups.committed_offsets_stay,
        [stands(1, 5, Kind.COMMIT), stands(2, 4)],
    ),
    (
        "one delivery in two hands",
        queues.a_delivery_is_one,
        [receive(1, "a", receives=1), receive(1.1, "a", receives=1, client="d")],
    ),
    (
        "an acknowledgement of a delivery that is another one's by now",
        queues.a_verdict_counts_for_its_delivery,
        [receive(1, "a", receives=1), receive(5, "a", receives=2), ack(6, "a", delivery=1)],
    ),
    (
        "receives that fall",
        queues.receives_never_fall,
        [receive(1, "a", receives=3), receive(5, "a", receives=2)],
    ),
    (
        "received again while it is hidden",
        queues.nothing_comes_early,
        [receive(1, "a", promised_s=3.0), receive(2, "a")],
    ),
    (
        "received before its delay is over",
        queues.nothing_comes_early,
        [send(1, "a", promised_s=3.0), receive(2, "a")],
    ),
    (
        "a dead letter that never came to its queue",
        queues.dead_letters_arrive_once,
        [send(1, "a"), receive(2, "a", receives=1), *buried()],
    ),
    (
        "back from among the dead letters",
        queues.dead_letters_arrive_once,
        [send(1, "a"), receive(2, "a", log="dead"), receive(3, "a", receives=2), *buried()],
    ),
    (
        "received more often than it may be",
        queues.dead_letters_arrive_once,
        [send(1, "a"), receive(2, "a", receives=3), receive(3, "a", log="dead"), *buried()],
    ),
    (
        "two copies for one that left",
        queues.dead_letters_arrive_once,
        [send(1, "a"), receive(3, "a", log="dead"), *buried(moved_in=2)],
    ),
    (
        "a child's number below its parent's",
        streams.children_lie_above_their_parents,
        [placed(1, 0, 0, 100), placed(2, 1, 0, 99), SPLIT],
    ),
    (
        "a key that goes to a shard which did not come from its own",
        streams.a_key_goes_from_parents_to_children,
        [placed(1, 1, 0, group="k"), placed(2, 2, 0, group="k"), SPLIT],
    ),
    (
        "a key that goes back to the parent",
        streams.a_key_goes_from_parents_to_children,
        [placed(1, 1, 0, group="k"), placed(2, 0, 7, group="k"), SPLIT],
    ),
    (
        "a page that lacks one in the middle",
        streams.nothing_is_skipped_in_silence,
        [read(1, ("a", 0), ("c", 2), first=0)],
    ),
    (
        "a page that begins too late",
        streams.nothing_is_skipped_in_silence,
        [read(1, ("b", 1), first=0)],
    ),
    (
        "a gap between the tiers",
        streams.hot_and_archive_meet,
        [read(1, ("a", 0), tier="archive"), read(2, ("c", 2))],
    ),
    (
        "a gap where somebody's record was",
        streams.hot_and_archive_meet,
        [
            read(1, ("a", 0), tier="archive"),
            append(1, "b", 1),
            read(3, ("c", 2), gaps=(Gap(0, 1, 2, "expired"),)),
        ],
    ),
    (
        "a changed byte that nobody noticed",
        streams.damage_is_told,
        [op(Kind.DAMAGE, 1, outcome=FAIL)],
    ),
    (
        "two owners",
        groups.a_shard_has_one_owner,
        [owns(1, "a", 7), owns(2, "b", 7)],
    ),
    (
        "a commit of a generation that is over",
        groups.a_stale_generation_moves_nothing,
        [owns(1, "a", 7), owns(2, "b", 8), commit(3, "a", 7, 5)],
    ),
    (
        "a replay that lacks one",
        streams.a_replay_sends_each_once,
        [read(1, ("a", 0), ("b", 1)), REPLAY, replayed("a")],
    ),
    (
        "a replay that sends one twice",
        streams.a_replay_sends_each_once,
        [read(1, ("a", 0), ("b", 1)), REPLAY, replayed("a", "b", "b")],
    ),
    (
        "a replay that sends what was not asked for",
        streams.a_replay_sends_each_once,
        [read(1, ("a", 0), ("b", 1), ("c", 2)), REPLAY, replayed("a", "b", "c")],
    ),
    (
        "an event that comes again",
        events.a_follower_gets_nothing_twice,
        [followed(1, 0), followed(2, 0, first=1)],
    ),
    (
        "an event that never comes",
        events.a_follower_gets_everything,
        [placed(1, 0, 0), placed(2, 0, 1), followed(3, 0)],
    ),
    (
        "events of a child before the parent's last",
        events.parents_are_followed_first,
        [placed(1, 0, 0), placed(2, 0, 1), SPLIT, followed(3, 0), followed(4, 0, 1)],
    ),
    (
        "events of a child, and none of its parent",
        events.parents_are_followed_first,
        [placed(1, 0, 0), SPLIT, followed(4, 0, 1)],
    ),
    (
        "an event between two that is not there",
        streams.nothing_is_skipped_in_silence,
        [followed(1, 0), followed(2, 2, first=1)],
    ),
    ("accepted, and never posted", webhooks.everything_due_is_posted, [HOOK, send(1, "a")]),
    (
        "appended, and never posted",
        webhooks.everything_due_is_posted,
        [HOOK, placed(1, 0, 0), placed(1, 0, 1), record_posted(2, 0)],
    ),
    (
        "posted, and not taken",
        webhooks.everything_due_is_posted,
        [HOOK, send(1, "a"), posted(2, "a", outcome=FAIL, code="dropped")],
    ),
    ("a webhook that had nothing to do", webhooks.everything_due_is_posted, [HOOK]),
    (
        "refused, and posted",
        webhooks.nothing_else_is_posted,
        [HOOK, send(1, "a", outcome=FAIL), posted(2, "a", outcome=FAIL)],
    ),
    (
        "posted from where there is no webhook",
        webhooks.nothing_else_is_posted,
        [send(1, "a"), posted(2, "a")],
    ),
    (
        "posted by another id",
        webhooks.what_is_posted_is_what_was_sent,
        [send(1, "a"), op(Kind.POSTED, 2, Seen(value="a", id="another"))],
    ),
    (
        "posted again by another id",
        webhooks.what_is_posted_is_what_was_sent,
        [posted(2, "a", outcome=FAIL), op(Kind.POSTED, 3, Seen(value="a", id="another"))],
    ),
    (
        "another body by the same id",
        webhooks.what_is_posted_is_what_was_sent,
        [send(1, "a"), op(Kind.POSTED, 2, Seen(value="b", id="id a"))],
    ),
    (
        "a record that readers see elsewhere",
        webhooks.what_is_posted_is_what_was_sent,
        [placed(1, 0, 0), op(Kind.POSTED, 2, Seen(value="0 0", id="s-0-1", offset=1))],
    ),
    (
        "a record whose id is about another place",
        webhooks.what_is_posted_is_what_was_sent,
        [placed(1, 0, 0), op(Kind.POSTED, 2, Seen(value="0 0", id="s-0-1", offset=0))],
    ),
    (
        "a signature that is not valid",
        webhooks.every_post_is_signed,
        [posted(1, "a", outcome=FAIL, code=webhooks.UNSIGNED)],
    ),
    (
        "posted before the first of its group is taken",
        webhooks.groups_are_posted_in_order,
        [
            send(1, "a", "g"),
            send(2, "b", "g"),
            posted(3, "a", "g", outcome=FAIL, code="failed"),
            posted(4, "b", "g"),
        ],
    ),
    (
        "posted again when the next of its group is taken",
        webhooks.groups_are_posted_in_order,
        [
            send(1, "a", "g"),
            send(2, "b", "g"),
            posted(3, "a", "g"),
            posted(4, "b", "g"),
            posted(5, "a", "g"),
        ],
    ),
    (
        "a record that is posted out of turn",
        webhooks.shards_are_posted_in_order,
        [placed(1, 0, 0), placed(1, 0, 1), record_posted(2, 0, outcome=FAIL), record_posted(3, 1)],
    ),
    (
        "a child's record that is posted before its parent's last",
        webhooks.shards_are_posted_in_order,
        [
            placed(1, 0, 0),
            placed(1, 0, 1),
            placed(1, 1, 0),
            SPLIT,
            record_posted(2, 0),
            record_posted(3, 0, 1),
        ],
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
def test_violated_invariant_is_reported(invariant, history):
    found = invariant(history)

    assert len(found.violations) == 1, found
    assert not found.holds


def test_every_invariant_has_a_violating_history():
    assert {invariant for _, invariant, _ in VIOLATIONS} == set(checker.INVARIANTS)


POSTED_AND_FOLLOWED = [
    op(Kind.WEBHOOK, 0, log="posted"),
    send(1, "p1", "g", log="posted"),
    send(2, "p2", "g", log="posted"),
    posted(3, "p1", "g", log="posted", outcome=FAIL, code="dropped"),
    posted(4, "p1", "g", log="posted"),
    posted(5, "p1", "g", log="posted"),
    posted(6, "p2", "g", log="posted"),
    op(Kind.WEBHOOK, 0, log="s"),
    placed(1, 0, 0, log="s"),
    placed(2, 1, 0, log="s"),
    op(Kind.SHARDS, 3, Seen(shard=0), Seen(shard=1, parents=(0,)), log="s"),
    record_posted(3, 0, log="s"),
    record_posted(4, 0, log="s"),
    record_posted(5, 0, 1, log="s"),
    op(Kind.FOLLOWED, 3, log="s", outcome=FAIL, status=503),
    followed(4, 0, log="s"),
    followed(5, 0, 1, log="s"),
    op(Kind.READ, 9, Seen(value="0 0", offset=0), Seen(value="1 0", shard=1, offset=0), log="s"),
]
"""A lost response to a deliverer, a deliverer that was killed, and a follower that was refused."""


def test_valid_history_satisfies_all_invariants():
    """Lost answers, repeats, redeliveries and a refusal, each of which is allowed."""
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
        receive(11, "lost answer", promised_s=3.0),
        receive(15, "lost answer"),
        ack(16, "lost answer", delivery=110, outcome=FAIL),
        ack(17, "lost answer", delivery=150),
        ack(18, "lost answer", delivery=110),
        append(1, "x", 0, outcome=UNKNOWN),
        append(2, "x", 0),
        append(3, "y", 1),
        read(4, ("x", 0), ("y", 1), kind=Kind.GROUP_READ),
        owns(4, "a", 1),
        stands(5, 2, Kind.COMMIT),
        owns(5, "b", 2),
        commit(6, "a", 1, 1, outcome=FAIL),
        stands(6, 2),
        read(7, ("x", 0), ("y", 1), tier="archive", first=0),
        placed(7, 0, 2, 100, group="k"),
        placed(8, 1, 0, 101, group="k"),
        SPLIT,
        op(Kind.READ, 8.6, Seen(value="0 2", offset=2), Seen(value="1 0", shard=1, offset=0)),
        read(8.7, ("x", 0), ("y", 1)),
        op(Kind.STANDING, 9, Seen(offset=3), Seen(shard=1, offset=1), group="g"),
        op(Kind.GROUP_READ, 8.8, Seen(value="1 0", shard=1, offset=0), group="g"),
        op(Kind.GROUP_READ, 8.9, Seen(value="0 2", offset=2), group="g"),
        REPLAY,
        replayed("x", "y"),
        op(Kind.DAMAGE, 9),
        send(1, "doomed", log="doomed"),
        receive(2, "doomed", log="doomed", receives=2),
        receive(3, "doomed", log="dead", receives=3),
        stats("doomed", "dead", sent=1, moved_out=1, receives_max=2),
        stats("dead", moved_in=1, acknowledged=1),
        dead("poison"),
        stats(sent=4, acknowledged=3, dead_lettered=1),
        op(Kind.SEND, 1, outcome=UNKNOWN, status=500, code=checker.UNANSWERED),
        *POSTED_AND_FOLLOWED,
    ]

    assert [finding for finding in checker.check(history) if not finding.holds] == []


def test_unknown_nack_ends_visibility_timeout():
    history = [
        receive(1, "a", promised_s=3.0),
        op(Kind.NACK, 1.6, values=("a",), outcome=UNKNOWN),
        receive(2, "a"),
        receive(9, "b", promised_s=3.0),
        receive(13, "b"),
    ]

    assert queues.nothing_comes_early(history).holds


def test_clock_fault_suspends_visibility_guarantees():
    history = [
        receive(1, "a", promised_s=3.0),
        op(Kind.CLOCK, 1.4),
        receive(2, "a"),
        receive(9, "b", promised_s=3.0),
        receive(13, "b"),
    ]

    assert queues.nothing_comes_early(history).holds


def test_clock_fault_permits_late_webhook_repeats():
    history = [
        send(1, "a", "g"),
        send(2, "b", "g"),
        posted(3, "a", "g"),
        op(Kind.CLOCK, 3.6),
        posted(4, "b", "g"),
        posted(5, "a", "g"),
    ]

    assert webhooks.groups_are_posted_in_order(history).holds


def test_unassigned_offsets_may_be_reported_as_gap():
    behind = read(1, ("a", 7), tier="archive", gaps=(Gap(0, 0, 7, "expired"),))

    assert streams.hot_and_archive_meet([behind]).holds


def test_group_may_start_at_first_offset_of_empty_log():
    """A group created while its store was lost; readers receive a gap."""
    behind = read(1, gaps=(Gap(0, 0, 10_000, "expired"),))

    assert groups.groups_skip_nothing([behind, stands(2, 10_000)]).holds


def test_dead_letter_with_only_lost_deliveries_is_not_lost():
    history = [send(1, "a"), receive(9, "a", log="dead"), *buried()]

    assert queues.nothing_accepted_is_lost(history).holds


def test_invariants_of_absent_features_are_skipped():
    found = {finding.name for finding in checker.check([], checker.OF_THE_ARCHIVE)}

    assert len(found) == len(checker.INVARIANTS) - len(checker.OF_THE_ARCHIVE)


def test_receive_overlapping_acknowledgement_is_allowed():
    history = [ack(2, "a"), receive(2.4, "a")]

    assert queues.nothing_acknowledged_returns(history).holds


def test_invariant_without_evidence_does_not_hold():
    assert [finding.name for finding in checker.check([]) if finding.holds] == []


def test_history_round_trips_through_file(tmp_path):
    history = History()
    for one in (send(1, "a", "g"), stats(sent=1), append(2, "x", 0, outcome=UNKNOWN)):
        history.add(one)

    history.write(tmp_path / "history.ndjson")

    assert [*read_history(tmp_path / "history.ndjson")] == history.operations
    assert history.counts()["append"] == {"ok": 0, "fail": 0, "unknown": 1}
