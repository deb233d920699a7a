"""What must be true of a history, whatever broke while it was made. Pure functions; the numbers are those of the design.

Each gives a `Finding`: how many facts it looked at, and those that cannot be. An invariant that had nothing to look at
was not checked, and the verdict counts that as a failure too.

A history ends with a drain: every queue received and acknowledged until its counts are zero, every stream read from its
start, every group read to its end, and then the counts, the dead letters and the standing of each group.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from tests.chaos.history import Kind, Operation, Outcome, Seen

EXAMPLES = 5
STAYING = ("ready", "delayed", "in_flight", "parked", "moving")
GONE = ("dead_lettered", "acknowledged", "expired", "purged", "dropped", "moved_out")
UNANSWERED = "outcome_unknown"
"""The code of a 500 that says so: the SQS door has no other status for an unknown outcome."""

Operations = Sequence[Operation]
Place = tuple[str, int, int]


class Finding(msgspec.Struct, frozen=True):
    """An invariant held against a history."""

    name: str
    checked: int
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether it was checked, and nothing spoke against it."""
        return self.checked > 0 and not self.violations

    def line(self) -> str:
        """One line for a report, with the first violations."""
        word = "ok" if self.holds else "NOTHING CHECKED" if not self.violations else "VIOLATED"
        shown = "".join(f"\n      {one}" for one in self.violations[:EXAMPLES])
        return f"{self.name:<58}{self.checked:>9}  {word}{shown}"


def check(history: Operations) -> list[Finding]:
    """Every invariant, held against the history."""
    return [invariant(history) for invariant in INVARIANTS]


def nothing_acknowledged_returns(history: Operations) -> Finding:
    """Q4: no receive that was asked for after an acknowledgement was answered has the message in it."""
    gone: dict[tuple[str, str], float] = {}
    for ack in _ok(history, Kind.ACK):
        for value in ack.values:
            gone[ack.log, value] = min(ack.ended, gone.get((ack.log, value), ack.ended))
    wrong = [
        f"{seen.value} of {one.log} was acknowledged at {gone[one.log, seen.value]:.3f} "
        f"and received again by {one.client}, which asked at {one.invoked:.3f}"
        for one, seen in _seen(history, Kind.RECEIVE)
        if one.invoked > gone.get((one.log, seen.value), float("inf"))
    ]
    return Finding("Q4 nothing acknowledged returns", len(gone), tuple(wrong))


def nothing_accepted_is_lost(history: Operations) -> Finding:
    """Q5: what a send was told is accepted was received, or is a dead letter.

    An acknowledgement whose message nobody was seen to receive does not count: one cannot acknowledge without.
    """
    sent = {(one.log, value) for one in _ok(history, Kind.SEND) for value in one.values}
    found = {
        (one.log, seen.value)
        for kind in (Kind.RECEIVE, Kind.DEAD_LETTERS)
        for one, seen in _seen(history, kind)
    }
    wrong = [f"{value} was accepted by {log} and never came" for log, value in sorted(sent - found)]
    return Finding("Q5 nothing accepted is lost", len(sent), tuple(wrong))


def nothing_comes_from_nowhere(history: Operations) -> Finding:
    """Q5, the other way round: what was received was sent, and no send that was told "nothing happened" had an effect."""
    possible = {
        (one.log, value)
        for one in history
        if one.kind in (Kind.SEND, Kind.APPEND) and one.outcome is not Outcome.FAIL
        for value in one.values
    }
    kinds = (Kind.RECEIVE, Kind.DEAD_LETTERS, Kind.READ, Kind.GROUP_READ)
    found = {(one.log, seen.value) for kind in kinds for one, seen in _seen(history, kind)}
    wrong = [
        f"{value} is in {log}, and was refused or never sent"
        for log, value in sorted(found - possible)
    ]
    return Finding("Q5 nothing that was refused is there", len(found), tuple(wrong))


