"""Invariants of queues: Q1 to Q10."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from tests.chaos.checking.findings import (
    NEVER,
    Finding,
    Operations,
    answers,
    delivered,
    first_asked,
    ok,
)
from tests.chaos.history import DELIVERIES, Kind, Operation, Outcome, Seen

STAYING = ("ready", "delayed", "in_flight", "parked", "moving")
GONE = ("dead_lettered", "acknowledged", "expired", "purged", "dropped", "moved_out")
CLOCK_GRAIN_S = 0.005
"""The store counts whole milliseconds."""


def delivery_is_returned_once(history: Operations) -> Finding:
    """Q1: no delivery of a message is in two responses."""
    held: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    for operation, seen in delivered(history):
        held[operation.log, seen.id, seen.receive_count].append(
            f"{operation.client} at {operation.ended:.3f}"
        )
    wrong = [
        f"delivery {receives} of {id_} of {log} went to {hands}"
        for (log, id_, receives), hands in held.items()
        if len(hands) > 1
    ]
    return Finding("Q1 a delivery is returned once", len(held), tuple(wrong))


def stale_delivery_cannot_be_acknowledged(history: Operations) -> Finding:
    """Q2: a verdict on a delivery is rejected after a later delivery to another client.

    The message may have been acknowledged since, and acknowledging a deleted message is no error.
    """
    later = _by_message(history)
    acks: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for one in history:
        if one.kind is Kind.ACK:
            acks[one.log, one.values[0]].append(one)
    wrong, checked = [], 0
    for message, new_ack in acks.items():
        for one in new_ack:
            since = [
                seen.receive_count
                for other, seen in later[message]
                if other.ended < one.invoked and seen.receive_count > one.delivery
            ]
            gone = any(ack is not one and ack.invoked < one.ended for ack in new_ack)
            if one.delivery and since and not gone:
                checked += 1
                if one.outcome is Outcome.OK:
                    wrong.append(
                        f"{one.client} acknowledged delivery {one.delivery} of {message[1]} at "
                        f"{one.ended:.3f}, after delivery {max(since)} had been answered"
                    )
    return Finding("Q2 a stale delivery cannot be acknowledged", checked, tuple(wrong))


def receive_count_increases(history: Operations) -> Finding:
    """Q3: the receive count increases with each delivery."""
    wrong, checked = [], 0
    for (log, value), deliveries in _by_message(history).items():
        checked += len(deliveries)
        wrong += [
            f"{value} of {log} was delivered for the {first.receive_count}th time at {before.ended:.3f}, "
            f"and for the {second.receive_count}th to {after.client}, which asked at {after.invoked:.3f}"
            for (before, first), (after, second) in _in_order(deliveries)
            if second.receive_count <= first.receive_count
        ]
    return Finding("Q3 the receive count increases", checked, tuple(wrong))


def _by_message(history: Operations) -> dict[tuple[str, str], list[tuple[Operation, Seen]]]:
    """The deliveries of each message."""
    found: dict[tuple[str, str], list[tuple[Operation, Seen]]] = defaultdict(list)
    for operation, seen in delivered(history):
        found[operation.log, seen.value].append((operation, seen))
    return found


Delivery = tuple[Operation, Seen]


def _in_order(deliveries: list[Delivery]) -> Iterator[tuple[Delivery, Delivery]]:
    """Pairs of which the first was answered before the second was requested."""
    for one, other in combinations(deliveries, 2):
        if one[0].ended < other[0].invoked:
            yield one, other
        elif other[0].ended < one[0].invoked:
            yield other, one


def acknowledged_message_is_not_redelivered(history: Operations) -> Finding:
    """Q4: a message is not received again after its acknowledgement was answered."""
    gone: dict[tuple[str, str], float] = {}
    for ack in ok(history, Kind.ACK):
        for value in ack.values:
            gone[ack.log, value] = min(ack.ended, gone.get((ack.log, value), ack.ended))
    wrong = [
        f"{seen.value} of {operation.log} was acknowledged at {gone[operation.log, seen.value]:.3f} "
        f"and received again by {operation.client}, which asked at {operation.invoked:.3f}"
        for operation, seen in delivered(history)
        if operation.invoked > gone.get((operation.log, seen.value), NEVER)
    ]
    return Finding("Q4 no acknowledged message is redelivered", len(gone), tuple(wrong))


def accepted_message_is_not_lost(history: Operations) -> Finding:
    """Q5: an accepted message is received, taken by a webhook receiver, or dead-lettered.

    A receive from the dead-letter queue counts: every earlier response may have been lost. An
    acknowledgement alone does not count, because one cannot acknowledge without a receive.
    """
    sent = {
        (operation.log, value) for operation in ok(history, Kind.SEND) for value in operation.values
    }
    kinds = (*DELIVERIES, Kind.POSTED, Kind.DEAD_LETTERS)
    source = dead_letter_sources(history)
    found = {
        (log, seen.value)
        for operation, seen in answers(history, *kinds)
        for log in (operation.log, source.get(operation.log, operation.log))
    }
    wrong = [f"{value} was accepted by {log} and never came" for log, value in sorted(sent - found)]
    return Finding("Q5 no accepted message is lost", len(sent), tuple(wrong))


def message_groups_are_ordered(history: Operations) -> Finding:
    """Q6: a message is not delivered while an earlier one of its group is unsettled elsewhere.

    A delivery is in order when each message accepted before its first send is before it in the same
    response, or its acknowledgement had been requested before that response.
    """
    asked, accepted = first_sends(history)
    released = first_asked(history, Kind.ACK)
    queues: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for (log, group, value), at in accepted.items():
        queues[log, group].append((at, value))
    for line in queues.values():
        line.sort()
    wrong, checked = [], 0
    for operation in ok(history, *DELIVERIES):
        before: set[str] = set()
        for seen in operation.seen:
            own = asked.get((operation.log, seen.group, seen.value))
            if seen.group and own is not None:
                line = queues[operation.log, seen.group]
                earlier = line[: bisect_left(line, (own, ""))]
                checked += 1
                wrong += [
                    f"{seen.value} of group {seen.group} overtook {value}: {operation.client}, at {operation.ended:.3f}"
                    for _, value in earlier
                    if value not in before
                    and released.get((operation.log, value), NEVER) > operation.ended
                ]
            before.add(seen.value)
    return Finding("Q6 message groups are ordered", checked, tuple(wrong))


def repeated_send_is_one_message(history: Operations) -> Finding:
    """Q7: repeated sends yield one message with one id.

    Published messages are copied to queues, once for each route: those are T1 and T5.
    """
    published = {value for one in history if one.kind is Kind.PUBLISH for value in one.values}
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    for operation, seen in answers(history, Kind.SEND, *DELIVERIES, Kind.DEAD_LETTERS):
        if seen.value not in published:
            ids[operation.log, seen.value].add(seen.id)
    wrong = [
        f"{value} of {log} is {len(found)} messages: {sorted(found)}"
        for (log, value), found in ids.items()
        if len(found) > 1
    ]
    return Finding("Q7 a repeated send is one message", len(ids), tuple(wrong))


def timeouts_are_respected(history: Operations) -> Finding:
    """Q8: nothing is delivered before its delay or visibility timeout has passed.

    Returning a message, or trying to, ends its timeout. While the store's clock is wrong there is
    no guarantee. Messages of a broken socket are returned, so their timeouts are not checked.
    """
    given_back = first_asked(history, Kind.NACK, Kind.ACK)
    jumps = clock_jumps(history)
    due = {
        (one.log, value): one
        for one in ok(history, Kind.SEND)
        if one.promised_s
        for value in one.values
    }
    wrong, checked = [], 0
    for (log, value), deliveries in _by_message(history).items():
        sent = due.get((log, value))
        for one, _ in deliveries if sent else ():
            checked += 1
            if sent and _too_soon(sent, one) and not meets(jumps, sent.invoked, one.ended):
                wrong.append(
                    f"{value} of {log} was sent at {sent.invoked:.3f} with a delay of "
                    f"{sent.promised_s} s, and came at {one.ended:.3f}"
                )
        for (one, first), (other, second) in combinations(deliveries, 2):
            before, after = (
                (one, other) if first.receive_count < second.receive_count else (other, one)
            )
            if before.promised_s and given_back.get((log, value), NEVER) > after.ended:
                checked += 1
                if _too_soon(before, after) and not meets(jumps, before.invoked, after.ended):
                    wrong.append(
                        f"{value} of {log} was received at {before.invoked:.3f} for "
                        f"{before.promised_s} s, and again at {after.ended:.3f}"
                    )
    return Finding("Q8 delays and visibility timeouts are respected", checked, tuple(wrong))


def clock_jumps(history: Operations) -> list[tuple[float, float]]:
    """Periods in which the store's clock was wrong."""
    return [
        (operation.invoked, operation.ended)
        for operation in history
        if operation.kind is Kind.CLOCK
    ]


