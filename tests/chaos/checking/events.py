"""Invariants of server-sent events: a follower that resumes misses and repeats nothing."""

from collections import defaultdict

from tests.chaos.checking.findings import NEVER, Finding, Operations, answers, ok
from tests.chaos.checking.streams import ancestors, parents_in
from tests.chaos.history import READS, Kind


def follower_receives_no_duplicates(history: Operations) -> Finding:
    """S2: over all connections, the offsets of each shard increase.

    Gaps between two records are checked with all other reads.
    """
    wrong, checked = [], 0
    for operation, seen in answers(history, Kind.FOLLOWED):
        checked += 1
        if seen.offset < operation.first:
            wrong.append(
                f"{operation.client} had all of shard {seen.shard} of {operation.log} below {operation.first}, "
                f"and got {seen.offset} at {operation.ended:.3f}"
            )
    return Finding("S2 a follower receives no duplicates", checked, tuple(wrong))


def follower_receives_every_record(history: Operations) -> Finding:
    """S1: every acknowledged append reaches each follower before the end."""
    followed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for operation, seen in answers(history, Kind.FOLLOWED):
        followed[operation.client, operation.log].add(seen.value)
    wrong, checked = [], 0
    for (client, log), got in followed.items():
        appended = {
            v
            for operation in ok(history, Kind.APPEND)
            if operation.log == log
            for v in operation.values
        }
        checked += len(appended)
        wrong += [
            f"{value} was appended to {log} and never came to {client}"
            for value in sorted(appended - got)
        ]
    return Finding("S1 a follower receives every record", checked, tuple(wrong))


def follower_receives_parents_first(history: Operations) -> Finding:
    """S2 for keys: no record of a shard precedes those of its parents."""
    came: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
    for operation, seen in answers(history, Kind.FOLLOWED):
        came[operation.client, operation.log, seen.shard].setdefault(seen.offset, operation.ended)
    known: dict[tuple[str, int], set[int]] = defaultdict(set)
    for operation, seen in answers(history, Kind.APPEND, *READS):
        known[operation.log, seen.shard].add(seen.offset)
    parents = parents_in(history)
    wrong, checked = [], 0
    for (client, log, shard), offsets in came.items():
        began = min(offsets.values())
        for parent in sorted(ancestors(log, shard, parents)):
            theirs = came.get((client, log, parent), {})
            checked += 1
            late = [at for at in known[log, parent] if theirs.get(at, NEVER) > began]
            if late:
                wrong.append(
                    f"{client} got shard {shard} of {log} at {began:.3f}, before {min(late)} of its parent {parent}"
                )
    return Finding("S2 a follower receives parents first", checked, tuple(wrong))
