"""Messages of a queue on the wire."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.http.codecs import Lined, refuse_field_headers
from api.native.fields import (
    body_from_json,
    body_from_msgpack,
    content_type_from_http,
    header_names_from_http,
    headers_from_http,
    headers_from_json,
    http_number,
    http_text,
    http_whole,
    optional_ms,
    rfc3339,
    show_body,
    show_headers,
    to_ms,
)
from api.native.former_names import former_member
from api.types import RequestHeaders
from storage.domain import limits
from storage.domain.log.record_batch import SUBJECT, Headers
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin, origin_of
from storage.domain.queues.message import (
    NewMessage,
    ReceivedMessage,
    SentMessage,
)
from storage.domain.requests.token import REPLY_TO
from storage.domain.topics.topic import KEY, ROUTE, TOPIC
from storage.domain.trace_context import with_noted

Base64 = Annotated[str, Meta(description="Bytes in standard base64.")]
AnyBody = Annotated[
    Any, Meta(description="A string is stored as UTF-8 text, any other value as compact JSON.")
]
RawBody = Annotated[
    msgspec.Raw,
    Meta(description="A string is stored as UTF-8 text, any other value as compact JSON."),
]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
HeaderMap = Annotated[
    dict[str, str], Meta(description="Header names (without a leading ':') and text values.")
]
Group = Annotated[
    str, Meta(max_length=limits.GROUP_CHARACTERS_MAX, description="FIFO queues only.")
]
ContentType = Annotated[
    str,
    Meta(
        max_length=limits.HEADER_NAME_CHARACTERS_MAX,
        description="Content type of the body. With 'application/json', responses return "
        "it as a JSON value.",
    ),
]
DelaySeconds = Annotated[float, Meta(ge=0, le=limits.DELAY_MS_MAX // limits.SECOND_MS)]
TtlSeconds = Annotated[
    float,
    Meta(
        ge=0,
        le=limits.TTL_MS_MAX // limits.SECOND_MS,
        description="Time to live from when the message is due; 0: the queue's default.",
    ),
]
VisibilitySeconds = Annotated[
    float, Meta(ge=0, le=limits.VISIBILITY_TIMEOUT_MS_MAX // limits.SECOND_MS)
]
NackDelaySeconds = Annotated[float, Meta(ge=0, le=limits.NACK_DELAY_MS_MAX // limits.SECOND_MS)]
WaitSeconds = Annotated[
    float,
    Meta(
        ge=0,
        le=limits.WAIT_MS_MAX // limits.SECOND_MS,
        description="Time to wait for the first message.",
    ),
]


class _MessageFields(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """Fields that every form of a message has beside its body."""

    body_base64: Base64 | UnsetType = UNSET
    headers: HeaderMap = {}
    content_type: ContentType = ""
    group: Group = ""
    dedup_id: Group = ""
    delay_seconds: DelaySeconds | None = None
    ttl_seconds: TtlSeconds = 0
    priority: Annotated[int, Meta(ge=0, le=limits.PRIORITY_MAX)] = 0

    def _with(self, body: bytes, own_content_type: str) -> NewMessage:
        return NewMessage(
            body,
            headers_from_json(self.headers) if self.headers else (),
            self.content_type or own_content_type,
            self.group,
            self.dedup_id,
            None if self.delay_seconds is None else to_ms(self.delay_seconds),
            ttl_ms=to_ms(self.ttl_seconds) if self.ttl_seconds else 0,
            priority=self.priority,
        )


class MessageIn(_MessageFields, kw_only=True, gc=False):
    """A message to send: `body` or `body_base64`."""

    body: RawBody | UnsetType = UNSET

    def to_domain(self) -> NewMessage:
        """Convert the message. Raises ValidationFailed when its body cannot be decoded."""
        return self._with(*body_from_json(self.body, self.body_base64, "body"))


class MessageOrBatch(MessageIn, kw_only=True, gc=False):
    """A message, or a batch of them."""

    messages: list[MessageIn] | UnsetType = UNSET


class PackedMessage(_MessageFields, kw_only=True, gc=False):
    """A message in MessagePack, where a body may be bin."""

    body: Any = UNSET

    def to_domain(self) -> NewMessage:
        """Convert the message. Raises ValidationFailed when its body cannot be decoded."""
        return self._with(*body_from_msgpack(self.body, self.body_base64, "body"))


class PackedMessageOrBatch(PackedMessage, kw_only=True, gc=False):
    """A message, or a batch of them, in MessagePack."""

    messages: list[PackedMessage] | UnsetType = UNSET


class SendMessages(msgspec.Struct, forbid_unknown_fields=True):
    """Batch of messages.

    A single message, NDJSON, MessagePack and raw bodies are also accepted.
    """

    messages: Annotated[list[MessageIn], Meta(min_length=1, max_length=limits.BATCH_MESSAGES_MAX)]


_RAW_MESSAGE_HEADERS = (
    b"millstream-group",
    b"millstream-dedup-id",
    b"millstream-delay-seconds",
    b"millstream-ttl-seconds",
    b"millstream-priority",
)


def message_from_raw(
    payload: bytes,
    headers: RequestHeaders,
    content_type_of: Callable[[RequestHeaders], str] = content_type_from_http,
) -> NewMessage:
    """Build a message whose body is the request's, as `curl -d hello` sends it.

    The other fields are in headers.
    """
    if not any(name.startswith(b"millstream-") for name in headers):
        return NewMessage(payload, content_type=content_type_of(headers))
    refuse_field_headers(headers, (*_RAW_MESSAGE_HEADERS, *header_names_from_http(headers)))
    return NewMessage(
        payload,
        headers_from_http(headers),
        content_type_of(headers),
        http_text(headers, "Millstream-Group"),
        http_text(headers, "Millstream-Dedup-Id"),
        optional_ms(http_number(headers, "Millstream-Delay-Seconds")),
        ttl_ms=optional_ms(http_number(headers, "Millstream-Ttl-Seconds")) or 0,
        priority=http_whole(headers, "Millstream-Priority"),
    )


class SentMessageOut(msgspec.Struct, frozen=True, gc=False):
    """The id and offset of a sent message.

    `duplicate`: it had been sent before, and nothing was added.
    """

    id: str
    offset: int
    duplicate: bool

    @classmethod
    def from_domain(cls, sent: SentMessage) -> "SentMessageOut":
        return cls(sent.message_id, sent.offset, sent.duplicate)


class SentMessages(msgspec.Struct):
    """Sent messages, in order."""

    messages: list[SentMessageOut]


class Receive(msgspec.Struct, forbid_unknown_fields=True):
    """Receive options: maximum number of messages, wait, and visibility timeout."""

    messages_max: Annotated[int, Meta(ge=1, le=limits.RECEIVE_MESSAGES_MAX)] = 1
    wait_seconds: WaitSeconds | None = None
    visibility_timeout_seconds: VisibilitySeconds | None = None
    attempt_id: Annotated[
        str,
        Meta(
            max_length=limits.ATTEMPT_ID_CHARACTERS_MAX,
            description="FIFO queues: retries with the same id return the same messages "
            "for five minutes.",
        ),
    ] = ""


class DeadLetterOriginOut(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The source that gave up on the message, why, and after how many failures."""

    source: Annotated[
        str, Meta(description="`queue:<name>`, `group:<name>` or `route:<topic>/<route>`.")
    ]
    reason: str
    died_at: Time
    failures: int
    crash_count: int
    last_failure_reason: Annotated[
        str, Meta(description="Reason of the last nack or reject there.")
    ] = ""
    details: Annotated[
        str,
        Meta(
            description="Details of the last nack or reject: a stack trace, or the start of the response of a webhook's receiver."
        ),
    ] = ""
    response: Annotated[str, former_member("details")] = ""

    @classmethod
    def from_domain(cls, origin: DeadLetterOrigin) -> "DeadLetterOriginOut":
        """Convert an origin."""
        return cls(
            source=origin.source,
            reason=origin.reason,
            died_at=rfc3339(origin.died_at_ms),
            failures=origin.failures,
            crash_count=origin.crash_count,
            last_failure_reason=origin.last_failure_reason,
            details=origin.details,
            response=origin.details,
        )