def groups_keep_their_order(history: Operations) -> Finding:
    """Q6: no message is delivered while one that was accepted before it, of its group, is unacknowledged elsewhere.

    A delivery is in order when each message that was accepted before its own first send was asked stands before it
    in the same answer, or somebody had asked to acknowledge it before this answer came.
    """
    asked, accepted = _first_sends(history)
    released = _first_asked(history, Kind.ACK)
    queues: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for (log, group, value), at in accepted.items():
        queues[log, group].append((at, value))
    for line in queues.values():
        line.sort()
    wrong, checked = [], 0
    for one in _ok(history, Kind.RECEIVE):
        before: set[str] = set()
        for seen in one.seen:
            first_asked = asked.get((one.log, seen.group, seen.value))
            if seen.group and first_asked is not None:
                line = queues[one.log, seen.group]
                earlier = line[: bisect_left(line, (first_asked, ""))]
                checked += 1
                wrong += [
                    f"{seen.value} of group {seen.group} overtook {value}: {one.client}, at {one.ended:.3f}"
                    for _, value in earlier
                    if value not in before
                    and released.get((one.log, value), float("inf")) > one.ended
                ]
            before.add(seen.value)
    return Finding("Q6 groups keep their order", checked, tuple(wrong))


def one_message_for_each_send(history: Operations) -> Finding:
    """Q7: whatever was repeated, by a client with its deduplication id or on the way, is one message with one id."""
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind in (Kind.SEND, Kind.RECEIVE, Kind.DEAD_LETTERS):
        for one, seen in _seen(history, kind):
            ids[one.log, seen.value].add(seen.id)
    wrong = [
        f"{value} of {log} is {len(found)} messages: {sorted(found)}"
        for (log, value), found in ids.items()
        if len(found) > 1
    ]
    return Finding("Q7 one message for each send", len(ids), tuple(wrong))


def dead_letters_are_there_once(history: Operations) -> Finding:
    """Q9: a message without further attempts is among the dead letters exactly once, and was not acknowledged."""
    acknowledged = {(one.log, value) for one in _ok(history, Kind.ACK) for value in one.values}
    listed = [(one.log, seen.value) for one, seen in _seen(history, Kind.DEAD_LETTERS)]
    wrong = [
        f"{value} is {listed.count((log, value))} dead letters of {log}"
        for log, value in sorted(set(listed))
        if listed.count((log, value)) > 1
    ]
    wrong += [
        f"{value} of {log} was acknowledged, and is a dead letter"
        for log, value in sorted(set(listed) & acknowledged)
    ]
    counted = {one.log: one.counts["dead_lettered"] for one in _ok(history, Kind.STATS)}
    for log, count in counted.items():
        found = sum(name == log for name, _ in listed)
        if found != count:
            wrong.append(f"{log} counts {count} dead letters and lists {found}")
    return Finding("Q9 dead letters are there exactly once", len(listed), tuple(wrong))


def counts_add_up(history: Operations) -> Finding:
    """Q10: at the end everything that was sent is somewhere, and nothing waits any more."""
    wrong, checked = [], 0
    for one in _ok(history, Kind.STATS):
        checked += 1
        entered = one.counts["sent"] + one.counts["moved_in"]
        left = sum(one.counts[name] for name in (*STAYING, *GONE))
        if entered != left:
            wrong.append(f"{one.log} was sent {entered} and knows of {left}: {one.counts}")
        if waiting := {name: one.counts[name] for name in STAYING if one.counts[name]}:
            wrong.append(f"{one.log} was not drained: {waiting}")
    return Finding("Q10 counts add up, and everything drains", checked, tuple(wrong))


def an_offset_holds_one_value(history: Operations) -> Finding:
    """S1: who wrote, every reader and every group saw the same value at an offset."""
    held: dict[Place, set[str]] = defaultdict(set)
    for kind in (Kind.APPEND, Kind.READ, Kind.GROUP_READ):
        for one, seen in _seen(history, kind):
            held[one.log, seen.shard, seen.offset].add(seen.value)
    wrong = [
        f"offset {offset} of shard {shard} of {log} holds {sorted(values)}"
        for (log, shard, offset), values in held.items()
        if len(values) > 1
    ]
    return Finding("S1 an offset holds one value", len(held), tuple(wrong))


