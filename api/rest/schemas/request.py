"""Requests and their replies on the wire."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.http.codecs import Located
from api.native.fields import (
    body_from_json,
    body_from_msgpack,
    headers_from_json,
    to_ms,
)
from api.native.messages import Base64, ContentType, Group, HeaderMap, RawBody
from api.native.publications import PublicationDedupId, PublicationKey, Subject
from api.native.records import with_content_type
from api.native.settlements import ReplyOut, ReplyTtlSeconds, RequestRepliesMax, TimeoutSeconds
from storage.domain import limits
from storage.domain.log.record_batch import Headers
from storage.domain.queues.message import NewMessage
from storage.domain.requests.reply import Replies
from storage.domain.requests.token import REPLY_TO, RequestId
from storage.domain.topics.topic import NO_OPTIONS, NewPublication, PublicationOptions

_SECOND_MS = limits.SECOND_MS

ReplyWaitSeconds = Annotated[
    float,
    Meta(
        ge=0,
        le=limits.WAIT_MS_MAX // _SECOND_MS,
        description="Time that this call waits for the replies.",
    ),
]


class _RequestFields(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """Fields of a request beside its message's own."""

    body_base64: Base64 | UnsetType = UNSET
    headers: HeaderMap = {}
    content_type: ContentType = ""
    timeout_seconds: TimeoutSeconds = limits.REQUEST_TIMEOUT_MS_DEFAULT // _SECOND_MS
    wait_seconds: ReplyWaitSeconds = limits.REQUEST_WAIT_MS_DEFAULT // _SECOND_MS
    replies_max: RequestRepliesMax = 1
    reply_ttl_seconds: ReplyTtlSeconds = limits.REPLY_TTL_MS_DEFAULT // _SECOND_MS

    @property
    def timeout_ms(self) -> int:
        """Time until the deadline, in milliseconds."""
        return to_ms(self.timeout_seconds)

    def content(self) -> tuple[bytes, str]:
        """Return the bytes of the body, and the content type. Raises ValidationFailed."""
        body, own_type = self._decode()
        return body, self.content_type or own_type

    def _decode(self) -> tuple[bytes, str]:
        raise NotImplementedError


class QueueRequest(_RequestFields, kw_only=True, gc=False):
    """A message for a queue, and the terms of its replies."""

    body: RawBody | UnsetType = UNSET
    group: Group = ""
    dedup_id: Group = ""
    priority: Annotated[int, Meta(ge=0, le=limits.PRIORITY_MAX)] = 0

    def _decode(self) -> tuple[bytes, str]:
        return body_from_json(self.body, self.body_base64, "body")

    def message(self, request: RequestId, dedup_id: str) -> NewMessage:
        """Return the message of a request. Raises ValidationFailed."""
        body, content_type = self.content()
        return NewMessage(
            body,
            headers_from_json(self.headers),
            content_type,
            self.group,
            dedup_id,
            system=((REPLY_TO, "", request.name.encode()),),
            ttl_ms=self.timeout_ms,
            priority=self.priority,
        )


class PackedQueueRequest(QueueRequest, kw_only=True, gc=False):
    """A request to a queue in MessagePack, where a body may be bin."""

    body: Any = UNSET

    def _decode(self) -> tuple[bytes, str]:
        return body_from_msgpack(self.body, self.body_base64, "body")


class TopicRequest(_RequestFields, kw_only=True, gc=False):
    """A message for a topic, and the terms of its replies."""

    body: RawBody | UnsetType = UNSET
    subject: Subject = ""
    key: PublicationKey = ""
    dedup_id: PublicationDedupId = ""

    def _decode(self) -> tuple[bytes, str]:
        return body_from_json(self.body, self.body_base64, "body")

    def publication(self, request: RequestId, dedup_id: str) -> NewPublication:
        """Return the message of a request. Raises ValidationFailed."""
        body, content_type = self.content()
        headers = _headers(self.headers, content_type)
        return NewPublication(
            body,
            self.subject,
            self.key,
            headers,
            reply_to=request.name,
            options=PublicationOptions(dedup_id) if dedup_id else NO_OPTIONS,
        )


class PackedTopicRequest(TopicRequest, kw_only=True, gc=False):
    """A request to a topic in MessagePack, where a body may be bin."""

    body: Any = UNSET

    def _decode(self) -> tuple[bytes, str]:
        return body_from_msgpack(self.body, self.body_base64, "body")


class AcceptedReply(msgspec.Struct, frozen=True, gc=False):
    """The reply was accepted, now or by an earlier call with the same Idempotency-Key."""

    request: str


class RepliesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Time to wait for the replies to a request."""

    wait_seconds: ReplyWaitSeconds = 0


class RequestReplies(msgspec.Struct, kw_only=True, gc=False):
    """Replies to a request, all that it will have.

    `timed_out`: the deadline passed without a reply.
    """

    request: str
    replies: list[ReplyOut]
    complete: bool = True
    timed_out: bool = False


class PendingReplies(Located, kw_only=True, gc=False):
    """Replies to a request so far; the header `Location` says where to ask for the others."""

    request: str
    replies: list[ReplyOut]
    complete: bool = False

    @property
    def location(self) -> str:
        return f"/v1/requests/{self.request}/reply"


RepliesOut = RequestReplies | PendingReplies


def replies_out(request: RequestId, replies: Replies, *, binary: bool) -> RepliesOut:
    """Convert the replies to a request."""
    shown = [ReplyOut.from_domain(reply, binary) for reply in replies.replies]
    if not replies.is_complete:
        return PendingReplies(request=request.name, replies=shown)
    return RequestReplies(request=request.name, replies=shown, timed_out=replies.is_timed_out)


def _headers(headers: dict[str, str], content_type: str) -> Headers:
    decoded = headers_from_json(headers)
    return with_content_type(decoded, content_type) if content_type else decoded
