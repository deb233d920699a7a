"""Invariants of a history under any faults, numbered as in the design.

Each is a pure function that returns a `Finding`: the number of facts it checked, and the violations. An invariant
without evidence counts as a failure too, unless the run omits the feature.

A history ends with a drain: every queue is received and acknowledged until its counts are zero, every stream is read
from its start, every group to its end; then counts, dead letters and committed offsets are recorded.
"""

from collections.abc import Callable, Collection

from tests.chaos.checking import events, groups, queues, streams, webhooks
from tests.chaos.checking.findings import Finding, Operations, answers
from tests.chaos.history import DELIVERIES, READS, Kind, Outcome

UNANSWERED = "outcome_unknown"
"""The code of a 500 with unknown outcome: AWS protocols have no other status for it."""

Invariant = Callable[[Operations], Finding]


def check(history: Operations, without: Collection[Invariant] = ()) -> list[Finding]:
    """Check every invariant, except those without evidence in this run."""
    return [invariant(history) for invariant in INVARIANTS if invariant not in without]


def nothing_comes_from_nowhere(history: Operations) -> Finding:
    """Q5, converse: what was received had been sent, and refused sends have no effect."""
    possible = {
        (one.log, value)
        for one in history
        if one.kind in (Kind.SEND, Kind.APPEND) and one.outcome is not Outcome.FAIL
        for value in one.values
    }
    source = queues.sources_of_dead_letters(history)
    kinds = (*DELIVERIES, Kind.DEAD_LETTERS, *READS, Kind.GROUP_READ)
    found = {(source.get(one.log, one.log), seen.value) for one, seen in answers(history, *kinds)}
    wrong = [
        f"{value} is in {log}, and was refused or never sent"
        for log, value in sorted(found - possible)
    ]
    return Finding("Q5 nothing that was refused is there", len(found), tuple(wrong))


def no_answer_is_a_fault(history: Operations) -> Finding:
    """No 500, except for an unknown outcome in an AWS protocol."""
    wrong = [
        f"{one.client} was answered {one.status} {one.code} to {one.kind.value} of {one.log} at {one.ended:.3f}"
        for one in history
        if one.status == 500 and one.code != UNANSWERED
    ]
    return Finding("no answer is a 500", len(history), tuple(wrong))


OF_THE_ARCHIVE: tuple[Invariant, ...] = (
    streams.hot_and_archive_meet,
    streams.damage_is_told,
    streams.a_replay_sends_each_once,
)
"""Invariants without evidence in a run without a Spark worker."""

INVARIANTS: tuple[Invariant, ...] = (
    queues.a_delivery_is_one,
    queues.a_verdict_counts_for_its_delivery,
    queues.receives_never_fall,
    queues.nothing_acknowledged_returns,
    queues.nothing_accepted_is_lost,
    nothing_comes_from_nowhere,
    queues.groups_keep_their_order,
    queues.one_message_for_each_send,
    queues.nothing_comes_early,
    queues.dead_letters_are_there_once,
    queues.dead_letters_arrive_once,
    queues.counts_add_up,
    streams.an_offset_holds_one_value,
    streams.nothing_appended_is_lost,
    streams.offsets_rise,
    streams.children_lie_above_their_parents,
    streams.a_key_goes_from_parents_to_children,
    streams.nothing_is_skipped_in_silence,
    streams.hot_and_archive_meet,
    streams.damage_is_told,
    streams.a_repeated_append_adds_nothing,
    groups.a_shard_has_one_owner,
    groups.a_stale_generation_moves_nothing,
    groups.groups_skip_nothing,
    groups.groups_arrive,
    groups.committed_offsets_stay,
    streams.a_replay_sends_each_once,
    events.a_follower_gets_nothing_twice,
    events.a_follower_gets_everything,
    events.parents_are_followed_first,
    webhooks.everything_due_is_posted,
    webhooks.nothing_else_is_posted,
    webhooks.what_is_posted_is_what_was_sent,
    webhooks.every_post_is_signed,
    webhooks.groups_are_posted_in_order,
    webhooks.shards_are_posted_in_order,
    no_answer_is_a_fault,
)
