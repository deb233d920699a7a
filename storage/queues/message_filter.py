"""Filter for messages and dead letters: that of records, text, reason and time sent."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from storage.domain.log.record_batch import Record
from storage.domain.queues.message import BrowsedMessage, DeadLetter
from storage.domain.streams.record_filter import Filter, has_text, selects
from storage.domain.streams.stream import LogRecord

M = TypeVar("M", BrowsedMessage, DeadLetter)

SelectsMessage = Callable[[BrowsedMessage | DeadLetter], bool]
"""Predicate on a message or dead letter: true if the filter selects it."""


class MessageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of messages: selects those that match every field that is set.

    A message's group is the key of its record. `text` is in the body, a header or the group, ignoring case, or is the id. The
    time sent is in [from_ms, to_ms). `reason`: of a dead letter; no other message has one.
    """

    record: Filter = Filter()
    text: str = ""
    reason: str = ""
    from_ms: int | None = None
    to_ms: int | None = None

    @property
    def terms(self) -> tuple[str, ...]:
        """Text of the filter, which binds cursors to it; empty if it selects all messages."""
        return () if self == _ALL else (msgspec.json.encode(self).decode(),)


_ALL = MessageFilter()


def selects_message(message_filter: MessageFilter) -> SelectsMessage | None:
    """Compile the filter to a predicate; None if it selects every message."""
    tests: list[SelectsMessage] = []
    if message_filter.reason:
        tests.append(lambda message: _reason_of(message) == message_filter.reason)
    if message_filter.from_ms is not None or message_filter.to_ms is not None:
        first, end = message_filter.from_ms or 0, message_filter.to_ms
        tests.append(
            lambda message: (
                first <= message.sent_at_ms and (end is None or message.sent_at_ms < end)
            )
        )
    if message_filter.text:
        text = message_filter.text
        tests.append(
            lambda message: message.message_id == text or has_text(_as_record(message).record, text)
        )
    if selects_record := selects(message_filter.record):
        tests.append(lambda message: selects_record(0, _as_record(message)))
    if not tests:
        return None
    return lambda message: all(test(message) for test in tests)


def matching(
    page: tuple[list[M], int | None], selects: SelectsMessage, messages_max: int
) -> tuple[list[M], int | None]:
    """Return at most `messages_max` selected messages, and the offset to continue after."""
    messages, next_offset = page
    selected = [message for message in messages if selects(message)]
    if len(selected) <= messages_max:
        return selected, next_offset
    return selected[:messages_max], selected[messages_max - 1].offset


def _reason_of(message: BrowsedMessage | DeadLetter) -> str:
    return message.reason if isinstance(message, DeadLetter) else ""


def _as_record(message: BrowsedMessage | DeadLetter) -> LogRecord:
    record = Record(message.body, message.group, message.headers)
    return LogRecord(message.offset, message.sent_at_ms, record)
