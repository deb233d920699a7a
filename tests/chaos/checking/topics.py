"""Invariants of topics: T1, T3, T4, T8, T10, T17."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from storage.domain.names import QUEUE_PREFIX, STREAM_PREFIX
from tests.chaos.checking.findings import Finding, Operations, answers, ok
from tests.chaos.checking.queues import clock_jumps, meets
from tests.chaos.checking.webhooks import UNSIGNED
from tests.chaos.history import DELIVERIES, READS, Kind, Operation, Outcome

Place = tuple[str, int, int]

SUBJECTS = ("s0", "s1", "s2")
ROUTE_COUNTS = ("delivered", "dropped", "dead_lettered", "shadowed")


def subject_of(value: str) -> str:
    """Return the subject that a value is published with."""
    return SUBJECTS[int(value.rpartition(":")[2]) % len(SUBJECTS)]


def message_reaches_each_route_once(
    dead_letters: Mapping[str, str], *apart: str
) -> Callable[[Operations], Finding]:
    """T1: an accepted message is in the target of each route that it names once, and in no other.

    A route and its target have the same name here; `dead_letters` are the routes by their dead-letter queues, where a message is
    instead, and by the members of spreads. `apart` are left out: the target of a route that takes messages from before it was created, and that of a URL. What a deleted route had not delivered is dropped. The number of a route whose change was not answered is unknown,
    so its message may be in any target, once.
    """

    def check(history: Operations) -> Finding:
        names = route_names(history)
        deleted = {one.group for one in history if one.kind is Kind.ROUTE and not one.values}
        places = places_of(history, dead_letters)
        targets = {*names.values()} - {*apart}
        taken = [(one.log, seen) for one, seen in answers(history, Kind.TAKEN)]
        wrong = [
            f"message {seen.value} of routes {seen.routes} is {count} times in {target}"
            for topic, seen in taken
            for target in sorted(targets)
            if not _is_right(
                count := len(places[target, seen.value]),
                is_taken=target in {names.get((topic, number)) for number in seen.routes},
                may_drop=target in deleted,
                may_take=any((topic, number) not in names for number in seen.routes),
            )
        ]
        values = {seen.value for _, seen in taken}
        wrong += [
            f"message {value} in {log} is not in the topic"
            for log, value in sorted(places)
            if log in targets and value not in values
        ]
        return Finding("T1 a message reaches each of its routes once", len(taken), tuple(wrong))

    return check


def url_receives_each_message(route: str) -> Callable[[Operations], Finding]:
    """T1: a URL receives each message that its route takes at least once, signed, under one id, and no other."""

    def check(history: Operations) -> Finding:
        names = route_names(history)
        taken = {
            seen.value
            for one, seen in answers(history, Kind.TAKEN)
            if route in {names.get((one.log, number)) for number in seen.routes}
        }
        attempts = [
            (one, seen)
            for one in history
            if one.kind is Kind.ROUTE_POSTED and one.log == route
            for seen in one.seen
        ]
        accepted = {seen.value for one, seen in attempts if one.outcome is Outcome.OK}
        ids: dict[str, set[str]] = defaultdict(set)
        for _, seen in attempts:
            ids[seen.value].add(seen.id)
        wrong = [f"{value} was never accepted by the URL" for value in sorted(taken - accepted)]
        wrong += [f"{value} was posted, and is not taken" for value in sorted({*ids} - taken)]
        wrong += [f"{value} has ids {sorted(of)}" for value, of in ids.items() if len(of) > 1]
        wrong += [f"{seen.value} came unsigned" for one, seen in attempts if one.code == UNSIGNED]
        return Finding("T1 a URL receives each message under one id", len(taken), tuple(wrong))

    return check


def url_receives_keys_in_order(route: str) -> Callable[[Operations], Finding]:
    """T4: an ordered URL receives the messages of a key in order, and none again after a later one.

    While the store's clock is wrong leases end early, so that repeats may be late.
    """

    def check(history: Operations) -> Finding:
        attempts = [
            (one.invoked, seen.value)
            for one in history
            if one.kind is Kind.ROUTE_POSTED and one.log == route
            for seen in one.seen
        ]
        jumps, wrong = clock_jumps(history), list[str]()
        begun: dict[str, float] = {}
        lasts: dict[str, int] = {}
        for at, value in sorted(attempts):
            key, _, number = value.rpartition(":")
            if int(number) < lasts.get(key, 0) and not meets(jumps, begun.get(value, at), at):
                wrong.append(f"{value} was posted after number {lasts[key]}, at {at:.3f}")
            begun.setdefault(value, at)
            lasts[key] = max(int(number), lasts.get(key, 0))
        return Finding("T4 a URL receives keys in order", len(attempts), tuple(wrong))

    return check


def dead_letters_do_not_fit(
    queue: str, target: str, fits: Callable[[str], bool]
) -> Callable[[Operations], Finding]:
    """T1: the dead-letter queue has messages that do not fit, and the target those that do."""

    def check(history: Operations) -> Finding:
        places = [place for place in places_of(history) if place[0] in (queue, target)]
        wrong = [
            f"message {value} is in {log}"
            for log, value in sorted(places)
            if fits(value) is not (log == target)
        ]
        return Finding("T1 dead letters do not fit their target", len(places), tuple(wrong))

    return check


def _is_right(count: int, *, is_taken: bool, may_drop: bool, may_take: bool) -> bool:
    is_unclear = may_drop if is_taken else may_take
    return count <= 1 if is_unclear else count == int(is_taken)


def accepted_message_is_kept(history: Operations) -> Finding:
    """T1: an accepted message is in the topic's log once, also one that was published again.

    T17: one that was sent to a queue with routes is there once, or is a dead letter of the queue.
    """
    counts: dict[str, int] = defaultdict(int)
    for one, seen in answers(history, Kind.TAKEN, Kind.DEAD_LETTERS):
        if one.kind is Kind.TAKEN or one.log.startswith(QUEUE_PREFIX):
            counts[seen.value] += 1
    accepted = [value for one in ok(history, Kind.PUBLISH) for value in one.values]
    wrong = [
        f"{value} is {counts[value]} times in the topic" for value in accepted if counts[value] != 1
    ]
    return Finding("T1 an accepted message is in the topic once", len(accepted), tuple(wrong))


def routes_are_cut_exactly(subject_of: Callable[[str], str]) -> Callable[[Operations], Finding]:
    """T3: a route takes every matching message accepted after its change was answered, and none from before.

    `subject_of`: the subject of a message by its value. Records of a stream have no stored decision: `records_reach_changed_route`.
    """

    def check(history: Operations) -> Finding:
        names = route_names(history)
        taken = {
            seen.value: {names.get((one.log, number)) for number in seen.routes}
            for one, seen in answers(history, Kind.TAKEN)
        }
        wrong, checked = [], 0
        for publication, value, change in _decided(history):
            if change.log.startswith((STREAM_PREFIX, QUEUE_PREFIX)):
                continue
            checked += 1
            is_expected = subject_of(value) in change.values
            if is_expected is not (change.group in taken.get(value, ())):
                word = "not taken" if is_expected else "taken"
                wrong.append(
                    f"{value}, accepted at {publication.ended:.3f}, is {word} by {change.group}"
                )
        return Finding("T3 a change of routes cuts exactly", checked, tuple(wrong))

    return check


def records_reach_changed_route(
    source: str, target: str, subject_of: Callable[[str], str]
) -> Callable[[Operations], Finding]:
    """T1, T3: the target has each record once that its route of a stream takes, and no other.

    A record that was appended beside a change may be there or not.
    """

    def check(history: Operations) -> Finding:
        places = places_of(history)
        counts = {value: len(at) for (log, value), at in places.items() if log == target}
        wrong = [f"{value} is {n} times in {target}" for value, n in counts.items() if n > 1]
        checked = 0
        for _, value, change in _decided(history):
            if change.log != source or change.group != target:
                continue
            checked += 1
            is_taken = subject_of(value) in change.values
            if is_taken is not bool(counts.get(value)):
                wrong.append(f"{value} is {'not ' * is_taken}in {target}")
        return Finding("T3 records reach the route that takes them", checked, tuple(wrong))

    return check


def route_from_earliest_takes_all(target: str) -> Callable[[Operations], Finding]:
    """T3: a route that starts at the topic's beginning has each message once, whenever it was created."""

    def check(history: Operations) -> Finding:
        counts: dict[str, int] = defaultdict(int)
        for log, value in (places := places_of(history)):
            if log == target:
                counts[value] = len(places[log, value])
        topics = {one.log for one in history if one.kind is Kind.ROUTE and one.group == target}
        taken = [seen.value for one, seen in answers(history, Kind.TAKEN) if one.log in topics]
        wrong = [
            f"{value} is {counts[value]} times in {target}" for value in taken if counts[value] != 1
        ]
        return Finding("T3 a route from the earliest message takes all", len(taken), tuple(wrong))

    return check


