"""History of one message, for queues that have it enabled.

    sent ─▶ due ─▶ delivered ─▶ extended ─▶ acknowledged
                       ▲  └─▶ nacked, released, lease_ended ─▶ due ─▶ delivered …
                       │  └─▶ nacked or rejected ─▶ dead_lettered ─▶ redriven ─▶ delivered …

A queue keeps about HISTORY_EVENTS_MAX events over all its messages and drops the oldest first.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec


class MessageEventType(StrEnum):
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
    """One change of a message's state.

    `until_ms`: end of the delay or delivery that this event started, if it started one.
    `number`: for a delivery, its number; for a failure or an expired lease, how many there were so far;
    for a message that moved in, its receive count before the move.
    `reason`: the reason that its consumer gave, or why it was dead-lettered; for a message that moved,
    the direction. `details`: the beginning of those of a failure. `consumer_key`: of a delivery, empty if unknown.
    """

    type: MessageEventType
    at_ms: int
    until_ms: int | None = None
    number: int | None = None
    reason: str = ""
    details: str = ""
    consumer_key: bytes = b""


class MessageAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery of a message, and how it ended.

    `outcome`: the event that ended it, or `in_flight`. `ended_at_ms` is None while it is in flight.
    """

    number: int
    received_at_ms: int
    ended_at_ms: int | None
    outcome: str
    consumer_key: bytes
    reason: str
    details: str


class MessageHistory(msgspec.Struct, frozen=True):
    """Changes of one message, oldest first.

    `truncated`: the events before the oldest one kept are missing.
    """

    offset: int
    events: tuple[MessageEvent, ...]

    @property
    def truncated(self) -> bool:
        """True if the message's first events are no longer kept, or never were."""
        return not self.events or self.events[0].type not in (
            MessageEventType.SENT,
            MessageEventType.MOVED_IN,
        )

    @property
    def attempts(self) -> tuple[MessageAttempt, ...]:
        """Deliveries, oldest first."""
        return tuple(_attempts_in(self.events))

    @property
    def state(self) -> str:
        """State after the last change; empty if no event is known.

        `ready`, `delayed`, `in_flight`, `dead_lettered`, `moving` or `gone`.
        """
        return state_after(self.events)


_READY = (
    MessageEventType.DUE,
    MessageEventType.RELEASED,
    MessageEventType.LEASE_ENDED,
    MessageEventType.PARKED,
    MessageEventType.REDRIVEN,
    MessageEventType.PUT_BACK,
)
_GONE = (
    MessageEventType.ACKNOWLEDGED,
    MessageEventType.MOVED_OUT,
    MessageEventType.EXPIRED,
    MessageEventType.DROPPED,
    MessageEventType.PURGED,
)
_ENDS = (
    MessageEventType.ACKNOWLEDGED,
    MessageEventType.NACKED,
    MessageEventType.REJECTED,
    MessageEventType.RELEASED,
    MessageEventType.LEASE_ENDED,
    MessageEventType.EXPIRED,
    MessageEventType.DROPPED,
    MessageEventType.PURGED,
)
"""Events that end a delivery in flight."""
_OUT = (MessageEventType.DELIVERED, MessageEventType.EXTENDED)


def _attempts_in(events: Sequence[MessageEvent]) -> Iterator[MessageAttempt]:
    delivery: MessageEvent | None = None
    for event in events:
        if event.type is MessageEventType.DELIVERED:
            delivery = event
        elif delivery is not None and event.type in _ENDS:
            yield _attempt(delivery, event)
            delivery = None
    if delivery is not None:
        yield _attempt(delivery, None)


def _attempt(delivery: MessageEvent, end: MessageEvent | None) -> MessageAttempt:
    return MessageAttempt(
        number=delivery.number or 0,
        received_at_ms=delivery.at_ms,
        ended_at_ms=None if end is None else end.at_ms,
        outcome="in_flight" if end is None else end.type.value,
        consumer_key=delivery.consumer_key,
        reason="" if end is None else end.reason,
        details="" if end is None else end.details,
    )


def state_after(events: Sequence[MessageEvent]) -> str:
    """Return the state after the last of these changes."""
    if not events:
        return ""
    last = events[-1]
    if last.type in _GONE:
        return "gone"
    if last.type in _OUT:
        return "in_flight"
    if last.type is MessageEventType.DEAD_LETTERED:
        return "dead_lettered"
    if last.type is MessageEventType.DEPARTED:
        return "moving"
    return "ready" if last.type in _READY or last.until_ms is None else "delayed"


Noted = tuple[str, MessageEvent]
"""The offset of a message, and its event; '*' for a purge, which affects all messages before its number."""


def history_of(offset: int, noted: Sequence[Noted]) -> MessageHistory:
    """Select the events that concern one message.

    A purge concerns it if the message was present to be dropped.
    """
    events: list[MessageEvent] = []
    for place, event in noted:
        if place == str(offset):
            events.append(event)
        elif place == "*" and offset < (event.number or 0) and _is_there(events):
            events.append(msgspec.structs.replace(event, number=None))
    return MessageHistory(offset, tuple(events))


def _is_there(events: Sequence[MessageEvent]) -> bool:
    return state_after(events) in ("ready", "delayed", "in_flight")
