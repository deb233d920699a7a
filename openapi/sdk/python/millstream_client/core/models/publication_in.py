from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.publication_in_headers import PublicationInHeaders


T = TypeVar("T", bound="PublicationIn")


@_attrs_define
class PublicationIn:
    """A message to publish: `body` or `body_base64`.

    Attributes:
        body_base64 (str | Unset): Bytes in standard base64.
        subject (str | Unset): Words with dots between, such as `order.created.eu`. Default: ''.
        key (str | Unset): Messages with the same key stay in order. It becomes the key of a record, and the group of a
            message in a FIFO queue. Default: ''.
        headers (PublicationInHeaders | Unset): Header names (without a leading ':') and text values.
        content_type (str | Unset): Content type of the body. With 'application/json', responses return it as a JSON
            value. Default: ''.
        dedup_id (str | Unset): FIFO topics only: a message with an id that was accepted within five minutes adds
            nothing. Default: ''.
        delay_seconds (float | None | Unset): Delay of copies in queues, instead of the route's.
        ttl_seconds (float | Unset): Time to live of copies in queues, from the publication, instead of the route's; 0:
            the route's. Default: 0.0.
        priority (int | Unset): Priority of copies in standard queues. Default: 0.
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
    """

    body_base64: str | Unset = UNSET
    subject: str | Unset = ""
    key: str | Unset = ""
    headers: PublicationInHeaders | Unset = UNSET
    content_type: str | Unset = ""
    dedup_id: str | Unset = ""
    delay_seconds: float | None | Unset = UNSET
    ttl_seconds: float | Unset = 0.0
    priority: int | Unset = 0
    body: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        body_base64 = self.body_base64

        subject = self.subject

        key = self.key

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        content_type = self.content_type

        dedup_id = self.dedup_id

        delay_seconds: float | None | Unset
        if isinstance(self.delay_seconds, Unset):
            delay_seconds = UNSET
        else:
            delay_seconds = self.delay_seconds

        ttl_seconds = self.ttl_seconds

        priority = self.priority

        body = self.body

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if body_base64 is not UNSET:
            field_dict["body_base64"] = body_base64
        if subject is not UNSET:
            field_dict["subject"] = subject
        if key is not UNSET:
            field_dict["key"] = key
        if headers is not UNSET:
            field_dict["headers"] = headers
        if content_type is not UNSET:
            field_dict["content_type"] = content_type
        if dedup_id is not UNSET:
            field_dict["dedup_id"] = dedup_id
        if delay_seconds is not UNSET:
            field_dict["delay_seconds"] = delay_seconds
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if priority is not UNSET:
            field_dict["priority"] = priority
        if body is not UNSET:
            field_dict["body"] = body

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.publication_in_headers import PublicationInHeaders  # noqa: PLC0415

        d = dict(src_dict)
        body_base64 = d.pop("body_base64", UNSET)

        subject = d.pop("subject", UNSET)

        key = d.pop("key", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: PublicationInHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = PublicationInHeaders.from_dict(_headers)

        content_type = d.pop("content_type", UNSET)

        dedup_id = d.pop("dedup_id", UNSET)

        def _parse_delay_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        delay_seconds = _parse_delay_seconds(d.pop("delay_seconds", UNSET))

        ttl_seconds = d.pop("ttl_seconds", UNSET)

        priority = d.pop("priority", UNSET)

        body = d.pop("body", UNSET)

        publication_in = cls(
            body_base64=body_base64,
            subject=subject,
            key=key,
            headers=headers,
            content_type=content_type,
            dedup_id=dedup_id,
            delay_seconds=delay_seconds,
            ttl_seconds=ttl_seconds,
            priority=priority,
            body=body,
        )

        return publication_in
