"""Property: whatever finishes before a crash and is repeated after it, each copy is counted once (T10)."""

import random
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest

from consumers.routing.copies import Copy, SourceRecord
from consumers.routing.delivery_counts import DeliveryCounts
from consumers.routing.unsent_positions import unsent_positions
from storage.domain.log.record_batch import Record
from storage.domain.names import RouteName, TopicName
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.domain.topics.targets.branch import RouteBranch
from storage.domain.topics.targets.spread import SpreadMember

MESSAGES = 8
COURSES, STEPS = 400, 60
OTHER_STEPS = ("finish", "finish", "fail", "detach", "begin_again", "crash")
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
    a_route(4, RouteTarget(queue="q2")),
    a_route(3, SPREAD),
]
TARGETS = [*dict.fromkeys(branch.target_key for route in ROUTES for branch in route.branches)]
KEYS = [*TARGETS, *(branch.own_key for route in ROUTES for branch in route.branches)]


def a_copy(route: TopicRoute, offset: int, shard: int = 0) -> Copy:
    branch = route.branches[offset % len(route.branches)]
    return Copy(SourceRecord.of(shard, LogRecord(offset, 0, RECORD)), route, branch)


class _Buffer:
    """Copies that wait for a target, or for a branch of it."""

    def __init__(self) -> None:
        self.is_failing = False
        self.waiting: list[Copy] = []
        self.skipped: Counter[str] = Counter()

    def add(self, copies: list[Copy]) -> None:
        for copy in copies:
            branch = copy.branch
            before = max(self.skipped[branch.own_key], self.skipped[branch.target_key])
            self.waiting += [copy] if copy.source.offset >= before else []

    def oldest(self, number: int | None = None) -> dict[int, int]:
        offsets = [one.source.offset for one in self.waiting if number in (None, one.route.number)]
        return {0: min(offsets)} if offsets else {}


class _Lag(NamedTuple):
    position: int
    buffer: _Buffer

    def unsent(self) -> dict[int, int]:
        return {0: self.position} | self.buffer.oldest()


