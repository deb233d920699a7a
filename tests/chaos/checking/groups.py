"""Invariants of consumer groups: G1 to G3."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.chaos.checking.findings import Finding, Operations, answers, ok
from tests.chaos.history import Kind, Operation, Outcome

Owned = dict[tuple[str, int], list[Operation]]


def shard_has_one_owner(history: Operations) -> Finding:
    """G1: in each generation, a shard has at most one owner."""
    owners: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for operation in ok(history, Kind.GROUP_READ):
        for shard in operation.owns:
            owners[operation.group, operation.generation, shard].add(operation.client)
    wrong = [
        f"shard {shard} of {group} belongs to {sorted(owner)} in generation {generation}"
        for (group, generation, shard), owner in owners.items()
        if len(owner) > 1
    ]
    return Finding("G1 a shard has one owner per generation", len(owners), tuple(wrong))


def stale_generation_cannot_commit(history: Operations) -> Finding:
    """G2: a commit is rejected once another member owned the shard in a later generation."""
    owned: Owned = defaultdict(list)
    for operation in ok(history, Kind.GROUP_READ):
        for shard in operation.owns:
            owned[operation.group, shard].append(operation)
    wrong, checked = [], 0
    for operation in history:
        if operation.kind is Kind.COMMIT and operation.generation >= 0:
            stale = [
                shard
                for shard in operation.owns
                if _is_stale(operation, owned[operation.group, shard])
            ]
            checked += len(stale)
            done = (
                {seen.shard for seen in operation.seen}
                if operation.outcome is Outcome.OK
                else set()
            )
            wrong += [
                f"{operation.client} committed shard {shard} of {operation.group} in generation "
                f"{operation.generation} at {operation.ended:.3f}, when it was another member's already"
                for shard in stale
                if shard in done
            ]
    return Finding("G2 a stale generation cannot commit", checked, tuple(wrong))


def _is_stale(commit: Operation, owned: list[Operation]) -> bool:
    return any(
        other.client != commit.client
        and other.generation > commit.generation
        and other.ended < commit.invoked
        for other in owned
    )


def groups_skip_no_record(history: Operations) -> Finding:
    """G3: a group has received every record below its committed offset.

    A shard ends behind its last record, or behind a reported gap: a log that was created while its
    store was lost begins above 0, and may stay empty.
    """
    given: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for operation, seen in answers(history, Kind.GROUP_READ):
        given[operation.group].add((seen.shard, seen.offset))
    there = {
        (operation.log, seen.shard, seen.offset) for operation, seen in answers(history, Kind.READ)
    }
    ends: dict[tuple[str, int], int] = defaultdict(int)
    for log, shard, offset in there:
        ends[log, shard] = max(ends[log, shard], offset + 1)
    for operation in ok(history, Kind.READ):
        for gap in operation.gaps:
            ends[operation.log, gap.shard] = max(ends[operation.log, gap.shard], gap.next)
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
            end = ends[standing.log, place.shard]
            if place.offset > end:
                wrong.append(f"{standing.group} stands at {place.offset}, past the end at {end}")
    return Finding("G3 groups skip no record and stay within the stream", checked, tuple(wrong))


def groups_reach_the_end(history: Operations) -> Finding:
    """Liveness: at the end, each group has reached the end of each shard with records.

    That is where the last read ended: a store may have lost what earlier ones returned.
    """
    ends: dict[tuple[str, int], int] = {}
    for operation in sorted(ok(history, Kind.READ), key=lambda read: read.invoked):
        for seen in operation.seen:
            ends[operation.log, seen.shard] = seen.offset + 1
    wrong, checked = [], 0
    for standing in _last_standings(history):
        stands = {place.shard: place.offset for place in standing.seen}
        for (log, shard), end in ends.items():
            if log == standing.log:
                checked += 1
                if stands.get(shard, 0) < end:  # a hole may follow the last record
                    wrong.append(
                        f"{standing.group} stands at {stands.get(shard)} of shard {shard}, which ends at {end}"
                    )
    return Finding("G3 groups reach the end", checked, tuple(wrong))


def committed_offsets_never_decrease(history: Operations) -> Finding:
    """G3: a committed offset never moves back."""
    facts: dict[tuple[str, int], list[tuple[float, float, int]]] = defaultdict(list)
    for operation, seen in answers(history, Kind.COMMIT, Kind.STANDING):
        facts[operation.group, seen.shard].append((operation.invoked, operation.ended, seen.offset))
    wrong, checked = [], 0
    for (group, shard), fact in facts.items():
        by_end = sorted((ended, offset) for _, ended, offset in fact)
        highest = [*_running_most(offset for _, offset in by_end)]
        for invoked, _, offset in fact:
            known = bisect_left(by_end, (invoked, -1))
            checked += 1
            if known and highest[known - 1] > offset:
                wrong.append(
                    f"{group} stood at {highest[known - 1]} of shard {shard}, "
                    f"and whoever asked at {invoked:.3f} was told {offset}"
                )
    return Finding("G3 committed offsets never move back", checked, tuple(wrong))


def _last_standings(history: Operations) -> Iterable[Operation]:
    return {operation.group: operation for operation in ok(history, Kind.STANDING)}.values()


def _running_most(numbers: Iterable[int]) -> Iterator[int]:
    most = -1
    for number in numbers:
        most = max(most, number)
        yield most