def counts_of_routes_add_up(from_earliest: str) -> Callable[[Operations], Finding]:
    """T10: what a route has delivered, dropped, dead-lettered and shadowed are the messages that it takes.

    These have the number of its present revision; of the route that starts at the topic's beginning, all.
    """

    def check(history: Operations) -> Finding:
        taken = [(one.log, seen) for one, seen in answers(history, Kind.TAKEN)]
        routes = [one for one in history if one.kind is Kind.ROUTE_STATS]
        wrong = []
        for route in routes:
            [named] = route.seen
            is_whole = named.value == from_earliest
            of_topic = [seen for topic, seen in taken if topic == route.log]
            expected = sum(is_whole or named.offset in seen.routes for seen in of_topic)
            if (counted := sum(route.counts.values())) != expected:
                wrong.append(f"{named.value} takes {expected} messages, and counts {counted}")
        return Finding("T10 the counts of a route add up", len(routes), tuple(wrong))

    return check


def _decided(history: Operations) -> Iterator[tuple[Operation, str, Operation]]:
    """Yield each value, and of each route the change that decides: no other one was under way beside it.

    Only routes of the value's topic. A value whose publication was repeated may have been accepted at its first call.
    """
    changes: dict[str, dict[str, list[Operation]]] = defaultdict(lambda: defaultdict(list))
    for one in history:
        if one.kind is Kind.ROUTE and one.outcome is not Outcome.FAIL:
            changes[one.log][one.group].append(one)
    calls: dict[str, list[Operation]] = defaultdict(list)
    for one in history:
        if one.kind is Kind.PUBLISH:
            calls[one.values[0]].append(one)
    for value, repeats in calls.items():
        last = repeats[-1]
        if last.outcome is not Outcome.OK:
            continue
        begun = min(one.invoked for one in repeats)
        for of_route in changes[last.log].values():
            before = [one for one in of_route if one.invoked < last.ended]
            is_clear = all(one.outcome is Outcome.OK and one.ended < begun for one in before)
            if before and is_clear:
                yield last, value, max(before, key=lambda one: one.ended)


