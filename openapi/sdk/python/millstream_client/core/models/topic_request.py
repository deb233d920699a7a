from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.topic_request_headers import TopicRequestHeaders


T = TypeVar("T", bound="TopicRequest")


@_attrs_define
class TopicRequest:
    """A message for a topic, and the terms of its replies.

    Attributes:
        body_base64 (str | Unset): Bytes in standard base64.
        headers (TopicRequestHeaders | Unset): Header names (without a leading ':') and text values.
        content_type (str | Unset): Content type of the body. With 'application/json', responses return it as a JSON
            value. Default: ''.
        timeout_seconds (float | Unset): Time until the deadline: no reply is accepted after it. Default: 20.0.
        wait_seconds (float | Unset): Time that this call waits for the replies. Default: 20.0.
        replies_max (int | Unset): Number of replies that are accepted. Default: 1.
        reply_ttl_seconds (int | Unset): Time after the deadline for which replies are retained. Default: 60.
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        subject (str | Unset): Words with dots between, such as `order.created.eu`. Default: ''.
        key (str | Unset): Messages with the same key stay in order. It becomes the key of a record, and the group of a
            message in a FIFO queue. Default: ''.
        dedup_id (str | Unset): FIFO topics only: a message with an id that was accepted within five minutes adds
            nothing. Default: ''.
    """

    body_base64: str | Unset = UNSET
    headers: TopicRequestHeaders | Unset = UNSET
    content_type: str | Unset = ""
    timeout_seconds: float | Unset = 20.0
    wait_seconds: float | Unset = 20.0
    replies_max: int | Unset = 1
    reply_ttl_seconds: int | Unset = 60
    body: Any | Unset = UNSET
    subject: str | Unset = ""
    key: str | Unset = ""
    dedup_id: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        body_base64 = self.body_base64

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        content_type = self.content_type

        timeout_seconds = self.timeout_seconds

        wait_seconds = self.wait_seconds

        replies_max = self.replies_max

        reply_ttl_seconds = self.reply_ttl_seconds

        body = self.body

        subject = self.subject

        key = self.key

        dedup_id = self.dedup_id

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if body_base64 is not UNSET:
            field_dict["body_base64"] = body_base64
        if headers is not UNSET:
            field_dict["headers"] = headers
        if content_type is not UNSET:
            field_dict["content_type"] = content_type
        if timeout_seconds is not UNSET:
            field_dict["timeout_seconds"] = timeout_seconds
        if wait_seconds is not UNSET:
            field_dict["wait_seconds"] = wait_seconds
        if replies_max is not UNSET:
            field_dict["replies_max"] = replies_max
        if reply_ttl_seconds is not UNSET:
            field_dict["reply_ttl_seconds"] = reply_ttl_seconds
        if body is not UNSET:
            field_dict["body"] = body
        if subject is not UNSET:
            field_dict["subject"] = subject
        if key is not UNSET:
            field_dict["key"] = key
        if dedup_id is not UNSET:
            field_dict["dedup_id"] = dedup_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.topic_request_headers import TopicRequestHeaders  # noqa: PLC0415

        d = dict(src_dict)
        body_base64 = d.pop("body_base64", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: TopicRequestHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = TopicRequestHeaders.from_dict(_headers)

        content_type = d.pop("content_type", UNSET)

        timeout_seconds = d.pop("timeout_seconds", UNSET)

        wait_seconds = d.pop("wait_seconds", UNSET)

        replies_max = d.pop("replies_max", UNSET)

        reply_ttl_seconds = d.pop("reply_ttl_seconds", UNSET)

        body = d.pop("body", UNSET)

        subject = d.pop("subject", UNSET)

        key = d.pop("key", UNSET)

        dedup_id = d.pop("dedup_id", UNSET)

        topic_request = cls(
            body_base64=body_base64,
            headers=headers,
            content_type=content_type,
            timeout_seconds=timeout_seconds,
            wait_seconds=wait_seconds,
            replies_max=replies_max,
            reply_ttl_seconds=reply_ttl_seconds,
            body=body,
            subject=subject,
            key=key,
            dedup_id=dedup_id,
        )

        return topic_request
