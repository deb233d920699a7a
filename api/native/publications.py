"""Messages of a topic on the wire."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.http.codecs import refuse_field_headers
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
    to_ms,
)
from api.native.messages import Base64, ContentType, DelaySeconds, HeaderMap, RawBody
from api.native.problems import ItemError, item_error
from api.native.records import with_content_type
from api.types import RequestHeaders
from storage.domain import limits
from storage.domain.errors import MillstreamError, ValidationFailed
from storage.domain.topics.topic import NO_OPTIONS, NewPublication, PublicationOptions, Published

Subject = Annotated[
    str,
    Meta(
        max_length=limits.SUBJECT_BYTES_MAX,
        description="Words with dots between, such as `order.created.eu`.",
    ),
]
PublicationKey = Annotated[
    str,
    Meta(
        max_length=limits.KEY_CHARACTERS_MAX,
        description="Messages with the same key stay in order. It becomes the key of a record, and the group of a message in a "
        "FIFO queue.",
    ),
]
PublicationDedupId = Annotated[
    str,
    Meta(
        max_length=limits.GROUP_CHARACTERS_MAX,
        description="FIFO topics only: a message with an id that was accepted within five minutes adds nothing.",
    ),
]
_OwnDelay = Annotated[
    DelaySeconds, Meta(description="Delay of copies in queues, instead of the route's.")
]
_OwnTtl = Annotated[
    float,
    Meta(
        ge=0,
        le=limits.TTL_MS_MAX // limits.SECOND_MS,
        description="Time to live of copies in queues, from the publication, instead of the route's; 0: the route's.",
    ),
]
_OwnPriority = Annotated[
    int, Meta(ge=0, le=limits.PRIORITY_MAX, description="Priority of copies in standard queues.")
]


class _PublicationFields(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """Fields that every form of a message has beside its body."""

    body_base64: Base64 | UnsetType = UNSET
    subject: Subject = ""
    key: PublicationKey = ""
    headers: HeaderMap = {}
    content_type: ContentType = ""
    dedup_id: PublicationDedupId = ""
    delay_seconds: _OwnDelay | None = None
    ttl_seconds: _OwnTtl = 0
    priority: _OwnPriority = 0

    def _with(self, body: bytes, own_content_type: str) -> NewPublication:
        content_type = self.content_type or own_content_type
        headers = headers_from_json(self.headers) if self.headers else ()
        return NewPublication(
            body,
            self.subject,
            self.key,
            with_content_type(headers, content_type) if content_type else headers,
            options=self._options(),
        )

    def _options(self) -> PublicationOptions:
        delay = self.delay_seconds
        if delay is None and not (self.dedup_id or self.ttl_seconds or self.priority):
            return NO_OPTIONS
        return PublicationOptions(
            self.dedup_id, optional_ms(delay), to_ms(self.ttl_seconds), self.priority
        )


class PublicationIn(_PublicationFields, kw_only=True, gc=False):
    """A message to publish: `body` or `body_base64`."""

    body: RawBody | UnsetType = UNSET

    def to_domain(self) -> NewPublication:
        """Convert the message. Raises ValidationFailed when its body cannot be decoded."""
        return self._with(*body_from_json(self.body, self.body_base64, "body"))


class PublicationOrBatch(PublicationIn, kw_only=True, gc=False):
    """A message, or a batch of them."""

    messages: list[PublicationIn] | UnsetType = UNSET


class PackedPublication(_PublicationFields, kw_only=True, gc=False):
    """A message in MessagePack, where a body may be bin."""

    body: Any = UNSET

    def to_domain(self) -> NewPublication:
        """Convert the message. Raises ValidationFailed when its body cannot be decoded."""
        return self._with(*body_from_msgpack(self.body, self.body_base64, "body"))


class PackedPublicationOrBatch(PackedPublication, kw_only=True, gc=False):
    """A message, or a batch of them, in MessagePack."""

    messages: list[PackedPublication] | UnsetType = UNSET


class PublishMessages(msgspec.Struct, forbid_unknown_fields=True):
    """Batch of messages.

    A single message, NDJSON, MessagePack and raw bodies are also accepted.
    """

    messages: Annotated[
        list[PublicationIn], Meta(min_length=1, max_length=limits.BATCH_RECORDS_MAX)
    ]


_RAW_HEADERS = (
    b"millstream-subject",
    b"millstream-key",
    b"millstream-dedup-id",
    b"millstream-delay-seconds",
    b"millstream-ttl-seconds",
    b"millstream-priority",
)


def publication_from_raw(
    payload: bytes,
    headers: RequestHeaders,
    content_type_of: Callable[[RequestHeaders], str] = content_type_from_http,
) -> NewPublication:
    """Build a message whose body is the request's. Raises ValidationFailed.

    The other fields are in headers.
    """
    refuse_field_headers(headers, (*_RAW_HEADERS, *header_names_from_http(headers)))
    key = http_text(headers, "Millstream-Key")
    if len(key) > limits.KEY_CHARACTERS_MAX:
        detail = f"At most {limits.KEY_CHARACTERS_MAX} characters"
        raise ValidationFailed.at("/Millstream-Key", detail, "too_long")
    content_type, own = content_type_of(headers), headers_from_http(headers)
    subject = http_text(headers, "Millstream-Subject")
    all_headers = with_content_type(own, content_type) if content_type else own
    options = PublicationOptions(
        http_text(headers, "Millstream-Dedup-Id"),
        optional_ms(http_number(headers, "Millstream-Delay-Seconds")),
        optional_ms(http_number(headers, "Millstream-Ttl-Seconds")) or 0,
        http_whole(headers, "Millstream-Priority"),
    )
    return NewPublication(payload, subject, key, all_headers, options=options)


class PublishedMessageOut(msgspec.Struct, frozen=True, gc=False):
    """Id of an accepted message, and the number of routes that take it.

    `duplicate`: it had been accepted before, and nothing was added; `routes` is null then.
    """

    id: str
    shard: int
    offset: int
    duplicate: bool
    routes: int | None

    @classmethod
    def from_domain(cls, published: Published) -> "PublishedMessageOut":
        """Convert the result of one message."""
        return cls(
            str(published.id),
            published.shard,
            published.offset,
            published.duplicate,
            published.routes,
        )


class PublicationResult(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """Id of a message, and the number of its routes, or why it was refused."""

    id: str | UnsetType = UNSET
    shard: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    routes: int | UnsetType | None = UNSET
    error: ItemError | UnsetType = UNSET

    @classmethod
    def from_domain(cls, result: Published | MillstreamError) -> "PublicationResult":
        """Convert the result of one message."""
        if isinstance(result, MillstreamError):
            return cls(error=item_error(result))
        return cls(
            id=str(result.id),
            shard=result.shard,
            offset=result.offset,
            duplicate=result.duplicate,
            routes=result.routes,
        )


class PublishedMessages(msgspec.Struct):
    """One result for each message, in their order, and how many were refused."""

    messages: list[PublicationResult]
    failed: int
