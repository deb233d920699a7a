"""Histories that break the other invariants, one each."""

from tests.chaos import checker
from tests.chaos.checking import (
    events,
    groups,
    pauses,
    positions,
    queues,
    sources,
    streams,
    webhooks,
)
from tests.chaos.history import Gap, Kind, Operation, Seen
from tests.unit.chaos.histories import (
    FAIL,
    HOOK,
    REJECTION,
    REPLAY,
    SPLIT,
    UNKNOWN,
    Invariant,
    ack,
    append,
    buried,
    commit,
    dead,
    event,
    followed,
    op,
    owns,
    paused,
    placed,
    posted,
    read,
    receive,
    record_posted,
    replayed,
    send,
    standing,
    stats,
    stream_appended,
    stream_deleted,
    stream_read,
)

OTHER_VIOLATIONS: list[tuple[str, Invariant, list[Operation]]] = [
    (
        "acknowledged message is redelivered",
        queues.acknowledged_message_is_not_redelivered,
        [receive(1, "a"), ack(2, "a"), receive(3, "a")],
    ),
    ("accepted message is lost", queues.accepted_message_is_not_lost, [send(1, "a")]),
    (
        "accepted message is in another queue",
        queues.accepted_message_is_not_lost,
        [send(1, "a"), op(Kind.RECEIVE, 2, Seen(value="a"), log="another")],
    ),
    (
        "rejected message is received",
        checker.rejected_send_has_no_effect,
        [send(1, "a", outcome=FAIL), receive(2, "a")],
    ),
    ("unknown message is received", checker.rejected_send_has_no_effect, [receive(2, "a")]),
    (
        "rejected record is read",
        checker.rejected_send_has_no_effect,
        [append(1, "a", 0, outcome=FAIL), read(2, ("a", 0))],
    ),
    (
        "second message of a group is first",
        queues.message_groups_are_ordered,
        [send(1, "a", "g"), send(2, "b", "g"), receive(3, "b", group="g")],
    ),
    (
        "wrong order within one response",
        queues.message_groups_are_ordered,
        [send(1, "a", "g"), send(2, "b", "g"), receive(3, "b", "a", group="g")],
    ),
    (
        "message overtakes one in flight",
        queues.message_groups_are_ordered,
        [
            send(1, "a", "g"),
            send(2, "b", "g"),
            receive(3, "a", group="g"),
            receive(4, "b", group="g"),
            ack(5, "a"),
        ],
    ),
    (
        "repeated send is two messages",
        queues.repeated_send_is_one_message,
        [send(1, "a"), receive(2, "a"), op(Kind.RECEIVE, 3, Seen(value="a", id="another"))],
    ),
    (
        "message is dead-lettered twice",
        queues.dead_letters_are_unique,
        [dead("a", "a"), stats(sent=2, dead_lettered=2)],
    ),
    (
        "acknowledged message is dead-lettered",
        queues.dead_letters_are_unique,
        [ack(1, "a"), dead("a"), stats(sent=1, dead_lettered=1)],
    ),
    (
        "dead-letter count exceeds the list",
        queues.dead_letters_are_unique,
        [dead("a"), stats(sent=2, dead_lettered=2)],
    ),
    ("counts miss a message", queues.counts_are_consistent, [stats(sent=2, acknowledged=1)]),
    ("queue is not drained", queues.counts_are_consistent, [stats(sent=1, ready=1)]),
    (
        "offset is assigned twice",
        streams.offset_has_one_value,
        [append(1, "a", 0), append(2, "b", 0)],
    ),
    (
        "reader sees another value",
        streams.offset_has_one_value,
        [append(1, "a", 0), read(2, ("b", 0))],
    ),
    (
        "appended record cannot be read",
        streams.appended_record_is_not_lost,
        [append(1, "a", 0), append(2, "b", 1), read(3, ("a", 0))],
    ),
    (
        "second append is below the first",
        streams.offsets_increase,
        [append(1, "a", 5), append(2, "b", 4)],
    ),
    (
        "records of a key are reversed in one call",
        streams.key_moves_from_parents_to_children,
        [
            op(
                Kind.APPEND,
                1,
                Seen(value="a", offset=5, group="k"),
                Seen(value="b", offset=4, group="k"),
            )
        ],
    ),
    ("offsets decrease within a page", streams.offsets_increase, [read(1, ("a", 1), ("b", 0))]),
    (
        "repeated append is at two offsets",
        streams.repeated_append_is_idempotent,
        [append(1, "a", 0), append(2, "a", 1)],
    ),
    (
        "unknown append and its retry both took effect",
        streams.repeated_append_is_idempotent,
        [append(1, "a", 0, outcome=UNKNOWN), append(2, "a", 1), read(3, ("a", 0), ("a", 1))],
    ),
    (
        "group skips a record",
        groups.groups_skip_no_record,
        [read(1, ("a", 0), ("b", 1)), read(2, ("b", 1), kind=Kind.GROUP_READ), standing(3, 2)],
    ),
    (
        "group is past the end",
        groups.groups_skip_no_record,
        [read(1, ("a", 0)), read(2, ("a", 0), kind=Kind.GROUP_READ), standing(3, 2)],
    ),
    ("group is past an empty log", groups.groups_skip_no_record, [standing(3, 1)]),
    (
        "group is past a reported gap",
        groups.groups_skip_no_record,
        [read(1, gaps=(Gap(0, 0, 10_000, "expired"),)), standing(3, 10_001)],
    ),
    (
        "group does not reach the end",
        groups.groups_reach_the_end,
        [read(1, ("a", 0), ("b", 1)), standing(3, 1)],
    ),
    (
        "committed offset decreases",
        groups.committed_offsets_never_decrease,
        [standing(1, 5, Kind.COMMIT), standing(2, 4)],
    ),
    (
        "delivery is returned twice",
        queues.delivery_is_returned_once,
        [receive(1, "a", receive_count=1), receive(1.1, "a", receive_count=1, client="d")],
    ),
    (
        "stale delivery is acknowledged",
        queues.stale_delivery_cannot_be_acknowledged,
        [
            receive(1, "a", receive_count=1),
            receive(5, "a", receive_count=2),
            ack(6, "a", delivery=1),
        ],
    ),
    (
        "receive count decreases",
        queues.receive_count_increases,
        [receive(1, "a", receive_count=3), receive(5, "a", receive_count=2)],
    ),
    (
        "message is redelivered before its visibility timeout",
        queues.timeouts_are_respected,
        [receive(1, "a", promised_s=3.0), receive(2, "a")],
    ),
    (
        "message is received before its delay",
        queues.timeouts_are_respected,
        [send(1, "a", promised_s=3.0), receive(2, "a")],
    ),
    (
        "dead letter does not reach its queue",
        queues.dead_letter_queue_receives_once,
        [send(1, "a"), receive(2, "a", receive_count=1), *buried()],
    ),
    (
        "message returns from the dead-letter queue",
        queues.dead_letter_queue_receives_once,
        [send(1, "a"), receive(2, "a", log="dead"), receive(3, "a", receive_count=2), *buried()],
    ),
    (
        "message exceeds the maximum of receives",
        queues.dead_letter_queue_receives_once,
        [send(1, "a"), receive(2, "a", receive_count=3), receive(3, "a", log="dead"), *buried()],
    ),
    (
        "two copies of one moved message",
        queues.dead_letter_queue_receives_once,
        [send(1, "a"), receive(3, "a", log="dead"), *buried(moved_in=2)],
    ),
    (
        "sequence number of child is below parent",
        streams.child_sequence_numbers_exceed_parents,
        [placed(1, 0, 0, 100), placed(2, 1, 0, 99), SPLIT],
    ),
    (
        "key moves to an unrelated shard",
        streams.key_moves_from_parents_to_children,
        [placed(1, 1, 0, group="k"), placed(2, 2, 0, group="k"), SPLIT],
    ),
    (
        "key moves back to the parent",
        streams.key_moves_from_parents_to_children,
        [placed(1, 1, 0, group="k"), placed(2, 0, 7, group="k"), SPLIT],
    ),
    (
        "page misses an offset",
        streams.skipped_offsets_are_reported,
        [read(1, ("a", 0), ("c", 2), first=0)],
    ),
    (
        "page starts too late",
        streams.skipped_offsets_are_reported,
        [read(1, ("b", 1), first=0)],
    ),
    (
        "gap between the tiers",
        streams.tiers_are_contiguous,
        [read(1, ("a", 0), tier="archive"), read(2, ("c", 2))],
    ),
    (
        "gap at an appended record",
        streams.tiers_are_contiguous,
        [
            read(1, ("a", 0), tier="archive"),
            append(1, "b", 1),
            read(3, ("c", 2), gaps=(Gap(0, 1, 2, "expired"),)),
        ],
    ),
    (
        "changed byte is not detected",
        streams.damage_is_detected,
        [op(Kind.DAMAGE, 1, outcome=FAIL)],
    ),
    (
        "shard has two owners",
        groups.shard_has_one_owner,
        [owns(1, "a", 7), owns(2, "b", 7)],
    ),
    (
        "commit of a stale generation",
        groups.stale_generation_cannot_commit,
        [owns(1, "a", 7), owns(2, "b", 8), commit(3, "a", 7, 5)],
    ),
    (
        "replay misses a record",
        streams.replay_sends_each_record_once,
        [read(1, ("a", 0), ("b", 1)), REPLAY, replayed("a")],
    ),
    (
        "replay sends a record twice",
        streams.replay_sends_each_record_once,
        [read(1, ("a", 0), ("b", 1)), REPLAY, replayed("a", "b", "b")],
    ),
    (
        "replay sends a record outside its window",
        streams.replay_sends_each_record_once,
        [read(1, ("a", 0), ("b", 1), ("c", 2)), REPLAY, replayed("a", "b", "c")],
    ),
    (
        "event is repeated",
        events.follower_receives_no_duplicates,
        [followed(1, 0), followed(2, 0, first=1)],
    ),
    (
        "event is missing",
        events.follower_receives_every_record,
        [placed(1, 0, 0), placed(2, 0, 1), followed(3, 0)],
    ),
    (
        "child events precede the parent's last",
        events.follower_receives_parents_first,
        [placed(1, 0, 0), placed(2, 0, 1), SPLIT, followed(3, 0), followed(4, 0, 1)],
    ),
    (
        "child events without parent events",
        events.follower_receives_parents_first,
        [placed(1, 0, 0), SPLIT, followed(4, 0, 1)],
    ),
    (
        "event is skipped",
        streams.skipped_offsets_are_reported,
        [followed(1, 0), followed(2, 2, first=1)],
    ),
    ("accepted message is not posted", webhooks.every_message_is_posted, [HOOK, send(1, "a")]),
    (
        "appended record is not posted",
        webhooks.every_message_is_posted,
        [HOOK, placed(1, 0, 0), placed(1, 0, 1), record_posted(2, 0)],
    ),
    (
        "post is not accepted",
        webhooks.every_message_is_posted,
        [HOOK, send(1, "a"), posted(2, "a", outcome=FAIL, code="dropped")],
    ),
    ("webhook without messages", webhooks.every_message_is_posted, [HOOK]),
    (
        "rejected message is posted",
        webhooks.nothing_else_is_posted,
        [HOOK, send(1, "a", outcome=FAIL), posted(2, "a", outcome=FAIL)],
    ),
    (
        "post without a webhook",
        webhooks.nothing_else_is_posted,
        [send(1, "a"), posted(2, "a")],
    ),
    (
        "post has another id",
        webhooks.posts_match_the_source,
        [send(1, "a"), op(Kind.POSTED, 2, Seen(value="a", id="another"))],
    ),
    (
        "repeated post has another id",
        webhooks.posts_match_the_source,
        [posted(2, "a", outcome=FAIL), op(Kind.POSTED, 3, Seen(value="a", id="another"))],
    ),
    (
        "another body with the same id",
        webhooks.posts_match_the_source,
        [send(1, "a"), op(Kind.POSTED, 2, Seen(value="b", id="id a"))],
    ),
    (
        "record is posted with another offset",
        webhooks.posts_match_the_source,
        [placed(1, 0, 0), op(Kind.POSTED, 2, Seen(value="0 0", id="s-0-1", offset=1))],
    ),
    (
        "record id names another offset",
        webhooks.posts_match_the_source,
        [placed(1, 0, 0), op(Kind.POSTED, 2, Seen(value="0 0", id="s-0-1", offset=0))],
    ),
    (
        "signature is invalid",
        webhooks.every_post_is_signed,
        [posted(1, "a", outcome=FAIL, code=webhooks.UNSIGNED)],
    ),
    (
        "post precedes acceptance of an earlier message",
        webhooks.groups_are_posted_in_order,
        [
            send(1, "a", "g"),
            send(2, "b", "g"),
            posted(3, "a", "g", outcome=FAIL, code="failed"),
            posted(4, "b", "g"),
        ],
    ),
    (
        "post is repeated after a later message",
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
        "record is posted out of order",
        webhooks.shards_are_posted_in_order,
        [placed(1, 0, 0), placed(1, 0, 1), record_posted(2, 0, outcome=FAIL), record_posted(3, 1)],
    ),
    (
        "child record precedes the parent's last",
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
    ("accepted event is lost", sources.event_is_in_its_target_once, [event(1, "e")]),
    (
        "repeated event is two messages",
        sources.event_is_in_its_target_once,
        [
            event(1, "e"),
            event(2, "e"),
            receive(3, "e"),
            op(Kind.RECEIVE, 4, Seen(value="e", id="another")),
        ],
    ),
    (
        "unknown event is two records",
        sources.event_is_in_its_target_once,
        [event(1, "e", outcome=UNKNOWN), read(2, ("e", 0), ("e", 1))],
    ),
    (
        "response is a 500",
        checker.server_errors_say_what_happened,
        [op(Kind.READ, 1, outcome=UNKNOWN, status=500, code="InternalFailure")],
    ),
    (
        "response is a 502",
        checker.server_errors_say_what_happened,
        [op(Kind.READ, 1, outcome=UNKNOWN, status=502)],
    ),
    (
        "503 does not say when to retry",
        checker.server_errors_say_what_happened,
        [op(Kind.READ, 1, outcome=UNKNOWN, status=503, lacks_retry_after=True)],
    ),
    (
        "position is used in the next stream",
        positions.position_is_rejected_in_another_stream,
        [stream_read(1, 1, 0), stream_read(2, 2, 0)],
    ),
    (
        "rejection is another reader's",
        positions.position_is_rejected_in_another_stream,
        [
            stream_read(1, 1, 0),
            op(Kind.READ, 2, **{**REJECTION, "client": "other"}),
            stream_read(3, 2, 0),
        ],
    ),
    (
        "missing stream is not a rejection",
        positions.position_is_rejected_in_another_stream,
        [
            stream_read(1, 1, 0),
            op(Kind.READ, 2, **{**REJECTION, "code": "stream_not_found"}),
            stream_read(3, 2, 0),
        ],
    ),
    (
        "reader skips the first record of the next stream",
        positions.reader_skips_no_record_of_a_recreated_stream,
        [
            stream_appended(1, 1, 0),
            stream_read(2, 1, 0),
            stream_deleted(3, 1),
            stream_appended(4, 2, 0),
            stream_appended(5, 2, 1),
            stream_read(6, 2, 1),
        ],
    ),
    (
        "reader never reads the last stream",
        positions.reader_skips_no_record_of_a_recreated_stream,
        [stream_appended(1, 1, 0), op(Kind.READ, 2, **REJECTION)],
    ),
    (
        "reader of a deleted stream skips a record before its last",
        positions.reader_skips_no_record_of_a_recreated_stream,
        [
            stream_appended(1, 1, 0),
            stream_appended(2, 1, 1),
            stream_read(3, 1, 1),
            stream_deleted(4, 1),
        ],
    ),
    (
        "group skips a record of the next stream",
        positions.reader_skips_no_record_of_a_recreated_stream,
        [
            stream_appended(1, 1, 0),
            stream_appended(1, 1, 1),
            stream_read(2, 1, 1, group="g"),
        ],
    ),
    (
        "token of a deleted stream is committed",
        positions.deleted_stream_accepts_no_commit,
        [stream_deleted(1, 1), commit(2, "r", -1, 7, log="t#1")],
    ),
    (
        "paused queue delivers",
        pauses.paused_queue_delivers_nothing,
        [paused(1, log="q"), receive(3, "a")],
    ),
    (
        "paused queue uses credit",
        pauses.paused_queue_delivers_nothing,
        [paused(1, log="q"), op(Kind.PUSHED, 3, Seen(value="a"))],
    ),
    (
        "paused group is given a record",
        pauses.paused_group_receives_nothing,
        [paused(1, group="g"), read(3, ("a", 0), kind=Kind.GROUP_READ, generation=1)],
    ),
]
