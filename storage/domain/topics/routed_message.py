"""Published message as the transform, the format and the key of a route see it."""

import base64
from typing import Any, NamedTuple

import msgspec

from storage.domain.clock import rfc3339
from storage.domain.filters.documents import Document, meta_of
from storage.domain.log.json_body import NOTHING
from storage.domain.log.record_batch import CONTENT_TYPE, RESERVED, Headers, Record, subject_of
from storage.domain.names import RouteName
from storage.domain.topics.message_id import TopicMessageId

TRANSFORM_FAILED = "transform_failed"
"""Reason of a dead letter whose transform has no result."""


TOO_MANY_HOPS = "too_many_hops"
"""Reason of a dead letter that has passed as many topics as a message can."""


class TransformFailed(Exception):
    """A route makes no copy of a message, by its definition: the reason."""

    def __init__(self, detail: str, reason: str = TRANSFORM_FAILED) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason


class CopyContent(NamedTuple):
    """Content of a copy for a target, with the headers of its publisher, not reserved ones."""

    body: bytes
    headers: Headers
    content_type: str
    subject: str

    @property
    def typed_headers(self) -> Headers:
        """The headers of a record, with the content type if there is one."""
        if not self.content_type:
            return self.headers
        return (*self.headers, (CONTENT_TYPE, "", self.content_type.encode()))


class RoutedMessage:
    """Message of a topic's log that a route takes. Its document is decoded when it is read."""

    __slots__ = ("content", "document", "key", "message_id", "published_at_ms", "route")

    def __init__(
        self, route: RouteName, message_id: TopicMessageId, published_at_ms: int, record: Record
    ) -> None:
        self.route = route
        self.message_id = message_id
        self.published_at_ms = published_at_ms
        self.key = record.key
        self.content = content_of(record)
        self.document = Document(
            subject=self.content.subject,
            key=record.key,
            headers=record.headers,
            body=record.data,
            meta=meta_of(route.topic.stream),
        )

    @property
    def published_at(self) -> str:
        """Arrival time of the message in the topic's log, RFC 3339 with milliseconds."""
        return rfc3339(self.published_at_ms)


def content_of(record: Record) -> CopyContent:
    """Return the content of a message as it was published."""
    headers = record.headers
    return CopyContent(record.data, public(headers), content_type_of(headers), subject_of(headers))


def public(headers: Headers) -> Headers:
    """Return the headers without reserved ones."""
    return tuple(header for header in headers if not header[0].startswith(RESERVED))


def content_type_of(headers: Headers) -> str:
    """Return the content type in a record's headers; empty if it has none."""
    return next((value.decode() for name, _, value in headers if name == CONTENT_TYPE), "")


def json_of_value(value: Any) -> bytes:
    """Return a value as compact JSON, NOTHING as null. Raises TransformFailed if it is deep."""
    try:
        return msgspec.json.encode(None if value is NOTHING else value)
    except RecursionError:
        raise TransformFailed("A value of the message is nested too deeply.") from None


def text_of(value: Any) -> str:
    """Return the text of a value: a string itself, compact JSON of others, none of NOTHING."""
    if value is NOTHING:
        return ""
    return value if isinstance(value, str) else json_of_value(value).decode()


def text_of_body(body: bytes) -> str:
    """Return a body as text, or in base64 if it is none."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return base64.b64encode(body).decode()