def nothing_appended_is_lost(history: Operations) -> Finding:
    """S1, as a loss: what an append was told is there is read at the end."""
    appended = {(one.log, value) for one in _ok(history, Kind.APPEND) for value in one.values}
    read = {(one.log, seen.value) for one, seen in _seen(history, Kind.READ)}
    wrong = [
        f"{value} was appended to {log} and cannot be read"
        for log, value in sorted(appended - read)
    ]
    return Finding("S1 nothing appended is lost", len(appended), tuple(wrong))


def offsets_rise(history: Operations) -> Finding:
    """S2: what a reader is given rises, and so do the offsets of a client's appends, one after another."""
    wrong, checked = [], 0
    last: dict[tuple[str, str, int], tuple[int, str]] = {}
    for one in _ok(history, Kind.APPEND):
        for seen in one.seen:
            checked += 1
            offset, value = last.get((one.client, one.log, seen.shard), (-1, ""))
            if seen.offset <= offset and seen.value != value:
                wrong.append(
                    f"{one.client} appended {seen.value} at {seen.offset}, after {value} at {offset}"
                )
            last[one.client, one.log, seen.shard] = (seen.offset, seen.value)
    for kind in (Kind.READ, Kind.GROUP_READ):
        for one in _ok(history, kind):
            for before, after in pairwise(sorted(one.seen, key=lambda seen: seen.shard)):
                checked += 1
                if before.shard == after.shard and after.offset <= before.offset:
                    wrong.append(
                        f"{one.client} read {after.offset} after {before.offset} of {one.log}"
                    )
    return Finding("S2 offsets rise", checked, tuple(wrong))


def a_repeated_append_adds_nothing(history: Operations) -> Finding:
    """S4: a value, however often its append was repeated, is at one place."""
    places: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for kind in (Kind.APPEND, Kind.READ, Kind.GROUP_READ):
        for one, seen in _seen(history, kind):
            places[one.log, seen.value].add((seen.shard, seen.offset))
    wrong = [
        f"{value} of {log} is at {sorted(found)}"
        for (log, value), found in places.items()
        if len(found) > 1
    ]
    return Finding("S4 a repeated append adds nothing", len(places), tuple(wrong))


def groups_skip_nothing(history: Operations) -> Finding:
    """G3: a group has been given every record below where it stands, and does not stand past the end."""
    given: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for one, seen in _seen(history, Kind.GROUP_READ):
        given[one.group].add((seen.shard, seen.offset))
    there = {(one.log, seen.shard, seen.offset) for one, seen in _seen(history, Kind.READ)}
    wrong, checked = [], 0
    for standing in _last_standings(history):
        for place in standing.seen:
            checked += 1
            below = {
                (shard, offset)
                for log, shard, offset in there
                if (log, shard) == (standing.log, place.shard) and offset < place.offset
            }
            if missing := sorted(below - given[standing.group]):
                wrong.append(
                    f"{standing.group} stands at {place.offset} and was not given {missing[:3]}"
                )
            end = max(
                (o for log, s, o in there if (log, s) == (standing.log, place.shard)), default=-1
            )
            if place.offset > end + 1:
                wrong.append(
                    f"{standing.group} stands at {place.offset}, past the end at {end + 1}"
                )
    return Finding("G3 groups skip nothing and stay within the stream", checked, tuple(wrong))