def _too_soon(promise: Operation, delivery: Operation) -> bool:
    return delivery.ended < promise.invoked + promise.promised_s - CLOCK_GRAIN_S


def meets(spans: list[tuple[float, float]], first: float, last: float) -> bool:
    """Return whether one of these periods overlaps the interval."""
    return any(began <= last and first <= ended for began, ended in spans)


def dead_letter_queue_receives_once(history: Operations) -> Finding:
    """Q9, dead-letter queue: each message arrives there once, after its last receive."""
    wrong, checked = [], 0
    counts = {one.log: one.counts for one in ok(history, Kind.STATS)}
    by_message = _by_message(history)
    for stats in ok(history, Kind.STATS):
        if not stats.target:
            continue
        source, target, most = stats.log, stats.target, stats.counts["receives_max"]
        for value in sorted(
            {value for one in ok(history, Kind.SEND) if one.log == source for value in one.values}
        ):
            checked += 1
            there, here = by_message[target, value], by_message[source, value]
            if not there:
                wrong.append(f"{value} of {source} never came to {target}")
            if too_many := [seen.receive_count for _, seen in here if seen.receive_count > most]:
                wrong.append(f"{value} of {source} was received {max(too_many)} times")
            came = min([one.ended for one, _ in there], default=NEVER)
            if any(one.invoked > came for one, _ in here):
                wrong.append(f"{value} was in {target} and then in {source} again")
        left, entered = stats.counts["moved_out"], counts[target]["moved_in"]
        if left != entered:
            wrong.append(f"{left} left {source}, and {entered} came to {target}")
    return Finding("Q9 a dead-letter queue receives each message once", checked, tuple(wrong))


