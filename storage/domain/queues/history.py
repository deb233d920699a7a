"""What has happened to one message, for queues whose owner wants that kept.

    sent ─▶ due ─▶ delivered ─▶ extended ─▶ acknowledged
                       ▲  └─▶ nacked, released, lease_ended ─▶ due ─▶ delivered …
                       │  └─▶ nacked or rejected ─▶ dead_lettered ─▶ redriven ─▶ delivered …

A queue keeps HISTORY_EVENTS_MAX events or so of all its messages, and forgets the oldest first.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class What(StrEnum):
    """A change of a message's state."""

    SENT = "sent"
    MOVED_IN = "moved_in"
    DUE = "due"
    DELIVERED = "delivered"
    EXTENDED = "extended"
    ACKNOWLEDGED = "acknowledged"
    NACKED = "nacked"
    REJECTED = "rejected"
    RELEASED = "released"
    LEASE_ENDED = "lease_ended"
    DEAD_LETTERED = "dead_lettered"
    PARKED = "parked"
    REDRIVEN = "redriven"
    CHANGED = "changed"
    DEPARTED = "departed"
    PUT_BACK = "put_back"
    MOVED_OUT = "moved_out"
    EXPIRED = "expired"
    DROPPED = "dropped"
    PURGED = "purged"


class MessageEvent(msgspec.Struct, frozen=True):
    """One change. `until_ms`: when a delay or a delivery ends, where one began.

    `number`: of a delivery, which one it is; of a failure or a lease that ended, how many there were; of a message that
    moved in, its receives before. `reason`: what its consumer said, or why it is dead; of a message that moved, which way.
    """

    what: What
    at_ms: int
    until_ms: int | None = None
    number: int | None = None
    reason: str = ""


class MessageHistory(msgspec.Struct, frozen=True):
    """The changes of one message, oldest first. `truncated`: it began before what is kept does."""

    offset: int
    events: tuple[MessageEvent, ...]

    @property
    def truncated(self) -> bool:
        """Whether the message's beginning is not there any more, or was never kept."""
        return not self.events or self.events[0].what not in (What.SENT, What.MOVED_IN)

    @property
    def state(self) -> str:
        """Where the last change left the message: `ready`, `delayed`, `in_flight`, `dead_lettered`, `moving` or `gone`;
        empty where nothing is known of it."""
        return state_after(self.events)


_READY = (What.DUE, What.RELEASED, What.LEASE_ENDED, What.PARKED, What.REDRIVEN, What.PUT_BACK)
_GONE = (What.ACKNOWLEDGED, What.MOVED_OUT, What.EXPIRED, What.DROPPED, What.PURGED)
_OUT = (What.DELIVERED, What.EXTENDED)


def state_after(events: Sequence[MessageEvent]) -> str:
    """The state that the last of these changes leaves."""
    if not events:
        return ""
    last = events[-1]
    if last.what in _GONE:
        return "gone"
    if last.what in _OUT:
        return "in_flight"
    if last.what is What.DEAD_LETTERED:
        return "dead_lettered"
    if last.what is What.DEPARTED:
        return "moving"
    return "ready" if last.what in _READY or last.until_ms is None else "delayed"


Noted = tuple[str, MessageEvent]
"""An event, and the offset of its message; '*' of a purge, which meets all that lie before its number."""


def history_of(offset: int, noted: Sequence[Noted]) -> MessageHistory:
    """What of these events is about one message; a purge is, if the message was there to be dropped."""
    events: list[MessageEvent] = []
    for place, event in noted:
        if place == str(offset):
            events.append(event)
        elif place == "*" and offset < (event.number or 0) and _is_there(events):
            events.append(msgspec.structs.replace(event, number=None))
    return MessageHistory(offset, tuple(events))


def _is_there(events: Sequence[MessageEvent]) -> bool:
    return state_after(events) in ("ready", "delayed", "in_flight")
