"""The invariants of the chaos checker, each with a history that violates it."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

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
from tests.chaos.checking.findings import Finding
from tests.chaos.history import Gap, History, Kind, Operation, Outcome, Seen, read_history

COUNTS = dict.fromkeys(("sent", "moved_in", *queues.STAYING, *queues.GONE), 0)


def op(kind: Kind, at: float, *seen: Seen, **more: Any) -> Operation:
    """A call that is made at `at` and answered half a second later."""
    known: dict[str, Any] = {"log": "q", "client": "c", "outcome": Outcome.OK, **more}
    return Operation(kind=kind, invoked=at, ended=at + 0.5, seen=seen, **known)


(
    REACHED,
    POSTED,
    KEPT,
    CUT,
    ORDERED,
    CHOSEN,
    CHOSEN_ORDERED,
    VISITS_ORDERED,
    FROM_EARLIEST,
    ADD_UP,
    LATE_ORDERED,
    REPLIED,
    ADDRESSED,
    DEDUPLICATED,
    FIRST_ORDERED,
    WHOLE,
    ONE_COPY_EACH,
    FINAL,
    APART,
    RECREATED,
) = checker.TOPIC_INVARIANTS


def late_route(at: float) -> Operation:
    seen = Seen(value=checker.LATE, offset=3)
    return op(Kind.ROUTE, at, seen, group=checker.LATE, values=("s0",), log="topic")


def payment(at: float, value: str, offset: int) -> Operation:
    seen = Seen(value=value, offset=offset)
    return op(Kind.PUBLISH, at, seen, values=(value,), log=checker.PAYMENTS)


def payments_taken(at: float, *values: str) -> Operation:
    """All messages of the FIFO topic."""
    seen = (Seen(value=value, offset=offset) for offset, value in enumerate(values))
    return op(Kind.TAKEN, at, *seen, log=checker.PAYMENTS)


def publication(at: float, value: str) -> Operation:
    return op(Kind.PUBLISH, at, Seen(value=value), values=(value,), log="topic")


def taken(at: float, *messages: tuple[str, int], routes: tuple[int, ...] = ()) -> Operation:
    """All messages of the topic, with the routes that take each."""
    seen = (Seen(value=value, offset=offset, routes=routes) for value, offset in messages)
    return op(Kind.TAKEN, at, *seen, log="topic")


def put_route(number: int, name: str, *subjects: str) -> Operation:
    seen = Seen(value=name, offset=number)
    return op(Kind.ROUTE, 1, seen, log="topic", group=name, values=subjects)


def chosen(at: float, *subjects: str) -> Operation:
    """Put the changing route of the stream."""
    seen = Seen(value=checker.CHOSEN, offset=2)
    return op(Kind.ROUTE, at, seen, log=checker.VISITS, group=checker.CHOSEN, values=subjects)


def visit(at: float, value: str) -> Operation:
    return op(Kind.PUBLISH, at, Seen(value=value), values=(value,), log=checker.VISITS)


def single_publication(at: float, value: str, outcome: Outcome) -> Operation:
    """Publish a message, without an acknowledgement."""
    return op(Kind.PUBLISH, at, values=(value,), log="topic", outcome=outcome)


def decided(at: float, value: str, offset: int, *routes: int) -> Operation:
    return op(Kind.DECIDED, at, Seen(value=value, offset=offset, routes=routes), log="topic")


def target_deleted(at: float) -> Operation:
    return op(Kind.TARGET_DELETED, at, log=checker.REPLACED)


def route_stats(at: float, route: str, number: int, **counts: int) -> Operation:
    seen = Seen(value=route, offset=number)
    return op(Kind.ROUTE_STATS, at, seen, counts=counts, log="topic")


def asked(at: float, value: str, replies_max: int = 1) -> Operation:
    return op(Kind.ASK, at, values=(value,), counts={"replies_max": replies_max})


def replied(at: float, value: str, reply: str, **more: Any) -> Operation:
    return op(Kind.REPLY, at, values=(reply,), group=value, **more)


def read_replies(at: float, value: str, *replies: str) -> Operation:
    return op(Kind.REPLIES, at, *[Seen(value=reply) for reply in replies], group=value)


def send(at: float, value: str, group: str = "", **more: Any) -> Operation:
    return op(
        Kind.SEND, at, Seen(value=value, id=f"id {value}"), values=(value,), group=group, **more
    )


def receive(
    at: float, *values: str, group: str = "", receive_count: int = 0, **more: Any
) -> Operation:
    """Receive messages; the receive count defaults to the time."""
    count = receive_count or int(at * 10)
    seen = (
        Seen(value=value, id=f"id {value}", group=group, receive_count=count) for value in values
    )
    return op(Kind.RECEIVE, at, *seen, **more)


def ack(at: float, value: str, **more: Any) -> Operation:
    return op(Kind.ACK, at, values=(value,), **more)


def event(at: float, value: str, **more: Any) -> Operation:
    return op(Kind.EVENT, at, values=(value,), **more)


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


def standing(at: float, offset: int, kind: Kind = Kind.STANDING) -> Operation:
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


def stream_read(at: float, number: int, *offsets: int, **more: Any) -> Operation:
    """Read the records of one of the streams named `t`."""
    seen = (Seen(value=f"{number}:{offset}", offset=offset) for offset in offsets)
    return op(Kind.READ, at, *seen, **{"log": f"t#{number}", "client": "r", **more})


def stream_appended(at: float, number: int, offset: int) -> Operation:
    return append(at, f"{number}:{offset}", offset, log=f"t#{number}")


def stream_deleted(at: float, number: int) -> Operation:
    return op(Kind.DELETED, at, log=f"t#{number}")


def paused(at: float, **more: Any) -> Operation:
    """A pause of six seconds, noticed within one."""
    pause = op(Kind.PAUSED, at, promised_s=1.0, **{"log": "", **more})
    return msgspec.structs.replace(pause, ended=at + 6)


UNKNOWN, FAIL = Outcome.UNKNOWN, Outcome.FAIL
REJECTION: dict[str, Any] = {"log": "t", "client": "r", "outcome": FAIL, "code": "stream_recreated"}
Invariant = Callable[[Sequence[Operation]], Finding]

ROUTE = op(
    Kind.ROUTE,
    1,
    Seen(value=checker.COPIES, offset=1),
    log="topic",
    group=checker.COPIES,
    values=("s0", "s1", "s2"),
)
URL_ROUTE = op(
    Kind.ROUTE,
    1,
    Seen(value=checker.POSTS, offset=2),
    log="topic",
    group=checker.POSTS,
    values=("s0", "s1", "s2"),
)


def posted_to_url(at: float, value: str, event_id: str, **more: Any) -> Operation:
    return op(Kind.ROUTE_POSTED, at, Seen(value=value, id=event_id), log=checker.POSTS, **more)


TWICE_ROUTES = [
    put_route(number, name, "s1") for number, name in enumerate(checker.TWICE_ROUTES, start=4)
]
REPLACED_ROUTE = put_route(6, checker.REPLACED, "s0", "s1", "s2")


def received_twice(value: str, copies: int = 2) -> Operation:
    """Receive each copy that the two routes have brought."""
    seen = (Seen(value=value, id=f"{value} {nth}", receive_count=1) for nth in range(copies))
    return op(Kind.RECEIVE, 9, *seen, log=checker.TWICE)


PUBLISHED = [
    ROUTE,
    URL_ROUTE,
    *TWICE_ROUTES,
    REPLACED_ROUTE,
    op(Kind.TARGET_FULL, 5, Seen(value="f:1"), log="full", group="free"),
    late_route(1),
    payment(2, "y:1", 0),
    payment(3, "y:1", 0),
    payments_taken(9, "y:1"),
    publication(2, "p:1"),
    decided(4, "p:1", 0, 1, 2, 4, 5, 6),
    single_publication(2, "p:3", Outcome.UNKNOWN),
    single_publication(2, "p:4", Outcome.FAIL),
    target_deleted(3),
    publication(5, "p:7"),
    taken(9, ("p:1", 0), ("p:7", 1), routes=(1, 2, 4, 5, 6)),
    received_twice("p:1"),
    received_twice("p:7"),
    op(Kind.RECEIVE, 8, Seen(value="p:7", id="p:7"), log=f"{checker.REPLACED}#1"),
    posted_to_url(5, "p:7", "m7"),
    posted_to_url(3, "p:1", "m1"),
    read(9, ("p:1", 0), ("p:7", 1), log=checker.COPIES),
    read(9, ("p:1", 0), ("p:7", 1), log=checker.LATE),
    route_stats(9, checker.COPIES, 1, delivered=2),
    route_stats(9, checker.LATE, 3, delivered=2),
]
"""Messages that reached their routes, and the one that began later; one that was repeated, and two without an acknowledgement.

