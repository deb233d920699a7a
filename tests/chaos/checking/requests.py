"""Invariants of requests: T13, T14."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checking.findings import Finding, Operations, ok
from tests.chaos.history import Kind, Operation

REFUSALS = frozenset({"reply_taken", "reply_too_late", "request_not_found"})
"""Codes of replies that are certainly not accepted. After others the reply may be: it is sent before its acknowledgement."""


def request_has_its_replies(history: Operations) -> Finding:
    """T13: a request accepts so many replies at most, and all complete readings have the accepted ones.

    Requests while the store's clock was wrong are left out: their replies may have expired.
    """
    most = {
        one.values[0]: one.counts["replies_max"]
        for one in history
        if one.kind is Kind.ASK and "replies_max" in one.counts
    }
    accepted: dict[str, set[str]] = defaultdict(set)
    for one in ok(history, Kind.REPLY):
        accepted[one.group].update(one.values)
    wrong, checked, first = [], 0, dict[str, tuple[str, ...]]()
    for reading in _readings(history):
        request = reading.group
        replies = tuple(seen.value for seen in reading.seen)
        checked += 1
        if len(replies) > most[request] or len(set(replies)) < len(replies):
            wrong.append(f"{request} has the replies {replies}, and accepts {most[request]}")
        if missing := accepted[request] - set(replies):
            wrong.append(f"{reading.client} read {request} without {sorted(missing)}")
        if first.setdefault(request, replies) != replies:
            wrong.append(f"{request} has the replies {first[request]}, then {replies}")
    return Finding("T13 a request has its accepted replies", checked, tuple(wrong))


def reply_is_for_its_request(history: Operations) -> Finding:
    """T14: a request has replies that were sent to it alone, and a token that is made up accepts none."""
    sent: dict[str, set[str]] = defaultdict(set)
    for one in history:
        if one.kind is Kind.REPLY and one.code not in REFUSALS:
            sent[one.group].update(one.values)
    readings = list(ok(history, Kind.ASK, Kind.REPLIES))
    wrong = [
        f"{request} has the reply {seen.value}, which was not sent to it"
        for one in readings
        for request in (one.values or (one.group,))
        for seen in one.seen
        if seen.value not in sent[request] or not seen.value.startswith(f"{request}/")
    ]
    wrong += [
        f"{one.client} had {one.values[0]} accepted with a token that it made up"
        for one in ok(history, Kind.REPLY)
        if not one.values[0].startswith(f"{one.group}/")
    ]
    return Finding("T14 a reply is for its request", len(readings), tuple(wrong))


def _readings(history: Operations) -> Iterator[Operation]:
    """Yield the complete readings of requests that began and ended while the clock was right."""
    clocks = [one for one in history if one.kind is Kind.CLOCK]
    begun = {one.values[0]: one.invoked for one in reversed(history) if one.kind is Kind.ASK}
    for reading in ok(history, Kind.REPLIES):
        since = begun.get(reading.group, reading.invoked)
        if not any(one.invoked < reading.ended and since < one.ended for one in clocks):
            yield reading
