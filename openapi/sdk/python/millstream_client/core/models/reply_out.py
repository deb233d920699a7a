from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reply_out_headers import ReplyOutHeaders
    from ..models.reply_out_headers_base_64 import ReplyOutHeadersBase64


T = TypeVar("T", bound="ReplyOut")


@_attrs_define
class ReplyOut:
    """A reply, and when it was accepted.

    Attributes:
        at (datetime.datetime):
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        body_base64 (str | Unset): Bytes in standard base64.
        content_type (str | Unset):  Default: ''.
        headers (ReplyOutHeaders | Unset):
        headers_base64 (ReplyOutHeadersBase64 | Unset):
    """

    at: datetime.datetime
    body: Any | Unset = UNSET
    body_base64: str | Unset = UNSET
    content_type: str | Unset = ""
    headers: ReplyOutHeaders | Unset = UNSET
    headers_base64: ReplyOutHeadersBase64 | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        body = self.body

        body_base64 = self.body_base64

        content_type = self.content_type

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        headers_base64: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers_base64, Unset):
            headers_base64 = self.headers_base64.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
            }
        )
        if body is not UNSET:
            field_dict["body"] = body
        if body_base64 is not UNSET:
            field_dict["body_base64"] = body_base64
        if content_type is not UNSET:
            field_dict["content_type"] = content_type
        if headers is not UNSET:
            field_dict["headers"] = headers
        if headers_base64 is not UNSET:
            field_dict["headers_base64"] = headers_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reply_out_headers import ReplyOutHeaders  # noqa: PLC0415
        from ..models.reply_out_headers_base_64 import ReplyOutHeadersBase64  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        body = d.pop("body", UNSET)

        body_base64 = d.pop("body_base64", UNSET)

        content_type = d.pop("content_type", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: ReplyOutHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = ReplyOutHeaders.from_dict(_headers)

        _headers_base64 = d.pop("headers_base64", UNSET)
        headers_base64: ReplyOutHeadersBase64 | Unset
        if isinstance(_headers_base64, Unset):
            headers_base64 = UNSET
        else:
            headers_base64 = ReplyOutHeadersBase64.from_dict(_headers_base64)

        reply_out = cls(
            at=at,
            body=body,
            body_base64=body_base64,
            content_type=content_type,
            headers=headers,
            headers_base64=headers_base64,
        )

        reply_out.additional_properties = d
        return reply_out

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
