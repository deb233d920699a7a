"""Messages and dead letters of a queue that are shown without being received."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.http.query import BODY_TERM, BodyTerm, HeaderTerm
from api.native.fields import moment_ms, rfc3339, show_body, show_headers
from api.native.former_names import former_member
from api.native.messages import (
    AnyBody,
    Base64,
    DeadLetterOriginOut,
    MessageContentOut,
    Time,
    show_origin,
)
from api.native.records import Moment
from storage.domain import limits
from storage.domain.queues.consumer import QueueConsumer
from storage.domain.queues.message import BrowsedMessage, DeadLetter, MessageState
from storage.domain.streams.record_filter import Filter
from storage.queues.message_filter import MessageFilter

_RENAMED = {"start": "from", "end": "to"}


def _content(message: BrowsedMessage | DeadLetter, binary: bool) -> dict[str, Any]:
    """Return the fields that show the content and the counts of a message."""
    body, encoded = (
        (message.body, UNSET) if binary else show_body(message.body, message.content_type)
    )
    texts, others = show_headers(message.headers)
    return {
        "id": message.message_id,
        "body": body,
        "body_base64": encoded,
        "content_type": message.content_type,
        "headers": texts,
        "headers_base64": others,
        "group": message.group,
        "receive_count": message.receive_count,
        "receives": message.receive_count,
        "failures": message.failures,
        "crash_count": message.crash_count,
        "crashes": message.crash_count,
    }


class LastReceiver(msgspec.Struct, omit_defaults=True, frozen=True, gc=False):
    """The consumer that received a message last. A day later only its id is known."""

    consumer: Annotated[str, Meta(description="Id of the consumer, as in the list of consumers.")]
    principal: str = ""
    protocol: Annotated[str, Meta(description="`rest`, `sqs`, `ws` or `webhook`.")] = ""
    address: str = ""
    client: str = ""


Consumers = Mapping[bytes, QueueConsumer]
"""Consumers by key."""


def _last_receiver(
    message: BrowsedMessage | DeadLetter, consumers: Consumers
) -> LastReceiver | UnsetType:
    key = message.consumer_key
    if not key:
        return UNSET
    consumer = consumers.get(key)
    if consumer is None:
        return LastReceiver(key.hex())
    return LastReceiver(
        consumer.id, consumer.principal, consumer.protocol, consumer.address, consumer.client
    )


class BrowsedMessageOut(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A message as stored in its queue; `due_at` is when its delay or its delivery ends."""

    id: str
    offset: int
    state: MessageState
    body: AnyBody = UNSET
    body_base64: Base64 | UnsetType = UNSET
    content_type: str = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    group: str = ""
    dedup_id: str = ""
    sent_at: Time
    due_at: Time | UnsetType = UNSET
    receive_count: int
    receives: Annotated[int, former_member("receive_count")]
    failures: int
    crash_count: int
    crashes: Annotated[int, former_member("crash_count")]
    first_received_at: Time | UnsetType = UNSET
    last_received_by: LastReceiver | UnsetType = UNSET
    dead_letter_source: str = ""
    dead_letter: DeadLetterOriginOut | UnsetType = UNSET

    @classmethod
    def from_domain(
        cls, message: BrowsedMessage, binary: bool, consumers: Consumers
    ) -> "BrowsedMessageOut":
        """Convert a message. `binary`: the answer is MessagePack, where the body is bin."""
        due_ms, first_ms = message.due_at_ms, message.first_received_at_ms
        return cls(
            offset=message.offset,
            state=message.state,
            **_content(message, binary),
            dedup_id=message.dedup_id,
            sent_at=rfc3339(message.sent_at_ms),
            due_at=UNSET if due_ms is None else rfc3339(due_ms),
            first_received_at=UNSET if first_ms is None else rfc3339(first_ms),
            last_received_by=_last_receiver(message, consumers),
            dead_letter_source=message.dead_letter_source,
            dead_letter=show_origin(message.dead_letter),
        )


