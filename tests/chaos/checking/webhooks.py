"""Invariants of webhooks at their receiver: at least once, unaltered, signed and in order.

An attempt is taken when the receiver answered it with success, whether or not that answer arrived.
Attempts that it refused or dropped count as well: they may contain nothing that was not sent, and
must be in order.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from tests.chaos.checking.findings import NEVER, Finding, Operations, answers, ok
from tests.chaos.checking.queues import clock_jumps, first_sends, meets
from tests.chaos.checking.streams import ancestors, parents_in
from tests.chaos.history import READS, Kind, Operation, Outcome, Seen

Name = tuple[str | int, ...]
"""Log and value of a message; log, shard and offset of a record."""

UNSIGNED = "unsigned"
"""The code of an attempt with an invalid signature."""


def every_message_is_posted(history: Operations) -> Finding:
    """At least once: what a source accepted is taken by the receiver, or dead-lettered."""
    logs = {one.log for one in ok(history, Kind.WEBHOOK)}
    due = {
        (one.log, value)
        for one in ok(history, Kind.SEND, Kind.APPEND)
        if one.log in logs
        for value in one.values
    }
    done = {(one.log, seen.value) for one, seen in answers(history, Kind.POSTED, Kind.DEAD_LETTERS)}
    wrong = [
        f"{value} was accepted by {log} and never taken by its webhook's receiver"
        for log, value in sorted(due - done)
    ]
    wrong += [
        f"nothing was sent to {log}"
        for log in sorted(logs)
        if not any(log == one for one, _ in due)
    ]
    return Finding("W1 every message is posted", len(due), tuple(wrong))


def nothing_else_is_posted(history: Operations) -> Finding:
    """Nothing is posted that was refused or never sent, or that has no webhook."""
    logs = {operation.log for operation in ok(history, Kind.WEBHOOK)}
    possible = {
        (operation.log, value)
        for operation in history
        if operation.kind in (Kind.SEND, Kind.APPEND) and operation.outcome is not Outcome.FAIL
        for value in operation.values
        if operation.log in logs
    }
    posted = {(operation.log, seen.value) for operation, seen in _attempts(history)}
    wrong = [
        f"{value} of {log} was posted, and was refused or never sent"
        for log, value in sorted(posted - possible)
    ]
    return Finding("W2 nothing else is posted", len(posted), tuple(wrong))


def posts_match_the_source(history: Operations) -> Finding:
    """Every attempt has the message id or record position known to senders and readers."""
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    bodies: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one, seen in [*answers(history, Kind.SEND), *_records(history), *_attempts(history)]:
        name = _name(one, seen)
        ids[one.log, seen.value].add(name)
        bodies[one.log, name].add(seen.value)
    attempts = [*_attempts(history)]
    wrong = [
        f"{value} of {log} was posted, and goes by {sorted(ids[log, value])}"
        for log, value in sorted({(one.log, seen.value) for one, seen in attempts})
        if len(ids[log, value]) > 1
    ]
    wrong += [
        f"{name} of {log} was posted, and is {sorted(found)}"
        for (log, name), found in sorted(bodies.items())
        if len(found) > 1 and not any(len(ids[log, value]) > 1 for value in found)
    ]
    wrong += [
        f"{seen.id} is about {_place(seen)} of {one.log}"
        for one, seen in attempts
        if seen.offset >= 0 and not seen.id.endswith(f"-{_place(seen)}")
    ]
    return Finding("W3 posts match the source", len(attempts), tuple(wrong))


def _name(one: Operation, seen: Seen) -> str:
    """The id of a message, the position of a record."""
    is_message = one.kind is Kind.SEND or (one.kind is Kind.POSTED and seen.offset < 0)
    return seen.id if is_message else _place(seen)


def _place(seen: Seen) -> str:
    return f"{seen.shard}-{seen.offset}"


def every_post_is_signed(history: Operations) -> Finding:
    """Each attempt has a valid, recent signature by the webhook's secret."""
    attempts = [*_attempts(history)]
    wrong = [
        f"{seen.value} of {one.log} came unsigned at {one.invoked:.3f}"
        for one, seen in attempts
        if one.code == UNSIGNED
    ]
    return Finding("W4 every post is signed", len(attempts), tuple(wrong))