def dead_letters_are_unique(history: Operations) -> Finding:
    """Q9: a message without attempts left is dead-lettered once, and was not acknowledged."""
    acknowledged = {
        (operation.log, value) for operation in ok(history, Kind.ACK) for value in operation.values
    }
    listed = [
        (operation.log, seen.value) for operation, seen in answers(history, Kind.DEAD_LETTERS)
    ]
    wrong = [
        f"{value} is {listed.count((log, value))} dead letters of {log}"
        for log, value in sorted(set(listed))
        if listed.count((log, value)) > 1
    ]
    wrong += [
        f"{value} of {log} was acknowledged, and is a dead letter"
        for log, value in sorted(set(listed) & acknowledged)
    ]
    counted = {
        operation.log: operation.counts["dead_lettered"] for operation in ok(history, Kind.STATS)
    }
    for log, count in counted.items():
        found = sum(name == log for name, _ in listed)
        if found != count:
            wrong.append(f"{log} counts {count} dead letters and lists {found}")
    return Finding("Q9 built-in dead letters are unique", len(listed), tuple(wrong))


def counts_are_consistent(history: Operations) -> Finding:
    """Q10: at the end, every message is accounted for, and nothing is waiting."""
    wrong, checked = [], 0
    for operation in ok(history, Kind.STATS):
        checked += 1
        entered = operation.counts["sent"] + operation.counts["moved_in"]
        left = sum(operation.counts[name] for name in (*STAYING, *GONE))
        if entered != left:
            wrong.append(
                f"{operation.log} was sent {entered} and knows of {left}: {operation.counts}"
            )
        if waiting := {name: operation.counts[name] for name in STAYING if operation.counts[name]}:
            wrong.append(f"{operation.log} was not drained: {waiting}")
    return Finding("Q10 counts are consistent, and queues drain", checked, tuple(wrong))


def dead_letter_sources(history: Operations) -> dict[str, str]:
    """Map dead-letter queues to their source queues."""
    return {
        operation.target: operation.log
        for operation in history
        if operation.kind is Kind.STATS and operation.target
    }


def first_sends(
    history: Operations,
) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str, str], float]]:
    """When each message of a group was first sent and first accepted, by log, group and value."""
    asked: dict[tuple[str, str, str], float] = {}
    accepted: dict[tuple[str, str, str], float] = {}
    for operation in history:
        if operation.kind is Kind.SEND and operation.group:
            for value in operation.values:
                key = (operation.log, operation.group, value)
                asked[key] = min(operation.invoked, asked.get(key, operation.invoked))
                if operation.outcome is Outcome.OK:
                    accepted[key] = min(operation.ended, accepted.get(key, operation.ended))
    return asked, accepted