def messages_of_key_keep_order(target: str) -> Callable[[Operations], Finding]:
    """T4: messages of a key are in the target in the order of their acceptance.

    A value is its key and a number, which counts from 1.
    """

    def check(history: Operations) -> Finding:
        lasts: dict[str, int] = {}
        wrong, checked = [], 0
        for operation, seen in answers(history, Kind.READ):
            if operation.log != target:
                continue
            checked += 1
            key, _, number = seen.value.rpartition(":")
            if int(number) <= lasts.get(key, 0):
                wrong.append(f"{seen.value} comes after number {lasts[key]}")
            lasts[key] = int(number)
        return Finding(f"T4 messages of a key keep their order in {target}", checked, tuple(wrong))

    return check


def dedup_id_adds_one_message(topic: str) -> Callable[[Operations], Finding]:
    """T8: each publication of a value, which is its deduplication id, is answered with one message.

    For runs that end within the window.
    """

    def check(history: Operations) -> Finding:
        places: dict[str, set[tuple[int, int]]] = defaultdict(set)
        repeats = 0
        for operation, seen in answers(history, Kind.PUBLISH, Kind.TAKEN):
            if operation.log == topic:
                repeats += bool(places[seen.value])
                places[seen.value].add((seen.shard, seen.offset))
        wrong = [
            f"{value} is at {sorted(found)}" for value, found in places.items() if len(found) > 1
        ]
        return Finding("T8 a deduplication id adds one message", repeats, tuple(wrong))

    return check


def first_messages_keep_order(topic: str) -> Callable[[Operations], Finding]:
    """T4: messages of a key are in a FIFO topic in the order in which they were first accepted.

    A value is its key and a number. Children of a shard have higher numbers than it has.
    """

    def check(history: Operations) -> Finding:
        messages = [seen for one, seen in answers(history, Kind.TAKEN) if one.log == topic]
        numbers: dict[str, list[int]] = defaultdict(list)
        for seen in sorted(messages, key=lambda one: (one.shard, one.offset)):
            key, _, number = seen.value.rpartition(":")
            numbers[key].append(int(number))
        wrong = [f"{key}: {found}" for key, found in numbers.items() if found != sorted(found)]
        checked = sum(map(len, numbers.values()))
        return Finding("T4 first messages of a key keep their order", checked, tuple(wrong))

    return check


def route_names(history: Operations) -> dict[tuple[str, int], str]:
    """Return the names of routes by topic and number."""
    return {(one.log, seen.offset): seen.value for one, seen in answers(history, Kind.ROUTE)}


def places_of(
    history: Operations, others: Mapping[str, str] = MappingProxyType({})
) -> dict[tuple[str, str], set[Place]]:
    """Return the places of each value in each log; `others` are logs that count as another one."""
    places: dict[tuple[str, str], set[Place]] = defaultdict(set)
    for operation, seen in answers(history, *DELIVERIES, *READS):
        log = others.get(operation.log, operation.log)
        places[log, seen.value].add((seen.id, seen.shard, seen.offset))
    return places