def groups_arrive(history: Operations) -> Finding:
    """Liveness: at the end each group stands at the end of each shard that has records."""
    ends: dict[tuple[str, int], int] = {}
    for one, seen in _seen(history, Kind.READ):
        ends[one.log, seen.shard] = max(seen.offset + 1, ends.get((one.log, seen.shard), 0))
    wrong, checked = [], 0
    for standing in _last_standings(history):
        stands = {place.shard: place.offset for place in standing.seen}
        for (log, shard), end in ends.items():
            if log == standing.log:
                checked += 1
                if stands.get(shard) != end:
                    wrong.append(
                        f"{standing.group} stands at {stands.get(shard)} of shard {shard}, which ends at {end}"
                    )
    return Finding("G3 groups arrive at the end", checked, tuple(wrong))


def committed_offsets_stay(history: Operations) -> Finding:
    """G3: a committed offset does not move back: whoever asks later is told as much, or more."""
    facts: dict[tuple[str, int], list[tuple[float, float, int]]] = defaultdict(list)
    for kind in (Kind.COMMIT, Kind.STANDING):
        for one, seen in _seen(history, kind):
            facts[one.group, seen.shard].append((one.invoked, one.ended, seen.offset))
    wrong, checked = [], 0
    for (group, shard), told in facts.items():
        by_end = sorted((ended, offset) for _, ended, offset in told)
        highest = [*_running_most(offset for _, offset in by_end)]
        for invoked, _, offset in told:
            known = bisect_left(by_end, (invoked, -1))
            checked += 1
            if known and highest[known - 1] > offset:
                wrong.append(
                    f"{group} stood at {highest[known - 1]} of shard {shard}, "
                    f"and whoever asked at {invoked:.3f} was told {offset}"
                )
    return Finding("G3 committed offsets never move back", checked, tuple(wrong))


def no_answer_is_a_fault(history: Operations) -> Finding:
    """No 500, except where the SQS door says with it that the outcome is unknown."""
    wrong = [
        f"{one.client} was answered {one.status} {one.code} to {one.kind.value} of {one.log} at {one.ended:.3f}"
        for one in history
        if one.status == 500 and one.code != UNANSWERED
    ]
    return Finding("no answer is a 500", len(history), tuple(wrong))


INVARIANTS: tuple[Callable[[Operations], Finding], ...] = (
    nothing_acknowledged_returns,
    nothing_accepted_is_lost,
    nothing_comes_from_nowhere,
    groups_keep_their_order,
    one_message_for_each_send,
    dead_letters_are_there_once,
    counts_add_up,
    an_offset_holds_one_value,
    nothing_appended_is_lost,
    offsets_rise,
    a_repeated_append_adds_nothing,
    groups_skip_nothing,
    groups_arrive,
    committed_offsets_stay,
    no_answer_is_a_fault,
)


def _ok(history: Operations, kind: Kind) -> Iterator[Operation]:
    return (one for one in history if one.kind is kind and one.outcome is Outcome.OK)


def _seen(history: Operations, kind: Kind) -> Iterator[tuple[Operation, Seen]]:
    return ((one, seen) for one in _ok(history, kind) for seen in one.seen)


def _first_sends(
    history: Operations,
) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str, str], float]]:
    """When each message of a group was first asked to be sent, and when first accepted."""
    asked: dict[tuple[str, str, str], float] = {}
    accepted: dict[tuple[str, str, str], float] = {}
    for one in history:
        if one.kind is Kind.SEND and one.group:
            for value in one.values:
                key = (one.log, one.group, value)
                asked[key] = min(one.invoked, asked.get(key, one.invoked))
                if one.outcome is Outcome.OK:
                    accepted[key] = min(one.ended, accepted.get(key, one.ended))
    return asked, accepted


def _first_asked(history: Operations, kind: Kind) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for one in history:
        if one.kind is kind:
            for value in one.values:
                found[one.log, value] = min(one.invoked, found.get((one.log, value), one.invoked))
    return found


def _last_standings(history: Operations) -> Iterable[Operation]:
    return {one.group: one for one in _ok(history, Kind.STANDING)}.values()


def _running_most(numbers: Iterable[int]) -> Iterator[int]:
    most = -1
    for number in numbers:
        most = max(most, number)
        yield most
