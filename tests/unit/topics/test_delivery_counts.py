"""Property: whatever finishes before a crash and is repeated after it, each copy is counted once (T10)."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from consumers.routing.copies import Copy, SourceRecord
from consumers.routing.delivery_counts import DeliveryCounts
from storage.domain.log.record_batch import Record
from storage.domain.names import RouteName, TopicName
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.domain.topics.targets.branch import RouteBranch
from storage.domain.topics.targets.spread import SpreadMember

MESSAGES = 12
RECORD = Record(b"x")
SPREAD = RouteTarget(spread=(SpreadMember(queue="a"), SpreadMember(queue="b")))


def a_route(number: int, target: RouteTarget) -> TopicRoute:
    return TopicRoute(
        name=RouteName(TopicName("orders"), f"r{number}"),
        stream_id="1",
        number=number,
        spec=RouteSpec(target=target),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


ROUTES = [
    a_route(1, RouteTarget(queue="q1")),
    a_route(2, RouteTarget(queue="q2")),
    a_route(3, SPREAD),
]
BRANCHES = [(route, branch) for route in ROUTES for branch in route.branches]


def a_copy(route: TopicRoute, offset: int, shard: int = 0) -> Copy:
    branch = route.branches[offset % len(route.branches)]
    return Copy(SourceRecord.of(shard, LogRecord(offset, 0, RECORD)), route, branch)


class _Router:
    """Positions of buffers, the counts of a process, and what is stored of both.

    The buffers of a spread's members are behind the router.
    """

    def __init__(self) -> None:
        self.stored: Counter[int] = Counter()
        self.stored_positions = TopicPositions({0: 0})
        self.restart()

    def restart(self) -> None:
        self.counts = DeliveryCounts()
        self.reported = self.stored_positions
        self.next = {branch: self.reported.of(branch)[0] for _, branch in BRANCHES}

    def finish(self, route: TopicRoute, branch: RouteBranch, count: int) -> None:
        first = self.next[branch]
        last = min(first + count, MESSAGES)
        copies = [a_copy(route, offset) for offset in range(first, last)]
        copies = [copy for copy in copies if copy.branch == branch]
        self.next[branch] = last
        self.counts.add_delivered(copies[: count // 2])
        self.counts.add_dropped(copies[count // 2 :], "")

    def begin_again(self, branch: RouteBranch) -> None:
        """Read again from the reported position, as a lagging reader does that was stopped."""
        self.next[branch] = self.reported.of(branch)[0]

    def report(self, *, is_stored: bool) -> None:
        read = min(offset for branch, offset in self.next.items() if branch.member is None)
        lags = {
            branch.target_key: {0: offset}
            for branch, offset in self.next.items()
            if branch.member is not None
        }
        self.reported = TopicPositions({0: read}, lags)
        counts = self.counts.drain(self.reported.of)
        if not is_stored:
            self.counts.restore(counts)
            return
        self.stored_positions = self.reported
        for number, one in counts.items():
            self.stored[number] += one.delivered + one.dropped


steps = st.lists(
    st.tuples(st.just("finish"), st.sampled_from(BRANCHES), st.integers(1, 5))
    | st.tuples(st.just("report"), st.booleans())
    | st.tuples(st.just("begin_again"), st.sampled_from(BRANCHES))
    | st.tuples(st.just("crash")),
    max_size=30,
)


@given(steps)
def test_each_copy_is_counted_once(course):
    router = _Router()
    for step in course:
        match step:
            case "finish", (route, branch), count:
                router.finish(route, branch, count)
            case "begin_again", (_, branch):
                router.begin_again(branch)
            case "report", is_stored:
                router.report(is_stored=is_stored)
            case _:
                router.restart()
    for route, branch in BRANCHES:
        router.finish(route, branch, MESSAGES)
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


def test_failure_of_member_outlasts_success_of_another():
    counts = DeliveryCounts()
    first, second = a_copy(ROUTES[2], 0), a_copy(ROUTES[2], 1)
    counts.set_failure([first], "away")
    counts.add_delivered([second])
    assert counts.drain(TopicPositions({0: 0}).of) == {3: RouteCounts(failure="away")}
    counts.add_delivered([first])
    assert counts.drain(TopicPositions({0: 0}).of) == {3: RouteCounts(failure="")}
    assert counts.drain(TopicPositions({0: 0}).of) == {}