class BrowsedMessages(msgspec.Struct):
    """A page of messages, in the order in which they were sent.

    It may be short without being the last.
    """

    items: list[BrowsedMessageOut]
    next_cursor: str | None = None


class _FilterQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename=_RENAMED):
    """Filter and page of a list of messages."""

    group: Annotated[
        tuple[str, ...],
        Meta(description="Only messages of this message group; can be repeated for more groups."),
    ] = ()
    header: Annotated[
        tuple[HeaderTerm, ...],
        Meta(description="Only messages with this header, as `name:value`; can be repeated."),
    ] = ()
    body: Annotated[tuple[BodyTerm, ...], Meta(description=f"Only messages {BODY_TERM}")] = ()
    text: Annotated[
        str,
        Meta(
            max_length=200,
            description="Only messages with this text in the body, a header or the group, ignoring case, or as id.",
        ),
    ] = ""
    start: Annotated[Moment, Meta(description="Sent at or after this time.")] | None = None
    end: Annotated[Moment, Meta(description="Sent before this time.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)] = limits.PAGE_ITEMS_DEFAULT
    cursor: Annotated[str, Meta(description="`next_cursor` of the previous page.")] = ""

    def to_filter(self, reason: str = "") -> MessageFilter:
        """Return the filter. Raises ValidationFailed."""
        return MessageFilter(
            record=Filter.of_terms(self.group, self.header, self.body),
            text=self.text,
            reason=reason,
            from_ms=None if self.start is None else moment_ms(self.start),
            to_ms=None if self.end is None else moment_ms(self.end),
        )


class BrowseQuery(_FilterQuery, kw_only=True, rename=_RENAMED):
    """Filter and page of the messages to list."""

    state: MessageState | None = None


class DeadLetterOut(MessageContentOut, kw_only=True, omit_defaults=True, gc=False):
    """A message that was dead-lettered, with the reason."""

    offset: int
    reason: str
    sent_at: Time
    died_at: Time
    receive_count: int
    receives: Annotated[int, former_member("receive_count")]
    failures: int
    crash_count: int
    crashes: Annotated[int, former_member("crash_count")]
    last_failure_reason: Annotated[
        str, Meta(description="Reason of the last nack or reject, if it is not the reason.")
    ] = ""
    details: Annotated[
        str,
        Meta(
            description="Details of the last nack or reject: a stack trace, or the start of the response of a webhook's receiver."
        ),
    ] = ""
    response: Annotated[str, former_member("details")] = ""
    last_received_by: LastReceiver | UnsetType = UNSET
    dead_letter: DeadLetterOriginOut | UnsetType = UNSET

    @classmethod
    def from_domain(cls, letter: DeadLetter, binary: bool, consumers: Consumers) -> "DeadLetterOut":
        """Convert a dead letter. `binary`: the answer is MessagePack, where the body is bin."""
        last = letter.last_failure_reason
        return cls(
            **_content(letter, binary),
            offset=letter.offset,
            reason=letter.reason,
            sent_at=rfc3339(letter.sent_at_ms),
            died_at=rfc3339(letter.died_at_ms),
            last_failure_reason="" if last == letter.reason else last,
            details=letter.details,
            response=letter.details,
            last_received_by=_last_receiver(letter, consumers),
            dead_letter=show_origin(letter.dead_letter),
        )


class DeadLetters(msgspec.Struct):
    """A page of dead letters, oldest first."""

    items: list[DeadLetterOut]
    next_cursor: str | None


class DeadLetterQuery(_FilterQuery, kw_only=True, rename=_RENAMED):
    """Filter and page of the dead letters to list."""

    reason: Annotated[
        str,
        Meta(
            max_length=limits.REASON_CHARACTERS_MAX,
            description="Only dead letters with this reason.",
        ),
    ] = ""
