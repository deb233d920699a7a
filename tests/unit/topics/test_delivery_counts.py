"""Property: whatever finishes before a crash and is repeated after it, each copy is counted once (T10)."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from consumers.routing.copies import Copy
from consumers.routing.delivery_counts import DeliveryCounts
from storage.domain.log.record_batch import Record
from storage.domain.names import RouteName, TopicName
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.routed_message import content_of
from storage.domain.topics.routing import RouteCounts, TopicPositions

MESSAGES = 12
RECORD = Record(b"x")
ROUTES = [
    TopicRoute(
        name=RouteName(TopicName("orders"), f"r{number}"),
        stream_id="1",
        number=number,
        spec=RouteSpec(target=RouteTarget(queue=f"q{number}")),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )
    for number in (1, 2, 3)
]


def a_copy(route: TopicRoute, offset: int, shard: int = 0) -> Copy:
    return Copy(shard, offset, RECORD, route, 0, content_of(RECORD), 1)


class _Router:
    """Positions of buffers, the counts of a process, and what is stored of both."""

    def __init__(self) -> None:
        self.stored: Counter[int] = Counter()
        self.stored_position = 0
        self.restart()

    def restart(self) -> None:
        self.counts = DeliveryCounts()
        self.next = {route.number: self.stored_position for route in ROUTES}
        self.reported_position = self.stored_position

    def finish(self, route: TopicRoute, count: int) -> None:
        first = self.next[route.number]
        last = min(first + count, MESSAGES)
        copies = [a_copy(route, offset) for offset in range(first, last)]
        self.next[route.number] = last
        self.counts.add_delivered(copies[: count // 2])
        self.counts.add_dropped(copies[count // 2 :], "")

    def begin_again(self, route: TopicRoute) -> None:
        """Read again from the reported position, as a lagging reader does that was stopped."""
        self.next[route.number] = self.reported_position

    def report(self, *, is_stored: bool) -> None:
        self.reported_position = min(self.next.values())
        positions = TopicPositions({0: self.reported_position})
        counts = self.counts.drain(positions.of)
        if not is_stored:
            self.counts.restore(counts)
            return
        self.stored_position = positions.shards[0]
        for number, one in counts.items():
            self.stored[number] += one.delivered + one.dropped


steps = st.lists(
    st.tuples(st.just("finish"), st.sampled_from(ROUTES), st.integers(1, 5))
    | st.tuples(st.just("report"), st.booleans())
    | st.tuples(st.just("begin_again"), st.sampled_from(ROUTES))
    | st.tuples(st.just("crash")),
    max_size=30,
)


@given(steps)
def test_each_copy_is_counted_once(course):
    router = _Router()
    for step in course:
        match step:
            case "finish", route, count:
                router.finish(route, count)
            case "begin_again", route:
                router.begin_again(route)
            case "report", is_stored:
                router.report(is_stored=is_stored)
            case _:
                router.restart()
    for route in ROUTES:
        router.finish(route, MESSAGES)
    router.report(is_stored=True)
    assert router.stored == {route.number: MESSAGES for route in ROUTES}


def test_copies_of_shards_without_position_are_counted():
    counts = DeliveryCounts()
    route = ROUTES[0]
    counts.add_delivered([a_copy(route, 5, shard) for shard in (0, 1, 2)])
    drained = counts.drain(TopicPositions({1: FULLY_READ, 2: 5}).of)
    assert drained == {1: RouteCounts(delivered=2, failure="")}
    assert counts.drain(TopicPositions({2: 6}).of) == {1: RouteCounts(delivered=1)}


def test_last_failure_is_that_of_last_attempt():
    counts = DeliveryCounts()
    copies = [a_copy(ROUTES[0], 5)]
    counts.add_delivered(copies)
    counts.set_failure(copies, "away")
    assert counts.drain(TopicPositions({0: 0}).of) == {1: RouteCounts(failure="away")}
    counts.add_dead_lettered([a_copy(ROUTES[0], 6)], None)
    assert counts.drain(TopicPositions({0: 9}).of) == {1: RouteCounts(delivered=1, dead_lettered=1)}
