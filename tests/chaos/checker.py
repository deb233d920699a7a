"""Invariants of a history under any faults, numbered as in the design.

Each is a pure function that returns a `Finding`: the number of facts it checked, and the violations. An invariant
without evidence counts as a failure too, unless the run omits the feature.

A history ends with a drain: every queue is received and acknowledged until its counts are zero, every stream is read
from its start, every group to its end; then counts, dead letters and committed offsets are recorded.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from tests.chaos.checking import (
    events,
    groups,
    pauses,
    positions,
    queues,
    requests,
    routing,
    sources,
    spreads,
    streams,
    topics,
    views,
    webhooks,
)
from tests.chaos.checking.findings import Finding, Operations, answers
from tests.chaos.history import DELIVERIES, READS, Kind, Operation, Outcome

COPIES = "notices.copies"
"""Stream that receives every message of the topics."""

POSTS = "notices.posts"
"""Route whose URL receives every message of the first topic."""

LATE = "notices.late"
"""Stream that receives every message of the first topic."""

VISITS = "stream:visits"
"""Topic of a stream with two routes."""

VISIT_COPIES, CHOSEN = "visits.copies", "visits.chosen"
"""Streams that receive every record of that stream, and those of a match that changes."""

PARCELS = "queue:parcels"
"""Topic of a FIFO queue with a route whose match changes."""

SHIPPED = "parcels.shipped"
"""Stream that receives the messages of that route."""

TWICE = "twice"
"""Queue that receives some messages of the first topic by two routes."""

TWICE_ROUTES = ("twice.first", "twice.second")
REPLACED = "replaced"
"""Queue that receives every message of the first topic, and is deleted and created again."""

PAYMENTS = "payments"
"""FIFO topic."""

TALLY = "tally"
"""View of the stream `events`, with a row for each shard."""

PAIRS = "pairs"
"""View of the pairs of records of two streams whose values end alike, with a row for each ending."""

PAIRED = (VISITS.removeprefix("stream:"), VISIT_COPIES)
"""The two streams that it joins."""

UNCHOSEN = "unchosen"
"""View of the records of VISITS without one of CHOSEN, with a row for each ending of values."""

BY_KEY, BY_SUBJECT = "by-key", "by-subject"
BY_KEY_STREAM = "by-key.stream"
SPREADS: Mapping[str, Sequence[spreads.SpreadTarget]] = {
    BY_KEY: (
        spreads.spread("key", {"queue:by-key.queue": 2, "stream:by-key.stream": 1}),
        spreads.spread(
            "key", {"queue:by-key.queue": 2, "stream:by-key.stream": 1, "stream:by-key.late": 1}
        ),
        spreads.spread("key", {"stream:by-key.stream": 3, "stream:by-key.late": 1}),
    ),
    BY_SUBJECT: (
        spreads.spread("subject", {"queue:by-subject.queue": 2, "stream:by-subject.stream": 1}),
        spreads.spread("subject", {"queue:by-subject.queue": 1, "stream:by-subject.stream": 4}),
    ),
}
"""Routes of the first topic that receive every message, with the targets that they have in turn."""

SPREAD_LOGS = {
    label.partition(":")[2]: route
    for route, targets in SPREADS.items()
    for label in spreads.labels_of(targets)
}
"""Those routes by the logs of their members."""

UNANSWERED = "outcome_unknown"
"""The code of a 500 with unknown outcome: AWS protocols have no other status for it."""

Invariant = Callable[[Operations], Finding]


def check(history: Operations, without: Collection[Invariant] = ()) -> list[Finding]:
    """Check every invariant, except those without evidence in this run."""
    return [invariant(history) for invariant in INVARIANTS if invariant not in without]


def without_silent_gaps(history: Operations) -> Operations:
    """Drop the start of reads over the Kinesis protocol, which cannot report gaps."""
    return [
        msgspec.structs.replace(operation, first=-1)
        if operation.kind is Kind.READ and any(seen.number for seen in operation.seen)
        else operation
        for operation in history
    ]


def rejected_send_has_no_effect(history: Operations) -> Finding:
    """Q5, converse: what was received had been sent, and refused sends have no effect."""
    possible = {
        (operation.log, value)
        for operation in history
        if operation.kind in (Kind.SEND, Kind.APPEND, Kind.EVENT)
        and operation.outcome is not Outcome.FAIL
        for value in operation.values
    }
    source = queues.dead_letter_sources(history)
    kinds = (*DELIVERIES, Kind.DEAD_LETTERS, *READS, Kind.GROUP_READ)
    published = {
        value
        for operation in history
        if operation.kind is Kind.PUBLISH and operation.outcome is not Outcome.FAIL
        for value in operation.values
    }
    found = {
        (source.get(operation.log, operation.log), seen.value)
        for operation, seen in answers(history, *kinds)
        if seen.value not in published
    }
    wrong = [
        f"{value} is in {log}, and was refused or never sent"
        for log, value in sorted(found - possible)
    ]
    return Finding("Q5 rejected sends have no effect", len(found), tuple(wrong))


def server_errors_say_what_happened(history: Operations) -> Finding:
    """Every 5xx is a 503 with `Retry-After`, or an unknown outcome: 504, in AWS protocols a 500 that says so."""
    wrong = [
        f"{operation.client} was answered {operation.status} {operation.code} to {operation.kind.value} of {operation.log} at {operation.ended:.3f}"
        for operation in history
        if operation.status >= 500 and not _says_what_happened(operation)
    ]
    return Finding("5xx are 503 with Retry-After or unknown", len(history), tuple(wrong))


def _says_what_happened(operation: Operation) -> bool:
    match operation.status:
        case 503:
            return not operation.lacks_retry_after
        case 504:
            return True
        case _:
            return operation.code == UNANSWERED


VIEW_INVARIANTS: tuple[Invariant, ...] = (
    views.rows_count_each_record_once(TALLY),
    views.changes_add_up_to_the_rows(TALLY),
    views.sources_are_tight(TALLY),
    views.rebuild_has_equal_rows(TALLY),
    views.history_is_what_was_read(TALLY),
    views.back_tests_have_the_same_rows(TALLY),
    views.pairs_are_counted_once(PAIRS, *PAIRED),
    views.unmatched_are_counted_once(UNCHOSEN, PAIRED[0], CHOSEN),
)

ARCHIVE_INVARIANTS: tuple[Invariant, ...] = (
    *VIEW_INVARIANTS,
    streams.tiers_are_contiguous,
    streams.damage_is_detected,
    streams.replay_sends_each_record_once,
)
"""Invariants without evidence in a run without a Spark worker."""

TARGET_INVARIANTS: tuple[Invariant, ...] = (
    routing.full_target_delays_no_other,
    routing.recreated_target_misses_only_earlier(REPLACED),
)
"""Invariants of topics whose evidence are faults of targets."""

TOPIC_INVARIANTS: tuple[Invariant, ...] = (
    topics.message_reaches_each_route_once(
        SPREAD_LOGS, LATE, POSTS, REPLACED, *TWICE_ROUTES, CHOSEN
    ),
    topics.url_receives_each_message(POSTS),
    topics.url_receives_keys_in_order(POSTS),
    topics.accepted_message_is_kept,
    topics.routes_are_cut_exactly(topics.subject_of),
    topics.messages_of_key_keep_order(COPIES),
    topics.records_reach_changed_route(VISITS, CHOSEN, topics.subject_of),
    topics.messages_of_key_keep_order(CHOSEN),
    topics.messages_of_key_keep_order(VISIT_COPIES),
    topics.messages_of_key_keep_order(SHIPPED),
    topics.route_from_earliest_takes_all(LATE),
    topics.counts_of_routes_add_up(LATE),
    topics.messages_of_key_keep_order(LATE),
    requests.request_has_its_replies,
    requests.reply_is_for_its_request,
    topics.dedup_id_adds_one_message(PAYMENTS),
    topics.first_messages_keep_order(PAYMENTS),
    routing.unacknowledged_message_is_whole(SPREAD_LOGS, POSTS, REPLACED, *TWICE_ROUTES, CHOSEN),
    routing.routes_bring_one_copy_each(TWICE, TWICE_ROUTES),
    routing.decision_is_final(LATE),
    spreads.message_is_in_its_member(BY_KEY, SPREADS[BY_KEY]),
    spreads.message_is_in_its_member(BY_SUBJECT, SPREADS[BY_SUBJECT]),
    topics.messages_of_key_keep_order(BY_KEY_STREAM),
    *TARGET_INVARIANTS,
    *VIEW_INVARIANTS,
)
"""Invariants of topics, requests and views, without evidence in a run that begins with a release without them."""

INVARIANTS: tuple[Invariant, ...] = (
    queues.delivery_is_returned_once,
    queues.stale_delivery_cannot_be_acknowledged,
    queues.receive_count_increases,
    queues.acknowledged_message_is_not_redelivered,
    queues.accepted_message_is_not_lost,
    rejected_send_has_no_effect,
    queues.message_groups_are_ordered,
    queues.repeated_send_is_one_message,
    queues.timeouts_are_respected,
    queues.dead_letters_are_unique,
    queues.dead_letter_queue_receives_once,
    queues.counts_are_consistent,
    streams.offset_has_one_value,
    streams.appended_record_is_not_lost,
    streams.offsets_increase,
    streams.child_sequence_numbers_exceed_parents,
    streams.key_moves_from_parents_to_children,
    streams.skipped_offsets_are_reported,
    streams.tiers_are_contiguous,
    streams.damage_is_detected,
    streams.repeated_append_is_idempotent,
    groups.shard_has_one_owner,
    groups.stale_generation_cannot_commit,
    groups.groups_skip_no_record,
    groups.groups_reach_the_end,
    groups.committed_offsets_never_decrease,
    positions.position_is_rejected_in_another_stream,
    positions.reader_skips_no_record_of_a_recreated_stream,
    positions.deleted_stream_accepts_no_commit,
    pauses.paused_queue_delivers_nothing,
    pauses.paused_group_receives_nothing,
    streams.replay_sends_each_record_once,
    sources.event_is_in_its_target_once,
    *TOPIC_INVARIANTS,
    events.follower_receives_no_duplicates,
    events.follower_receives_every_record,
    events.follower_receives_parents_first,
    webhooks.every_message_is_posted,
    webhooks.nothing_else_is_posted,
    webhooks.posts_match_the_source,
    webhooks.every_post_is_signed,
    webhooks.groups_are_posted_in_order,
    webhooks.shards_are_posted_in_order,
    server_errors_say_what_happened,
)
