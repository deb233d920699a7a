"""Invariant of sources: E5."""

from collections import defaultdict

from tests.chaos.checking.findings import Finding, Operations, answers, ok
from tests.chaos.history import DELIVERIES, READS, Kind


def event_is_in_its_target_once(history: Operations) -> Finding:
    """E5: an accepted event is in its target once, however often the provider sent it.

    `log` of a SEND is the target; deliveries and reads show what is in it.
    """
    places: dict[tuple[str, str], set[tuple[str, int, int]]] = defaultdict(set)
    for operation, seen in answers(history, *DELIVERIES, *READS):
        places[operation.log, seen.value].add((seen.id, seen.shard, seen.offset))
    accepted = {
        (operation.log, value) for operation in ok(history, Kind.SEND) for value in operation.values
    }
    wrong = [
        f"event {value} is {len(places[log, value])} times in {log}"
        for log, value in sorted(accepted)
        if len(places[log, value]) != 1
    ]
    return Finding("E5 an event is in its target once", len(accepted), tuple(wrong))