class _Router:
    """A router, and what is stored of its positions and counts."""

    def __init__(self) -> None:
        self.stored: Counter[int] = Counter()
        self.stored_positions = TopicPositions({0: 0})
        self.restart()

    def restart(self) -> None:
        self.counts = DeliveryCounts()
        self.reported = self.stored_positions
        self.read = self.reported.shards[0]
        self.buffers: defaultdict[str, _Buffer] = defaultdict(_Buffer)
        self.lags = {key: _Lag(one[0], _Buffer()) for key, one in self.reported.lags.items()}

    def copies(self, key: str, first: int, count: int) -> list[Copy]:
        """The copies that go to a target's buffer, or to that of a branch."""
        every = [
            a_copy(route, offset) for offset in range(first, first + count) for route in ROUTES
        ]
        return [copy for copy in every if key == self.key_of(copy.branch)]

    def key_of(self, branch: RouteBranch) -> str:
        return branch.own_key if branch.own_key in self.lags else branch.target_key

    def read_on(self, count: int) -> None:
        count = min(count, MESSAGES - self.read)
        for key in TARGETS:
            if key not in self.lags:
                self.buffers[key].add(self.copies(key, self.read, count))
        self.read += count
        for key, (position, buffer) in self.lags.items():
            further = max(0, min(count + 1, self.read - position))
            buffer.add(self.copies(key, position, further))
            self.lags[key] = _Lag(position + further, buffer)

    def buffer_of(self, key: str) -> _Buffer | None:
        return self.lags[key].buffer if key in self.lags else self.buffers.get(key)

    def fail(self, key: str) -> None:
        if buffer := self.buffer_of(key):
            buffer.is_failing = bool(buffer.waiting)

    def finish(self, key: str, count: int) -> None:
        buffer = self.buffer_of(key) or _Buffer()
        buffer.is_failing = False
        self.counts.add_delivered(buffer.waiting[: count // 2])
        self.counts.add_dropped(buffer.waiting[count // 2 : count], "")
        del buffer.waiting[:count]

    def detach(self, key: str) -> None:
        """Give a target's buffer, or a branch of it, a reader of its own."""
        target, _, number = key.partition("#")
        if key in self.lags or target in self.lags:
            return
        from_buffer = self.buffers[target]
        if not number:
            position = max(self.read, self.reported.of_target(key)[0])
            self.lags[key] = _Lag(position, self.buffers.pop(key))
            return
        [branch] = [one for route in ROUTES for one in route.branches if one.own_key == key]
        apart = from_buffer.oldest(int(number)).get(0, self.read)
        self.lags[key] = _Lag(max(apart, self.reported.of(branch)[0]), _Buffer())
        from_buffer.waiting = [
            copy for copy in from_buffer.waiting if copy.route.number != int(number)
        ]

    def rejoin(self, key: str) -> None:
        """Give a buffer back to the router if it has read as far."""
        position, buffer = self.lags.get(key, _Lag(-1, _Buffer()))
        target, _, number = key.partition("#")
        taking = self.buffers.get(target, buffer)
        is_behind = target in self.lags or taking.skipped[target] > position or buffer.waiting
        if position >= self.read and not (number and is_behind):
            del self.lags[key]
            self.buffers[target] = taking
            taking.skipped[key] = position

    def begin_again(self, key: str) -> None:
        """Drop what a buffer with a reader of its own has, as one that is paused."""
        if key in self.lags:
            self.lags[key] = _Lag(self.lags[key].unsent()[0], _Buffer())

    def report(self, *, is_stored: bool) -> None:
        lags = {key: lag.unsent() for key, lag in self.lags.items()}
        self.reported = unsent_positions({0: self.read}, self.buffers, lags, self.reported)
        counts = self.counts.drain(self.reported.of)
        if not is_stored:
            self.counts.restore(counts)
            return
        self.stored_positions = self.reported
        for number, one in counts.items():
            self.stored[number] += one.delivered + one.dropped


def _step(chance: random.Random) -> tuple[str, ...]:
    """Return a step; half of them bring the buffers forward."""
    forward = ("read", "finish", "rejoin", "report")
    step = chance.choice(forward if chance.random() < 0.5 else (*forward, *OTHER_STEPS))
    return (step, chance.choice(KEYS)) if step not in ("read", "report", "crash") else (step,)


def _take(router: _Router, chance: random.Random, step: str, key: str = "") -> None:
    match step:
        case "read":
            router.read_on(chance.randint(1, 2))
        case "finish":
            router.finish(key, chance.choice((1, 2, 2 * MESSAGES)))
        case "report":
            router.report(is_stored=chance.random() < 0.8)
        case "crash":
            router.restart()
        case _:
            getattr(router, step)(key)


@pytest.mark.parametrize("seed", range(4))
def test_each_copy_is_counted_once(seed):
    for nth in range(COURSES):
        chance = random.Random(seed * COURSES + nth)
        router, course = _Router(), [_step(chance) for _ in range(STEPS)]
        for step in course:
            _take(router, chance, *step)
        for _ in range(2 * MESSAGES):
            router.read_on(MESSAGES)
        for key in KEYS:
            router.finish(key, len(ROUTES) * MESSAGES)
        router.report(is_stored=True)
        assert router.stored == {route.number: MESSAGES for route in ROUTES}, course


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
    first, second = a_copy(ROUTES[3], 0), a_copy(ROUTES[3], 1)
    counts.set_failure([first], "away")
    counts.add_delivered([second])
    assert counts.drain(TopicPositions({0: 0}).of) == {3: RouteCounts(failure="away")}
    counts.add_delivered([first])
    assert counts.drain(TopicPositions({0: 0}).of) == {3: RouteCounts(failure="")}
    assert counts.drain(TopicPositions({0: 0}).of) == {}
