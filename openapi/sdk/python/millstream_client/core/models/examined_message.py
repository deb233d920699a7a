from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.examined_message_headers import ExaminedMessageHeaders


T = TypeVar("T", bound="ExaminedMessage")


@_attrs_define
class ExaminedMessage:
    """A message that is not published: `body` or `body_base64`, and its other fields.

    Attributes:
        body (Any | Unset): A string stands for UTF-8 text, any other value for JSON.
        body_base64 (None | str | Unset):
        subject (str | Unset):  Default: ''.
        key (str | Unset):  Default: ''.
        headers (ExaminedMessageHeaders | Unset):
        content_type (str | Unset):  Default: ''.
    """

    body: Any | Unset = UNSET
    body_base64: None | str | Unset = UNSET
    subject: str | Unset = ""
    key: str | Unset = ""
    headers: ExaminedMessageHeaders | Unset = UNSET
    content_type: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        body = self.body

        body_base64: None | str | Unset
        if isinstance(self.body_base64, Unset):
            body_base64 = UNSET
        else:
            body_base64 = self.body_base64

        subject = self.subject

        key = self.key

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        content_type = self.content_type

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if body is not UNSET:
            field_dict["body"] = body
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

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.examined_message_headers import ExaminedMessageHeaders  # noqa: PLC0415

        d = dict(src_dict)
        body = d.pop("body", UNSET)

        def _parse_body_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        body_base64 = _parse_body_base64(d.pop("body_base64", UNSET))

        subject = d.pop("subject", UNSET)

        key = d.pop("key", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: ExaminedMessageHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = ExaminedMessageHeaders.from_dict(_headers)

        content_type = d.pop("content_type", UNSET)

        examined_message = cls(
            body=body,
            body_base64=body_base64,
            subject=subject,
            key=key,
            headers=headers,
            content_type=content_type,
        )

        return examined_message
