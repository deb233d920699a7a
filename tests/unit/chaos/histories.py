"""Histories of runs: operations, and those that a run without a fault may have."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tests.chaos import checker
from tests.chaos.checking import (
    queues,
)
from tests.chaos.checking.findings import Finding
from tests.chaos.history import Kind, Operation, Outcome, Seen

COUNTS = dict.fromkeys(("sent", "moved_in", *queues.STAYING, *queues.GONE), 0)


def op(kind: Kind, at: float, *seen: Seen, **more: Any) -> Operation:
    """A call that is made at `at` and answered half a second later."""
    known: dict[str, Any] = {"log": "q", "client": "c", "outcome": Outcome.OK, **more}
    return Operation(kind=kind, invoked=at, ended=at + 0.5, seen=seen, **known)


(
    REACHED,
    POSTED,
    POSTS_ORDERED,
    KEPT,
    CUT,
    ORDERED,
    CHOSEN,
    CHOSEN_ORDERED,
    VISITS_ORDERED,
    SHIPPED_ORDERED,
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
    IN_MEMBER_BY_KEY,
    IN_MEMBER_BY_SUBJECT,
    MEMBER_ORDERED,
    APART,
    RECREATED,
    COUNTED_ONCE,
    ADDED_UP,
    TIGHT,
    REBUILT,
    UNCHANGED,
    TESTED,
    PAIRED,
    WITHOUT_MATCH,
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


def view_rows(**counts: int) -> Operation:
    """The rows of the view, of which each shard has one."""
    return op(Kind.VIEW_ROWS, 9, log=checker.TALLY, target="q", counts=counts)


def view_changes(**counts: int) -> Operation:
    return op(Kind.VIEW_CHANGES, 9, log=checker.TALLY, counts=counts)


def view_sources(shard: int, first: int, last: int, records: int) -> dict[str, int]:
    """The ranges of the sources of a row, as an operation counts them."""
    return {f"{shard} first": first, f"{shard} last": last, f"{shard} records": records}


def viewed_sources(*ranges: dict[str, int]) -> Operation:
    counts = {name: number for one in ranges for name, number in one.items()}
    return op(Kind.VIEW_SOURCES, 9, log=checker.TALLY, target="q", counts=counts)


def view_rebuild(**counts: int) -> Operation:
    report = {"exact": 1, "records": 4, "added": 0, "removed": 0, "changed": 0}
    return op(Kind.VIEW_REBUILD, 9, log=checker.TALLY, counts=report | counts)


def view_history(same: int = 1) -> Operation:
    return op(Kind.VIEW_HISTORY, 9, log=checker.TALLY, counts={"same": same})


def view_back_test(**counts: int) -> Operation:
    result = {"exact": 1, "records": 4, "view_records": 4, "added": 0, "removed": 0, "changed": 0}
    return op(Kind.VIEW_BACK_TEST, 9, log=checker.TALLY, counts=result | counts)


def view_pairs(**counts: int) -> Operation:
    """The rows of the view of pairs, of which each ending has one."""
    return op(Kind.VIEW_ROWS, 9, log=checker.PAIRS, counts=counts)


def joined(log: str, *records: tuple[str, int]) -> Operation:
    """The records of a stream that a view joins, by value and time in milliseconds."""
    seen = [Seen(value=value, at_ms=at_ms) for value, at_ms in records]
    return op(Kind.JOINED, 9, *seen, log=log)


def view_unmatched(**counts: int) -> Operation:
    """The rows of the view of records without a match, of which each ending has one."""
    return op(Kind.VIEW_ROWS, 9, log=checker.UNCHOSEN, counts=counts)


COUNTED = [
    view_rebuild(),
    view_back_test(),
    view_history(),
    view_rows(**{"0": 3, "1": 1}),
    view_changes(**{"0": 3, "1": 1}),
    viewed_sources(view_sources(0, 0, 2, 3), view_sources(1, 0, 0, 1)),
]
"""A view of two shards, whose records are read several times."""

SPREAD_ROUTES = [
    put_route(number, name, "s0", "s1", "s2")
    for number, name in enumerate(checker.SPREADS, start=7)
]


PUBLISHED = [
    ROUTE,
    URL_ROUTE,
    *TWICE_ROUTES,
    REPLACED_ROUTE,
    *SPREAD_ROUTES,
    op(Kind.TARGET_FULL, 5, Seen(value="f:1"), log="full", group="free"),
    late_route(1),
    payment(2, "y:1", 0),
    payment(3, "y:1", 0),
    payments_taken(9, "y:1"),
    publication(2, "p:1"),
    decided(4, "p:1", 0, 1, 2, 4, 5, 6, 7, 8),
    single_publication(2, "p:3", Outcome.UNKNOWN),
    single_publication(2, "p:4", Outcome.FAIL),
    target_deleted(3),
    publication(5, "p:7"),
    taken(9, ("p:1", 0), ("p:7", 1), routes=(1, 2, 4, 5, 6, 7, 8)),
    received_twice("p:1"),
    received_twice("p:7"),
    op(Kind.RECEIVE, 8, Seen(value="p:7", id="p:7"), log=f"{checker.REPLACED}#1"),
    posted_to_url(5, "p:7", "m7"),
    posted_to_url(3, "p:1", "m1"),
    read(9, ("p:1", 0), ("p:7", 1), log=checker.COPIES),
    read(9, ("p:1", 0), ("p:7", 1), log=checker.LATE),
    read(9, ("p:1", 0), ("p:7", 1), log=checker.BY_KEY_STREAM),
    op(
        Kind.RECEIVE,
        8,
        Seen(value="p:1", id="p:1"),
        Seen(value="p:7", id="p:7"),
        log="by-subject.queue",
    ),
    route_stats(9, checker.COPIES, 1, delivered=2),
    route_stats(9, checker.LATE, 3, delivered=2),
]
"""Messages that reached their routes, and the one that began later; one that was repeated, and two without an acknowledgement.

One target is another queue since the first message, which lay in the queue that was deleted.
"""

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
    read(9, ("v:2", 0), ("v:3", 1), log=checker.SHIPPED),
    read(9, ("v:2", 0), log=checker.CHOSEN),
    *(read(at, ("v:2", 0), ("v:3", 1), log=checker.PAIRED[0]) for at in (8, 9)),
    view_pairs(**{":2": 1, ":3": 1}),
]
"""Records of a stream with two routes, of which one takes all, and the view of their pairs."""

UNMATCHED = [
    joined(checker.PAIRED[0], ("v:2", 1_000), ("v:3", 2_000), ("w:3", 3_000)),
    joined(checker.CHOSEN, ("v:2", 6_000), ("v:3", 7_001)),
    view_unmatched(**{":3": 2}),
]
"""Records of two streams, of which one has a match, one has it too late, and one has none."""
