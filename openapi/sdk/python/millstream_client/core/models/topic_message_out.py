from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.topic_message_out_headers import TopicMessageOutHeaders
    from ..models.topic_message_out_headers_base_64 import TopicMessageOutHeadersBase64


T = TypeVar("T", bound="TopicMessageOut")


@_attrs_define
class TopicMessageOut:
    """A message of a topic.

    Attributes:
        id (str):
        shard (int):
        offset (int):
        subject (str):
        key (str):
        headers (TopicMessageOutHeaders):
        headers_base64 (TopicMessageOutHeadersBase64):
        content_type (str):
        dedup_id (str): Empty on a standard topic.
        delay_seconds (float | None): null: that of the route, or of the queue.
        ttl_seconds (float): 0: that of the route, or of the queue.
        priority (int):
        body (Any): Text, or JSON; null if it is neither.
        body_base64 (None | str): The body, if it is neither.
        published_at (datetime.datetime):
    """

    id: str
    shard: int
    offset: int
    subject: str
    key: str
    headers: TopicMessageOutHeaders
    headers_base64: TopicMessageOutHeadersBase64
    content_type: str
    dedup_id: str
    delay_seconds: float | None
    ttl_seconds: float
    priority: int
    body: Any
    body_base64: None | str
    published_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        shard = self.shard

        offset = self.offset

        subject = self.subject

        key = self.key

        headers = self.headers.to_dict()

        headers_base64 = self.headers_base64.to_dict()

        content_type = self.content_type

        dedup_id = self.dedup_id

        delay_seconds: float | None
        delay_seconds = self.delay_seconds

        ttl_seconds = self.ttl_seconds

        priority = self.priority

        body = self.body

        body_base64: None | str
        body_base64 = self.body_base64

        published_at = self.published_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "shard": shard,
                "offset": offset,
                "subject": subject,
                "key": key,
                "headers": headers,
                "headers_base64": headers_base64,
                "content_type": content_type,
                "dedup_id": dedup_id,
                "delay_seconds": delay_seconds,
                "ttl_seconds": ttl_seconds,
                "priority": priority,
                "body": body,
                "body_base64": body_base64,
                "published_at": published_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.topic_message_out_headers import TopicMessageOutHeaders  # noqa: PLC0415
        from ..models.topic_message_out_headers_base_64 import (
            TopicMessageOutHeadersBase64,  # noqa: PLC0415
        )

        d = dict(src_dict)
        id = d.pop("id")

        shard = d.pop("shard")

        offset = d.pop("offset")

        subject = d.pop("subject")

        key = d.pop("key")

        headers = TopicMessageOutHeaders.from_dict(d.pop("headers"))

        headers_base64 = TopicMessageOutHeadersBase64.from_dict(d.pop("headers_base64"))

        content_type = d.pop("content_type")

        dedup_id = d.pop("dedup_id")

        def _parse_delay_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        delay_seconds = _parse_delay_seconds(d.pop("delay_seconds"))

        ttl_seconds = d.pop("ttl_seconds")

        priority = d.pop("priority")

        body = d.pop("body")

        def _parse_body_base64(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        body_base64 = _parse_body_base64(d.pop("body_base64"))

        published_at = datetime.datetime.fromisoformat(d.pop("published_at"))

        topic_message_out = cls(
            id=id,
            shard=shard,
            offset=offset,
            subject=subject,
            key=key,
            headers=headers,
            headers_base64=headers_base64,
            content_type=content_type,
            dedup_id=dedup_id,
            delay_seconds=delay_seconds,
            ttl_seconds=ttl_seconds,
            priority=priority,
            body=body,
            body_base64=body_base64,
            published_at=published_at,
        )

        topic_message_out.additional_properties = d
        return topic_message_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
