"""Invariants of routing: T2, T5, T6, T7, and T1 of a target that is deleted and created again."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from tests.chaos.checking.findings import Finding, Operations, answers, first_asked
from tests.chaos.checking.topics import places_of, route_names, subject_of
from tests.chaos.history import Kind, Operation, Outcome, Seen


def unacknowledged_message_is_whole(
    dead_letters: Mapping[str, str], *apart: str
) -> Callable[[Operations], Finding]:
    """T2: a message whose publication was not acknowledged is in the targets of all of its routes, or of none.

    Its routes are those that were not changed and match its subject, whatever the topic stored with it. `dead_letters` and
    `apart` are those of T1. A refused message is in no target.
    """

    def check(history: Operations) -> Finding:
        matches = {route: of for route, of in _matches(history).items() if route[1] not in apart}
        places = places_of(history, dead_letters)
        wrong, checked = [], 0
        for topic, value, outcomes in _unacknowledged(history):
            routes = {
                route
                for (of, route), subjects in matches.items()
                if of == topic and subject_of(value) in subjects
            }
            present = {route for route in routes if places[route, value]}
            checked += Outcome.UNKNOWN in outcomes
            if present and (present != routes or Outcome.UNKNOWN not in outcomes):
                wrong.append(f"{value} is in {sorted(present)} of {sorted(routes)}")
        return Finding("T2 an unacknowledged message is whole", checked, tuple(wrong))

    return check


def _matches(history: Operations) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the subjects of the routes that had one match throughout, by topic and name."""
    subjects: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for one in history:
        if one.kind is Kind.ROUTE and one.outcome is not Outcome.FAIL:
            subjects[one.log, one.group].add(one.values)
    return {route: next(iter(of)) for route, of in subjects.items() if len(of) == 1 and any(of)}


def _unacknowledged(history: Operations) -> Iterator[tuple[str, str, set[Outcome]]]:
    """Yield topic, value and outcomes of the messages of which no publication was acknowledged."""
    outcomes: dict[tuple[str, str], set[Outcome]] = defaultdict(set)
    for one in history:
        if one.kind is Kind.PUBLISH:
            for value in one.values:
                outcomes[one.log, value].add(one.outcome)
    for (topic, value), of in outcomes.items():
        if Outcome.OK not in of:
            yield topic, value, of


def routes_bring_one_copy_each(
    target: str, routes: Collection[str]
) -> Callable[[Operations], Finding]:
    """T5: a message is in a target once for each of several routes, however many matches of a route it meets."""

    def check(history: Operations) -> Finding:
        names, places = route_names(history), places_of(history)
        wrong, checked = [], 0
        for one, seen in answers(history, Kind.TAKEN):
            taking = [number for number in seen.routes if names.get((one.log, number)) in routes]
            copies = len(places[target, seen.value])
            checked += len(taking) > 1
            if not copies == len(taking) == len({*taking}):
                wrong.append(f"{seen.value} of routes {taking} is {copies} times in {target}")
        return Finding("T5 each route brings one copy", checked, tuple(wrong))

    return check


def full_target_delays_no_other(history: Operations) -> Finding:
    """T6: while a target refuses everything, publications are accepted, and another target receives them."""
    periods = [one for one in history if one.kind is Kind.TARGET_FULL]
    wrong = [
        f"{one.group} received nothing in {one.ended - one.invoked:.1f} s in which {one.log} was full"
        for one in periods
        if not one.seen
    ]
    return Finding("T6 a full target delays no other route", len(periods), tuple(wrong))


def decision_is_final(from_earliest: str) -> Callable[[Operations], Finding]:
    """T7: the routes that take a message are at each reading those that its acknowledgement counted.

    Except the route that starts at the topic's beginning, which also takes messages from before it was created.
    """

    def check(history: Operations) -> Finding:
        names = route_names(history)

        def routes(topic: str, seen: Seen) -> tuple[int, ...]:
            numbers = {*seen.routes}
            return tuple(sorted(n for n in numbers if names.get((topic, n)) != from_earliest))

        final = {
            (one.log, seen.shard, seen.offset): (routes(one.log, seen), len({*seen.routes}))
            for one, seen in answers(history, Kind.TAKEN)
        }
        wrong, checked = [], 0
        for one, seen in answers(history, Kind.DECIDED, Kind.PUBLISH):
            stored, count = final.get((one.log, seen.shard, seen.offset), ((), 0))
            if one.kind is Kind.DECIDED:
                is_same = routes(one.log, seen) == stored
                wrong += [] if is_same else [f"{seen.value} of {stored} had {seen.routes}"]
            elif "routes" in one.counts:
                is_same = one.counts["routes"] in (len(stored), count)
                wrong += [] if is_same else [f"{one.values} of {stored} had {one.counts}"]
            else:
                continue
            checked += 1
        return Finding("T7 what takes a message is final", checked, tuple(wrong))

    return check


def recreated_target_misses_only_earlier(target: str) -> Callable[[Operations], Finding]:
    """T1: a target that was deleted and created again lacks only what its predecessors may have had.

    The last queue of the name has all messages that were published after the last deletion, and of each key all from its first
    one on: a route copies in order, so those before it were copied to a predecessor, whose messages are gone with it. No queue
    has a message twice. A queue's log is the target's name, `#` and the number of its predecessors.
    """

    def check(history: Operations) -> Finding:
        deletions = [one.ended for one in _deletions(history, target)]
        deleted, log = max(deletions, default=0.0), last_log(history, target)
        places, invoked = places_of(history), first_asked(history, Kind.PUBLISH)
        present = set[str]()
        wrong = [
            f"{value} is {len(found)} times in {queue}"
            for (queue, value), found in places.items()
            if queue.startswith(f"{target}#") and len(found) > 1
        ]
        checked = 0
        for topic, value in _taken_by_key(history, target):
            key, is_present = value.rpartition(":")[0], bool(places[log, value])
            if is_present:
                present.add(key)
            if key in present or invoked.get((topic, value), 0.0) > deleted:
                checked += 1
                wrong += [] if is_present else [f"{value} is not in {log}"]
        name = "T1 a recreated target misses only earlier messages"
        return Finding(name, checked if deletions else 0, tuple(wrong))

    return check


def last_log(history: Operations, target: str) -> str:
    """Return the log of the last queue that has a target's name."""
    return f"{target}#{len(_deletions(history, target))}"


def _deletions(history: Operations, target: str) -> list[Operation]:
    return [one for one in history if one.kind is Kind.TARGET_DELETED and one.log == target]


def _taken_by_key(history: Operations, route: str) -> Iterator[tuple[str, str]]:
    """Yield topic and value of each message that a route takes, those of a key in their order."""
    names = route_names(history)
    taken = [
        (one.log, seen.value)
        for one, seen in answers(history, Kind.TAKEN)
        if route in {names.get((one.log, number)) for number in seen.routes}
    ]
    yield from sorted(taken, key=lambda each: int(each[1].rpartition(":")[2]))