def show_origin(origin: DeadLetterOrigin | None) -> DeadLetterOriginOut | UnsetType:
    """Convert an origin, if there is one."""
    return UNSET if origin is None else DeadLetterOriginOut.from_domain(origin)


class MessageContentOut(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The first fields of a message that is shown."""

    id: str
    body: AnyBody = UNSET
    body_base64: Base64 | UnsetType = UNSET
    content_type: str = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    group: str = ""


class ReceivedMessageOut(MessageContentOut, kw_only=True, omit_defaults=True, gc=False):
    """One delivery, leased to the consumer until `visible_at`."""

    dedup_id: str = ""
    receipt_handle: str
    offset: int
    sent_at: Time
    first_received_at: Time
    visible_at: Time
    receive_count: int
    receives: Annotated[int, former_member("receive_count")]
    failures: int
    crash_count: int
    crashes: Annotated[int, former_member("crash_count")]
    topic: Annotated[str, Meta(description="Topic that it was published to.")] = ""
    subject: Annotated[str, Meta(description="Subject in the topic.")] = ""
    route: Annotated[str, Meta(description="Route of the topic that brought it.")] = ""
    key: Annotated[
        str, Meta(description="Key in the topic; in a FIFO queue it is the `group`.")
    ] = ""
    reply_to: Annotated[
        str, Meta(description="If it is a request: the `request` that a reply to it names.")
    ] = ""
    dead_letter_source: str = ""
    dead_letter: DeadLetterOriginOut | UnsetType = UNSET

    @classmethod
    def from_domain(cls, message: ReceivedMessage, binary: bool) -> "ReceivedMessageOut":
        """Convert a delivery. `binary`: the answer is MessagePack, where the body is bin."""
        if binary:
            body: Any = message.body
            encoded: str | UnsetType = UNSET
        else:
            body, encoded = show_body(message.body, message.content_type)
        shown = cls(
            id=message.message_id,
            body=body,
            receipt_handle=message.receipt_handle,
            offset=message.offset,
            sent_at=rfc3339(message.sent_at_ms),
            first_received_at=rfc3339(message.first_received_at_ms),
            visible_at=rfc3339(message.visible_at_ms),
            receive_count=message.receive_count,
            receives=message.receive_count,
            failures=message.failures,
            crash_count=message.crash_count,
            crashes=message.crash_count,
        )
        # Rare fields are set afterwards: passing them costs as much as all the others.
        if encoded is not UNSET:
            shown.body_base64 = encoded
        headers = message.headers
        if message.system:
            headers = (*with_noted(headers, message.system), *message.system)
            shown.dead_letter = show_origin(origin_of(message.system))
            shown._set_reserved(message.system)
        if headers:
            shown.headers, shown.headers_base64 = show_headers(headers)
        if message.content_type:
            shown.content_type = message.content_type
        if message.group or message.dedup_id:
            shown.group, shown.dedup_id = message.group, message.dedup_id
        if message.dead_letter_source:
            shown.dead_letter_source = message.dead_letter_source
        return shown

    def _set_reserved(self, system: Headers) -> None:
        """Set where a message comes from that a route has brought, and where a reply goes."""
        for name, _, value in system:
            if name in _MEMBER_HEADERS:
                setattr(self, name[1:], value.decode())


_MEMBER_HEADERS = frozenset({TOPIC, SUBJECT, ROUTE, KEY, REPLY_TO})


class ReceivedMessages(Lined):
    """The deliveries; none when the wait was over first."""

    lines_field: ClassVar[str] = "messages"
    messages: list[ReceivedMessageOut]
