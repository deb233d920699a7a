"""The invariants of the chaos checker, each with a history that violates it."""

import pytest

from tests.chaos import checker
from tests.chaos.checking import (
    groups,
    pauses,
    positions,
    queues,
    streams,
    webhooks,
)
from tests.chaos.history import Gap, History, Kind, Seen, read_history
from tests.unit.chaos.histories import (
    ANSWERED_REQUESTS,
    COUNTED,
    FAIL,
    POSTED_AND_FOLLOWED,
    POSTED_EVENTS,
    PUBLISHED,
    RECREATED_AND_PAUSED,
    REPLAY,
    SPLIT,
    UNKNOWN,
    UNMATCHED,
    VISITED,
    ack,
    append,
    buried,
    commit,
    dead,
    op,
    owns,
    paused,
    placed,
    posted,
    read,
    receive,
    replayed,
    send,
    standing,
    stats,
    stream_appended,
    stream_deleted,
    stream_read,
)
from tests.unit.chaos.topic_violations import TOPIC_VIOLATIONS
from tests.unit.chaos.violations import OTHER_VIOLATIONS

VIOLATIONS = [*OTHER_VIOLATIONS, *TOPIC_VIOLATIONS]


@pytest.mark.parametrize(
    ("invariant", "history"),
    [violation[1:] for violation in VIOLATIONS],
    ids=[violation[0] for violation in VIOLATIONS],
)
def test_violated_invariant_is_reported(invariant, history):
    actual_invariant = invariant(history)

    assert len(actual_invariant.violations) == 1, actual_invariant
    assert not actual_invariant.holds


def test_every_invariant_has_a_violating_history():
    assert {invariant for _, invariant, _ in VIOLATIONS} == set(checker.INVARIANTS)


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
        standing(5, 2, Kind.COMMIT),
        owns(5, "b", 2),
        commit(6, "a", 1, 1, outcome=FAIL),
        standing(6, 2),
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
        receive(2, "doomed", log="doomed", receive_count=2),
        receive(3, "doomed", log="dead", receive_count=3),
        stats("doomed", "dead", sent=1, moved_out=1, receives_max=2),
        stats("dead", moved_in=1, acknowledged=1),
        dead("poison"),
        stats(sent=4, acknowledged=3, dead_lettered=1),
        op(Kind.SEND, 1, outcome=UNKNOWN, status=500, code=checker.UNANSWERED),
        *POSTED_AND_FOLLOWED,
        *POSTED_EVENTS,
        *RECREATED_AND_PAUSED,
        *ANSWERED_REQUESTS,
        *PUBLISHED,
        *VISITED,
        *COUNTED,
        *UNMATCHED,
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

    assert queues.timeouts_are_respected(history).holds


def test_clock_fault_suspends_visibility_guarantees():
    history = [
        receive(1, "a", promised_s=3.0),
        op(Kind.CLOCK, 1.4),
        receive(2, "a"),
        receive(9, "b", promised_s=3.0),
        receive(13, "b"),
    ]

    assert queues.timeouts_are_respected(history).holds


@pytest.mark.parametrize("at", [1.5, 6.8, 8.0])
def test_delivery_at_the_edge_of_a_pause_is_allowed(at):
    """Before every process has noticed the pause, after it, and while it ends."""
    history = [paused(1, log="q"), receive(3), receive(at, "a")]

    assert pauses.paused_queue_delivers_nothing(history).holds


def test_record_of_a_deleted_stream_need_not_be_readable():
    history = [stream_appended(1, 1, 0), stream_deleted(2, 1)]

    assert not streams.appended_record_is_not_lost(history).violations


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

    assert streams.tiers_are_contiguous([behind]).holds


def test_gap_that_the_writer_of_a_recreated_stream_notes_is_no_reading():
    """The writer was taken for a reader that had read nothing."""
    noted = op(Kind.READ, 2, log="t#1", client="writer", gaps=(Gap(0, 0, 7, "expired"),))
    history = [stream_appended(1, 1, 7), noted, stream_read(3, 1, 7)]

    assert positions.reader_skips_no_record_of_a_recreated_stream(history).holds


def test_gap_of_millions_of_offsets_is_checked_at_once():
    """Each fail-over leaves one: a run of four minutes was checked for as many."""
    gap = Gap(0, 1, 10**12, "hole")
    history = [read(1, ("a", 0), ("b", 10**12), tier="archive", first=0, gaps=(gap,))]

    assert streams.skipped_offsets_are_reported(history).holds
    assert streams.tiers_are_contiguous(history).holds


def test_group_may_start_at_first_offset_of_empty_log():
    """A group created while its store was lost; readers receive a gap."""
    behind = read(1, gaps=(Gap(0, 0, 10_000, "expired"),))

    assert groups.groups_skip_no_record([behind, standing(2, 10_000)]).holds


def test_dead_letter_with_only_lost_deliveries_is_not_lost():
    history = [send(1, "a"), receive(9, "a", log="dead"), *buried()]

    assert queues.accepted_message_is_not_lost(history).holds


def test_invariants_of_absent_features_are_skipped():
    names = {finding.name for finding in checker.check([], checker.ARCHIVE_INVARIANTS)}

    assert len(names) == len(checker.INVARIANTS) - len(checker.ARCHIVE_INVARIANTS)


def test_receive_overlapping_acknowledgement_is_allowed():
    history = [ack(2, "a"), receive(2.4, "a")]

    assert queues.acknowledged_message_is_not_redelivered(history).holds


def test_invariant_without_evidence_does_not_hold():
    assert [finding.name for finding in checker.check([]) if finding.holds] == []


def test_history_round_trips_through_file(tmp_path):
    history = History()
    for one in (send(1, "a", "g"), stats(sent=1), append(2, "x", 0, outcome=UNKNOWN)):
        history.add(one)

    history.write(tmp_path / "history.ndjson")

    assert [*read_history(tmp_path / "history.ndjson")] == history.operations
    assert history.counts()["append"] == {"ok": 0, "fail": 0, "unknown": 1}