One target is another queue since the first message, which lay in the queue that was deleted.
"""

VIOLATIONS: list[tuple[str, Invariant, list[Operation]]] = [
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
    (
        "message is twice in the target of its route",
        REACHED,
        [*PUBLISHED, read(9, ("p:1", 1), log=checker.COPIES)],
    ),
    (
        "URL never accepts a message",
        POSTED,
        [URL_ROUTE, taken(9, ("p:1", 0), routes=(2,)), posted_to_url(3, "p:1", "m1", outcome=FAIL)],
    ),
    ("message is posted under two ids", POSTED, [*PUBLISHED, posted_to_url(4, "p:1", "m2")]),
    (
        "URL receives what its route does not take",
        POSTED,
        [*PUBLISHED, posted_to_url(4, "p:2", "m2")],
    ),
    ("accepted message is not in the topic", KEPT, [*PUBLISHED, publication(4, "p:2")]),
    (
        "route does not take what it matches",
        CUT,
        [*PUBLISHED, publication(4, "p:2"), taken(9, ("p:2", 1), routes=(2, 6))],
    ),
    (
        "messages of a key change places",
        ORDERED,
        [read(9, ("p:2", 0), ("p:1", 1), log=checker.COPIES)],
    ),
    (
        "records of a key change places for a changed route",
        CHOSEN_ORDERED,
        [read(9, ("p:2", 0), ("p:1", 1), log=checker.CHOSEN)],
    ),
    (
        "records of a key change places in a copy of a stream",
        VISITS_ORDERED,
        [read(9, ("p:2", 0), ("p:1", 1), log=checker.VISIT_COPIES)],
    ),
    (
        "record is in no target of the route that takes it",
        CHOSEN,
        [chosen(1, "s2"), visit(4, "p:2")],
    ),
    (
        "record is in the target of a route that does not take it",
        CHOSEN,
        [chosen(1, "s1"), visit(4, "p:2"), read(9, ("p:2", 0), log=checker.CHOSEN)],
    ),
    (
        "two revisions of a route take a record",
        CHOSEN,
        [
            chosen(1, "s2"),
            visit(4, "p:2"),
            read(9, ("p:2", 0), ("p:2", 1), log=checker.CHOSEN),
        ],
    ),
    (
        "messages of a key change places in the history",
        LATE_ORDERED,
        [read(9, ("p:2", 0), ("p:1", 1), log=checker.LATE)],
    ),
    (
        "route counts a message twice",
        ADD_UP,
        [taken(9, ("p:1", 0), routes=(1,)), route_stats(9, checker.COPIES, 1, delivered=2)],
    ),
    (
        "route counts too few messages of its history",
        ADD_UP,
        [taken(9, ("p:1", 0), ("p:2", 1)), route_stats(9, checker.LATE, 1, delivered=1)],
    ),
    (
        "history lacks a message",
        FROM_EARLIEST,
        [late_route(1), taken(9, ("p:1", 0), ("p:2", 1)), read(9, ("p:2", 0), log=checker.LATE)],
    ),
    (
        "history has a message twice",
        FROM_EARLIEST,
        [late_route(1), taken(9, ("p:1", 0)), read(9, ("p:1", 0), ("p:1", 1), log=checker.LATE)],
    ),
    (
        "unacknowledged message is in one of two targets",
        WHOLE,
        [
            ROUTE,
            put_route(7, checker.LATE, "s1"),
            single_publication(2, "p:1", UNKNOWN),
            read(9, ("p:1", 0), log=checker.COPIES),
        ],
    ),
    (
        "refused message is in the targets of its routes",
        WHOLE,
        [ROUTE, single_publication(2, "p:1", FAIL), read(9, ("p:1", 0), log=checker.COPIES)],
    ),
    (
        "route brings no copy beside another one",
        ONE_COPY_EACH,
        [*TWICE_ROUTES, taken(9, ("p:1", 0), routes=(4, 5)), received_twice("p:1", 1)],
    ),
    (
        "route takes a message for each match",
        ONE_COPY_EACH,
        [*TWICE_ROUTES, taken(9, ("p:1", 0), routes=(4, 4)), received_twice("p:1", 2)],
    ),
    (
        "other target receives nothing",
        APART,
        [op(Kind.TARGET_FULL, 5, log="full", group="free")],
    ),
    (
        "routes of a message change",
        FINAL,
        [taken(9, ("p:1", 0), routes=(1, 2)), decided(4, "p:1", 0, 1)],
    ),
    (
        "acknowledgement counts other routes",
        FINAL,
        [
            taken(9, ("p:1", 0), routes=(1, 2)),
            op(Kind.PUBLISH, 2, Seen(offset=0), counts={"routes": 3}, log="topic"),
        ],
    ),
    (
        "recreated target lacks a message that was published later",
        RECREATED,
        [
            REPLACED_ROUTE,
            target_deleted(3),
            publication(5, "p:1"),
            taken(9, ("p:1", 0), routes=(6,)),
        ],
    ),
    (
        "recreated target lacks a message behind its first",
        RECREATED,
        [
            REPLACED_ROUTE,
            publication(1, "p:1"),
            publication(2, "p:2"),
            target_deleted(3),
            taken(9, ("p:1", 0), ("p:2", 1), routes=(6,)),
            op(Kind.RECEIVE, 8, Seen(value="p:1", id="a"), log=f"{checker.REPLACED}#1"),
        ],
    ),
    (
        "deleted target had a message twice",
        RECREATED,
        [
            target_deleted(3),
            op(
                Kind.RECEIVE,
                2,
                Seen(value="p:1", id="a"),
                Seen(value="p:1", id="b"),
                log=f"{checker.REPLACED}#0",
            ),
        ],
    ),
    (
        "repeated deduplication id adds a message",
        DEDUPLICATED,
        [payment(1, "y:1", 0), payment(2, "y:1", 0), payments_taken(9, "y:1", "y:1")],
    ),
    (
        "repeated deduplication id names another message",
        DEDUPLICATED,
        [payment(1, "y:1", 0), payment(2, "y:1", 1), payments_taken(9, "y:1")],
    ),
    (
        "first messages of a key change places",
        FIRST_ORDERED,
        [payments_taken(9, "y:2", "y:1")],
    ),
    (
        "request has more replies than it accepts",
        REPLIED,
        [asked(1, "a"), read_replies(3, "a", "a/1", "a/2")],
    ),
    (
        "accepted reply is not read",
        REPLIED,
        [asked(1, "a"), replied(2, "a", "a/1"), read_replies(3, "a")],
    ),
    (
        "replies change",
        REPLIED,
        [asked(1, "a", 2), read_replies(3, "a", "a/1"), read_replies(4, "a", "a/2")],
    ),
    (
        "request has the reply to another one",
        ADDRESSED,
        [replied(2, "b", "b/1"), read_replies(3, "a", "b/1")],
    ),
    (
        "refused reply is read",
        ADDRESSED,
        [
            replied(2, "a", "a/1", outcome=FAIL, code="reply_taken"),
            read_replies(3, "a", "a/1"),
        ],
    ),
    (
        "forged token is accepted",
        ADDRESSED,
        [asked(1, "a"), replied(2, "a", "forged/1")],
    ),
]


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


POSTED_EVENTS = [
    event(1, "e", log="inbox", outcome=UNKNOWN),
    event(2, "e", log="inbox"),
    event(3, "e", log="inbox"),
    event(1, "lost answer", log="inbox", outcome=UNKNOWN),
    event(1, "refused", log="inbox", outcome=FAIL),
    receive(4, "e", "lost answer", log="inbox"),
    receive(8, "e", log="inbox"),
]
"""Events that were posted repeatedly, one redelivered, one without an answer, and one that was refused."""


ANSWERED_REQUESTS = [
    op(Kind.ASK, 1, values=("a",), counts={"replies_max": 2}, outcome=UNKNOWN),
    asked(2, "a", 2),
    replied(3, "a", "a/1"),
    replied(3, "a", "a/2", outcome=FAIL, code="storage_unavailable"),
    replied(4, "a", "a/3", outcome=FAIL, code="reply_taken"),
    read_replies(4, "a", "a/1", "a/2"),
    read_replies(9, "a", "a/1", "a/2"),
    replied(4, "a", "forged/1", outcome=FAIL, code="request_not_found"),
    asked(20, "b"),
    replied(21, "b", "b/1"),
    op(Kind.CLOCK, 22),
    read_replies(24, "b"),
]
"""A request whose replies were read twice, refused replies, and one that expired while the clock was wrong."""


RECREATED_AND_PAUSED = [
    stream_appended(1, 1, 0),
    stream_appended(2, 1, 1),
    stream_read(3, 1, 0),
    stream_read(3, 1, 0, client="a", group="g"),
    commit(4, "a", -1, 1, log="t#1", group="g#1"),
    stream_deleted(5, 1),
    op(Kind.READ, 6, **REJECTION),
    stream_appended(7, 2, 0),
    stream_read(8.6, 2, 0),
    stream_read(8.6, 2, 0, client="b", group="g"),
    commit(9, "a", -1, 1, log="t#1", group="g#1", outcome=FAIL, code="stale_generation"),
    paused(40, log="q"),
    receive(40.2),
    receive(42),
    op(Kind.PUSHED, 39, outcome=FAIL),
    paused(50, group="paused"),
    op(Kind.GROUP_READ, 52, group="paused", generation=1),
]
"""A stream whose last record nobody read before its deletion, its successor, and pauses without deliveries."""


VISITED = [
    op(
        Kind.ROUTE,
        1,
        Seen(value=checker.VISIT_COPIES, offset=1),
        log=checker.VISITS,
        group=checker.VISIT_COPIES,
        values=("s0", "s1", "s2"),
    ),
    chosen(1, "s2"),
    visit(4, "v:2"),
    visit(5, "v:3"),
    op(
        Kind.TAKEN,
        9,
        Seen(value="v:2", offset=0, routes=(1,)),
        Seen(value="v:3", offset=1, routes=(1,)),
        log=checker.VISITS,
    ),
    read(9, ("v:2", 0), ("v:3", 1), log=checker.VISIT_COPIES),
    read(9, ("v:2", 0), log=checker.CHOSEN),
]
"""Records of a stream with two routes, of which one takes all."""


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