def groups_are_posted_in_order(history: Operations) -> Finding:
    """In a FIFO group, posts are in order, and none is repeated after a later one.

    While the store's clock is wrong leases end early, so that repeats may be late.
    """
    asked, accepted = first_sends(history)
    taken = _taken(
        (operation, (operation.log, seen.value))
        for operation, seen in answers(history, Kind.POSTED)
    )
    in_time, since, jumps = _Line(accepted), _Line(asked), clock_jumps(history)
    wrong, checked = [], 0
    for operation, seen in _attempts(history):
        key = (operation.log, seen.group, seen.value)
        if not seen.group or key not in asked:
            continue
        checked += 1
        line = (operation.log, seen.group)
        wrong += [
            f"{seen.value} of {seen.group} overtook {value} at {operation.invoked:.3f}"
            for value in in_time.before(line, asked[key])
            if taken.get((operation.log, value), NEVER) > operation.invoked
        ]
        wrong += [
            f"{seen.value} of {seen.group} came again after {value}, at {operation.invoked:.3f}"
            for value in since.after(line, accepted.get(key, NEVER))
            if taken.get((operation.log, value), NEVER) < operation.invoked
            and not meets(jumps, accepted[key], operation.invoked)
        ]
    return Finding("W5 groups are posted in order", checked, tuple(wrong))


class _Line:
    """Messages of each group, ordered by a time."""

    def __init__(self, times: dict[tuple[str, str, str], float]) -> None:
        self._lines: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
        for (log, group, value), at in times.items():
            self._lines[log, group].append((at, value))
        for line in self._lines.values():
            line.sort()

    def before(self, of: tuple[str, str], at: float) -> Iterator[str]:
        line = self._lines[of]
        return (value for _, value in line[: bisect_left(line, (at, ""))])

    def after(self, of: tuple[str, str], at: float) -> Iterator[str]:
        line = self._lines[of]
        return (value for _, value in line[bisect_left(line, (at, "")) :])


def shards_are_posted_in_order(history: Operations) -> Finding:
    """A record is posted only after all earlier ones of its shard and its parents."""
    known: dict[tuple[str, int], set[int]] = defaultdict(set)
    for one, seen in _records(history):
        known[one.log, seen.shard].add(seen.offset)
    taken = _taken(
        (one, (one.log, seen.shard, seen.offset)) for one, seen in answers(history, Kind.POSTED)
    )
    shards = {
        (log, shard): _Prefix(
            sorted(offsets), [taken.get((log, shard, at), NEVER) for at in sorted(offsets)]
        )
        for (log, shard), offsets in known.items()
    }
    parents = parents_in(history)
    wrong, checked = [], 0
    for one, seen in _attempts(history):
        if seen.offset < 0 or (one.log, seen.shard) not in shards:
            continue
        checked += 1
        if shards[one.log, seen.shard].all_before(seen.offset) > one.invoked:
            wrong.append(
                f"{seen.offset} of shard {seen.shard} of {one.log} was posted at {one.invoked:.3f}, out of turn"
            )
        wrong += [
            f"shard {seen.shard} of {one.log} was posted at {one.invoked:.3f}, before all of its parent {parent}"
            for parent in sorted(ancestors(one.log, seen.shard, parents))
            if (one.log, parent) in shards and shards[one.log, parent].whole > one.invoked
        ]
    return Finding("W6 shards are posted in order", checked, tuple(wrong))


class _Prefix:
    """When all records of a shard before an offset were taken."""

    def __init__(self, offsets: Sequence[int], taken: Sequence[float]) -> None:
        self._offsets = offsets
        self._until = [*accumulate(taken, max)]
        self.whole = self._until[-1]

    def all_before(self, offset: int) -> float:
        number = bisect_left(self._offsets, offset)
        return self._until[number - 1] if number else 0.0


def _attempts(history: Operations) -> Iterator[tuple[Operation, Seen]]:
    """Every attempt that reached a receiver, whatever its response."""
    return (
        (operation, seen)
        for operation in history
        if operation.kind is Kind.POSTED
        for seen in operation.seen
    )


def _records(history: Operations) -> Iterator[tuple[Operation, Seen]]:
    """Every record that was written or read."""
    return answers(history, Kind.APPEND, *READS, Kind.GROUP_READ)


def _taken(posts: Iterable[tuple[Operation, Name]]) -> dict[Name, float]:
    """When each was first taken."""
    names: dict[Name, float] = {}
    for one, name in posts:
        names[name] = min(one.ended, names.get(name, NEVER))
    return names
