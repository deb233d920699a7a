"""Invariant of sources: E5."""

from collections import defaultdict

from tests.chaos.checking.findings import Finding, Operations, answers
from tests.chaos.history import DELIVERIES, READS, Kind, Outcome


def event_is_in_its_target_once(history: Operations) -> Finding:
    """E5: an accepted event is in its target once, however often the provider sent it.

    `log` of a posted event is the target; deliveries and reads show what is in it. An event whose acceptance is
    unknown is there at most once.
    """
    places: dict[tuple[str, str], set[tuple[str, int, int]]] = defaultdict(set)
    for operation, seen in answers(history, *DELIVERIES, *READS):
        places[operation.log, seen.value].add((seen.id, seen.shard, seen.offset))
    posts = [operation for operation in history if operation.kind is Kind.EVENT]
    posted = {(operation.log, value) for operation in posts for value in operation.values}
    accepted = {
        (operation.log, value)
        for operation in posts
        if operation.outcome is Outcome.OK
        for value in operation.values
    }
    wrong = [
        f"event {value} is {count} times in {log}"
        for log, value in sorted(posted)
        if (count := len(places[log, value])) > 1 or (not count and (log, value) in accepted)
    ]
    return Finding("E5 an event is in its target once", len(accepted), tuple(wrong))
