"""Invariants of paused queues and consumer groups: nothing is delivered."""

from tests.chaos.checking.findings import Finding, Operations, ok
from tests.chaos.history import DELIVERIES, Kind, Operation


def paused_queue_delivers_nothing(history: Operations) -> Finding:
    """No receive that starts during the pause returns a message, and no credit of that time is used."""
    receives = [*ok(history, *DELIVERIES)]
    return _finding(
        "a paused queue delivers nothing",
        [
            (pause, receive)
            for pause in ok(history, Kind.PAUSED)
            if pause.log
            for receive in receives
            if receive.log == pause.log and _is_within(receive, pause)
        ],
    )


def paused_group_receives_nothing(history: Operations) -> Finding:
    """No fetch that starts during the pause returns a record.

    Only fetches by REST have a generation; a frame may have been sent long before it arrives.
    """
    fetches = [fetch for fetch in ok(history, Kind.GROUP_READ) if fetch.generation >= 0]
    return _finding(
        "a paused group receives nothing",
        [
            (pause, fetch)
            for pause in ok(history, Kind.PAUSED)
            if pause.group
            for fetch in fetches
            if fetch.group == pause.group and _is_within(fetch, pause)
        ],
    )


def _is_within(delivery: Operation, pause: Operation) -> bool:
    """Return whether it started after the pause was noticed, and ended before the pause did."""
    return pause.invoked + pause.promised_s < delivery.invoked and delivery.ended < pause.ended


def _finding(name: str, pairs: list[tuple[Operation, Operation]]) -> Finding:
    wrong = [
        f"{delivery.client} got {delivery.seen[0].value} at {delivery.ended:.3f}, and {pause.log or pause.group} "
        f"was paused from {pause.invoked:.3f} to {pause.ended:.3f}"
        for pause, delivery in pairs
        if delivery.seen
    ]
    return Finding(name, len(pairs), tuple(wrong))
